"""Replies about documents, their pages and the jobs that ingest them, beside the functions that fill them."""

from dataclasses import asdict

from typing_extensions import TypedDict

from app.http.replies import TokensReply
from app.types import Document, Job, JobOutcome, JobState, Page, Removed


class DocumentReply(TypedDict):
    document_id: str
    title: str
    source: str
    company: str | None
    cik: str | None
    ticker: str | None
    form: str | None
    fiscal_year: int | None
    fiscal_period: str | None
    period_end: str | None
    filed: str | None
    sector: str | None
    pages: int
    chunks: int
    empty_pages: list[int]
    ocr_pages: list[int]
    """Whose text, or some of it, was recognised in a picture."""
    repaired: bool
    ingested_at: str


def document_reply(document: Document) -> DocumentReply:
    meta = document.meta
    return {
        "document_id": document.id,
        "title": meta.title,
        "source": meta.source,
        "company": meta.company,
        "cik": meta.cik,
        "ticker": meta.ticker,
        "form": meta.form,
        "fiscal_year": meta.fiscal_year,
        "fiscal_period": meta.fiscal_period,
        "period_end": meta.period_end,
        "filed": meta.filed,
        "sector": meta.sector,
        "pages": document.pages,
        "chunks": document.chunks,
        "empty_pages": list(document.empty_pages),
        "ocr_pages": list(document.ocr_pages),
        "repaired": document.repaired,
        "ingested_at": document.ingested_at,
    }


class ProgressReply(TypedDict):
    pages: int
    """Parsed."""
    ocr_pages: int
    """Pictures of text read."""
    ocr_pages_total: int
    """0 until the file's pages have been looked at, and where all have text."""
    chunks: int
    """Indexed."""
    chunks_total: int
    """0 until the file is parsed."""


class GraphCostReply(TypedDict):
    """What the filing's entities and relations took."""

    seconds: float
    """By rules."""
    llm_calls: int
    """By a model that reads relations, where one does."""
    tokens: TokensReply
    usd: str | None
    """null where a price is unknown, or nothing was called."""


class JobReply(TypedDict):
    job_id: str
    filename: str
    source: str
    """Identifies the filing: another file of the same name replaces it."""
    sha256: str
    bytes: int
    state: JobState
    progress: ProgressReply
    graph: GraphCostReply
    outcome: JobOutcome | None
    document_id: str | None
    reason: str | None
    """Of a failure."""
    detail: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


def job_reply(job: Job) -> JobReply:
    return {
        "job_id": job.id,
        "filename": job.filename,
        "source": job.source,
        "sha256": job.sha256,
        "bytes": job.size,
        "state": job.state,
        "progress": {
            "pages": job.pages,
            "ocr_pages": job.ocr_pages,
            "ocr_pages_total": job.ocr_pages_total,
            "chunks": job.chunks,
            "chunks_total": job.chunks_total,
        },
        "graph": {
            "seconds": round(job.graph_seconds, 3),
            "llm_calls": job.graph_llm_calls,
            "tokens": {"input": job.graph_input_tokens, "output": job.graph_output_tokens},
            "usd": job.graph_usd,
        },
        "outcome": job.outcome,
        "document_id": job.document_id,
        "reason": job.reason,
        "detail": job.detail,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }


class JobsReply(TypedDict):
    jobs: list[JobReply]
    total: int


class RemovedReply(TypedDict):
    """How much went with a document."""

    document_id: str
    removed: dict[str, int]


def removed_reply(document_id: str, removed: Removed) -> RemovedReply:
    return {"document_id": document_id, "removed": asdict(removed)}


class DocumentsReply(TypedDict):
    documents: list[DocumentReply]
    total: int
    offset: int
    limit: int


class PageReply(TypedDict):
    """A stored page, so that anyone can check that a quote is a slice of its text."""

    document_id: str
    page: int
    label: str | None
    """As printed, where known."""
    text: str
    width: float
    height: float
    ocr: bool


def page_reply(document_id: str, page: Page) -> PageReply:
    return {
        "document_id": document_id,
        "page": page.number,
        "label": page.label,
        "text": page.text,
        "width": page.width,
        "height": page.height,
        "ocr": page.ocr,
    }
