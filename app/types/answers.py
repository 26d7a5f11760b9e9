"""A question, its answer, and what that rests on and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from app.types.filings import Box, ChunkKind
from app.types.generation import AbstainReason
from app.types.search import Filter, Hit, OpKind, OpsSource

Unsupported = Literal["drop", "flag", "keep"]
"""What becomes of a sentence that a model wrote and no passage it cites carries."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    k: int = 10
    """Passages to answer from."""
    where: Filter = Filter()  # noqa: RUF009 - frozen
    unsupported: Unsupported = "drop"


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim's evidence: an exact slice of a stored page."""

    marker: int
    document_id: str
    title: str
    company: str | None
    form: str | None
    fiscal_year: int | None
    page: int
    section: str | None
    chunk_id: str
    source: str
    quote: str
    """Exactly the stored page's text[span_start:span_end]."""
    span_start: int
    span_end: int
    boxes: tuple[Box, ...]
    """One per line of the quote."""
    answer_span: tuple[int, int]
    """The cited sentence, as a slice of the answer."""
    support: float
    """0 to 1: how far the quote carries the sentence."""
    verified: bool
    """Every number of the sentence is in the quote and the support is high enough."""
    ocr: bool = False
    """The page's text, or some of it, was recognised in a picture, and may be misread."""
    kind: ChunkKind = "text"
    """`figure`: the quote is a model's caption of a picture, not the filing's words."""


@dataclass(frozen=True, slots=True)
class Calculation:
    """A number that no page prints, computed from numbers that cited pages do."""

    expression: str
    """As it stands in the answer: `6,489 / ((253 + 282) / 2)`."""
    value: str
    """As it stands in the answer: `24.26`, `30.8%`."""
    answer_span: tuple[int, int]
    """Expression and value, as a slice of the answer."""
    operands: tuple[str, ...]
    """The expression's numbers as printed, without those that only average, scale or annualise."""
    verified: bool
    """The expression has this value, and every operand is in the quote of a verified citation of the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    citations: tuple[Citation, ...]
    passages: tuple[Hit, ...]
    reason: AbstainReason | None = None
    """Why there is no answer; None where there is one."""
    notes: Sequence[str] = ()
    """What the reader should know: an unsupported sentence was dropped, a limit was hit."""
    calculations: tuple[Calculation, ...] = ()

    @property
    def abstained(self) -> bool:
        return self.reason is not None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may spend; None is unlimited."""

    max_llm_calls: int | None = None
    max_tokens: int | None = None
    """Input and output tokens together."""
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    ms: float


@dataclass(frozen=True, slots=True)
class Cost:
    """The bill of one request, in two currencies that are never merged."""

    ops_by_kind: Mapping[OpKind, int] = field(default_factory=dict)
    ops_source: OpsSource = "counted"
    """The weakest source of any part: bound < reported < counted."""
    llm_calls_by_purpose: Mapping[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal | None = None
    """None where a price is unknown; zero only where nothing that costs was called."""
    latency_ms: float = 0.0
    stages: tuple[Stage, ...] = ()
    cached: Mapping[str, int] = field(default_factory=dict)
    """By step, what was at hand from an earlier request and therefore costs nothing here: texts, pairs, calls."""

    @property
    def ops(self) -> int:
        return sum(self.ops_by_kind.values())

    @property
    def llm_calls(self) -> int:
        return sum(self.llm_calls_by_purpose.values())


@dataclass(slots=True)
class TraceStep:
    """One metered step of a request, in the order begun. A request's cost is the sum over its steps, nothing else."""

    name: str
    """embed, search, rerank, generate, pages, or an architecture's own word (route, grade, ...)."""
    detail: dict[str, Any] = field(default_factory=dict)
    ms: float = 0.0
    ops: Mapping[OpKind, int] = field(default_factory=dict)
    ops_source: OpsSource = "counted"
    purpose: str | None = None
    """Of an LLM call; None where there was none."""
    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reserved_tokens: int = 0
    """What an LLM call may take, while it is under way: calls at once must not meet a limit that each alone keeps."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What an architecture was worth on one kind of questions over this collection, and what it cost, per question."""

    arch: str
    questions: int
    quality: float
    """0 to 1, mean of the matrix's quality measure."""
    ops: float
    llm_calls: float
