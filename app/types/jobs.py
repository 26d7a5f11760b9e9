"""Uploads on their way into the index."""

from dataclasses import dataclass
from typing import Literal

from app.types.search import Access

JobState = Literal["queued", "parsing", "indexing", "done", "failed"]
JobOutcome = Literal["created", "unchanged", "replaced"]


@dataclass(frozen=True, slots=True)
class Job:
    """One uploaded file on its way into the index."""

    id: str
    filename: str
    source: str
    """`upload://<tenant>/<filename>`, percent-encoded; another file of that name replaces this one."""
    tenant: str
    groups: tuple[str, ...]
    """Of the caller."""
    acl: tuple[str, ...] | None
    """Asked for; None keeps those of what is replaced."""
    sha256: str
    size: int
    """Bytes."""
    created_at: str
    """ISO time, UTC."""
    state: JobState = "queued"
    attempts: int = 0
    """Times it was begun; more than one where the service died or the store was down."""
    pages: int = 0
    """Parsed so far."""
    ocr_pages: int = 0
    """Pictures of text read so far."""
    ocr_pages_total: int = 0
    """To read; 0 until it is known."""
    chunks: int = 0
    """Indexed so far."""
    chunks_total: int = 0
    """To index; 0 until it is parsed."""
    graph_seconds: float = 0.0
    """Spent on its entities and relations."""
    graph_llm_calls: int = 0
    """Made for its relations, where GRAPH_MODEL reads them."""
    graph_input_tokens: int = 0
    graph_output_tokens: int = 0
    graph_usd: str | None = None
    """A decimal number; None where a price is unknown or nothing was called."""
    outcome: JobOutcome | None = None
    document_id: str | None = None
    reason: str | None = None
    """Of a failure: one of the reasons of DocumentError, forbidden or unavailable."""
    detail: str | None = None
    started_at: str | None = None
    finished_at: str | None = None

    def visible_to(self, access: Access) -> bool:
        return self.tenant == access.tenant and not set(self.acl or self.groups).isdisjoint(access.groups)
