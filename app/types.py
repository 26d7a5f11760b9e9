"""The nouns of the service. Frozen, slotted; no behaviour beyond arithmetic on themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float32]
Box: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1 in points (1/72 inch), origin at the page's top left, y downwards."""

OpKind = Literal["dense", "sparse", "late", "rerank", "graph"]
OpsSource = Literal["counted", "reported", "bound"]
ChunkKind = Literal["text", "table", "figure"]
AbstainReason = Literal["no_passages", "not_supported", "off_corpus", "limit"]
LegName = Literal["dense", "bm25", "splade"]
EntityType = Literal["company", "person", "place", "product", "segment", "theme", "concept"]
JobState = Literal["queued", "parsing", "indexing", "done", "failed"]
JobOutcome = Literal["created", "unchanged", "replaced"]
Unsupported = Literal["drop", "flag", "keep"]
"""What becomes of a sentence that a model wrote and no passage it cites carries."""
OcrMode = Literal["auto", "off", "force"]
"""Read as pictures: pages whose text layer is missing or garbled, none, or all."""
Operator = Literal["$eq", "$ne", "$in", "$nin", "$gte", "$lte", "$gt", "$lt"]


@dataclass(frozen=True, slots=True)
class DocumentMeta:
    """What is known about one filing; every field but title, source, tenant and acl may be unknown (None)."""

    title: str
    source: str
    """Where the bytes came from, a path or URL; identifies the logical filing."""
    company: str | None = None
    cik: str | None = None
    ticker: str | None = None
    form: str | None = None
    """10-K, 10-Q, 8-K, 20-F, AR (annual report), ER (earnings release)."""
    fiscal_year: int | None = None
    fiscal_period: str | None = None
    """FY, Q1, Q2, Q3 or Q4, in the company's fiscal calendar."""
    period_end: str | None = None
    """ISO date on which the reported period ends."""
    filed: str | None = None
    """ISO date of filing."""
    sector: str | None = None
    tenant: str = "default"
    acl: tuple[str, ...] = ("public",)
    """Groups of which a reader must have at least one."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a page's text and where it stands."""

    start: int
    end: int
    """Slice of the page's text."""
    box: Box


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a filing. `text` is what is stored, quoted and checked; nothing else is ever cited."""

    number: int
    """Position in the filing, first is 1."""
    text: str
    words: tuple[Word, ...] = ()
    width: float = 612.0
    height: float = 792.0
    """Points, after rotation, of the visible (crop) box; 0 in a filing without pages of its own (HTML, text)."""
    label: str | None = None
    """Page number as printed, where it differs or is known."""
    ocr: bool = False
    """Its text, or some of it, was recognised in a picture."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable slice of one page."""

    id: str
    """UUIDv5 of (document id, chunker version, ordinal)."""
    document_id: str
    ordinal: int
    """Position in the document, first is 0."""
    page: int
    """First is 1."""
    start: int
    end: int
    """`text` is exactly the page's text[start:end]."""
    text: str
    context: str
    """Lines put before `text` for embedding and reading: document, section, a split table's repeated header."""
    kind: ChunkKind
    section: str | None
    meta: DocumentMeta
    columns: tuple[str, ...] = ()
    """Of a table: the header of each value column ("Year ended December 31, 2022"), "" where none was found."""
    unit: str | None = None
    """Of a table: "in millions, except per share data", as printed."""
    parent: tuple[int, int] | None = None
    """What is read where the chunk is found, the page's text[parent[0]:parent[1]]; None is the chunk alone."""

    @property
    def searchable(self) -> str:
        """What is embedded, tokenised and shown to a generator."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class Document:
    """The record of one ingested filing; written last, so that its presence means the filing is whole."""

    id: str
    """`<slug of the file's stem>-<10 hex digits of the hash of tenant and content>`."""
    sha256: str
    meta: DocumentMeta
    pages: int
    chunks: int
    empty_pages: tuple[int, ...] = ()
    """Numbers of the pages without text."""
    ocr_pages: tuple[int, ...] = ()
    """Numbers of the pages whose text, or some of it, was recognised in a picture."""
    repaired: bool = False
    """The file was damaged or its end is missing; text may be missing."""
    state: Literal["ingesting", "ready"] = "ready"
    ingested_at: str = ""
    """ISO time, UTC."""
    replaces: tuple[str, ...] = ()
    """Ids of documents that nobody sees since this one is seen, and that are not yet removed."""
    given: Mapping[str, str | int] = field(default_factory=dict, hash=False)
    """Metadata that was given beside the file and outranks what was read; `acl` is its groups joined by commas."""


@dataclass(frozen=True, slots=True)
class Removed:
    """How much a document's removal removed."""

    chunks: int
    pages: int
    figures: int
    records: int = 0
    """Of the graph: entities and relations."""


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

    def visible_to(self, access: "Access") -> bool:
        return self.tenant == access.tenant and not set(self.acl or self.groups).isdisjoint(access.groups)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a filing, in a table's cell or an inline XBRL fact, and what it says."""

    document_id: str
    page: int
    """First is 1."""
    chunk_id: str | None
    """The chunk that holds it; None for a fact outside every chunk."""
    start: int
    end: int
    """The number as printed is the page's text[start:end]."""
    label: str
    """Of its row, behind the heading it stands under ("Earnings per share: Basic"); or a fact's concept in words."""
    statement: str | None
    """Title of the table, statement or note it stands in."""
    value: Decimal
    """With sign (parentheses are negative) and before `scale`."""
    scale: int
    """Power of ten that the table's unit line gives: 6 for "in millions"; 0 where none applies."""
    unit: str | None
    """USD, shares, USD/share, percent, year, ...; None where unknown."""
    column: str | None = None
    """Header of its column, as printed."""
    period_end: str | None = None
    """ISO date."""
    period_months: int | None = None
    """Length of the period; 0 is an instant; None where unknown."""
    concept: str | None = None
    """XBRL name (us-gaap:Revenues), of facts alone."""
    dimensions: str | None = None
    """XBRL members that qualify the fact; None is the whole company."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query over the figures gave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False
    """More rows matched than were asked for."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a filing speaks of something."""

    chunk_id: str
    page: int
    """First is 1."""
    start: int
    end: int
    """What is meant is the page's text[start:end]."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One filing's mentions of one entity; the entity itself is the group of these records by key."""

    document_id: str
    key: str
    """`company:0000012345` (CIK), `company:acme`, `person:acme/jane doe`, `theme:cybersecurity`, ..."""
    type: EntityType
    name: str
    """As most often printed."""
    aliases: tuple[str, ...]
    """Normalised names under which a question finds it, the ticker among them."""
    mentions: tuple[Mention, ...]
    """In reading order; the first of them where there are very many."""
    count: int
    """Of all mentions."""
    meta: DocumentMeta


@dataclass(frozen=True, slots=True)
class Relation:
    """One filing's statement that an entity stands in a relation to another."""

    document_id: str
    subject: str
    """Entity key."""
    predicate: str
    """auditor, officer, subsidiary, customer, supplier, competitor, risk, ...: `object` is the `subject`'s auditor."""
    object: str
    """Entity key."""
    subject_name: str
    object_name: str
    detail: str | None
    """What else the text says of it: an officer's title, a customer's share, a risk factor's heading."""
    mention: Mention
    """The text that states it."""
    meta: DocumentMeta
    model: str | None = None
    """Name of the language model that read it; None where a rule did."""


@dataclass(frozen=True, slots=True)
class IndexStamp:
    """What a collection was built with; opening it with anything else is refused."""

    collection: str
    embedder: str
    dimensions: int
    sparse: str
    """Name and parameters of the BM25 encoder."""
    chunker: str
    """Name and version of the chunker, parameters included."""
    schema: int = 1
    splade: str = "none"
    """Name of the learned sparse model."""


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Strictly increasing uint32 indices, finite weights of the same length."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ChunkVectors:
    dense: FloatArray
    """Shape (dimensions,), unit norm."""
    sparse: Mapping[LegName, SparseVector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison on a payload field; several are joined by AND."""

    field: str
    op: Operator
    value: str | int | tuple[str | int, ...]
    """A tuple for $in and $nin, a scalar otherwise."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks. Applied inside every store call, before top-k."""

    tenant: str = "default"
    groups: tuple[str, ...] = ("public",)


@dataclass(frozen=True, slots=True)
class Filter:
    conditions: tuple[Condition, ...] = ()
    access: Access = Access()


@dataclass(frozen=True, slots=True)
class Leg:
    """One search over one named vector."""

    name: LegName
    query: FloatArray | SparseVector
    limit: int


@dataclass(frozen=True, slots=True)
class LegRank:
    rank: int
    """Position in this leg, first is 1."""
    score: float
    """This leg's own score: cosine for dense, BM25 sum for bm25."""


@dataclass(frozen=True, slots=True)
class Hit:
    chunk: Chunk
    rank: int
    """Position in the list this hit came from, first is 1."""
    score: float
    """Higher is better; comparable only inside that list."""
    legs: Mapping[str, LegRank] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class External:
    """A passage from outside the filings: a hint where to look, never cited."""

    source: str
    text: str
    score: float
    """Higher is better."""


@dataclass(frozen=True, slots=True)
class LegResult:
    hits: tuple[Hit, ...]
    ops: int
    """Similarity evaluations this leg made."""
    ops_source: OpsSource


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


@dataclass(frozen=True, slots=True)
class Function:
    """What a model may call instead of writing text."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that a model wants called."""

    name: str
    arguments: str
    """JSON, as far as the model kept to it."""


@dataclass(frozen=True, slots=True)
class Calling:
    """A prompt as it is put to an endpoint with function calling: of these functions at least one is to be called."""

    messages: tuple[tuple[Literal["system", "user", "assistant"], str], ...]
    functions: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a generator: `messages` for a model, `question` and `passages` for an answer to rest on."""

    purpose: str
    """answer, hyde, grade, plan, ...: the label under which the call is billed."""
    messages: tuple[tuple[Literal["system", "user", "assistant"], str], ...]
    question: str = ""
    passages: tuple[Hit, ...] = ()
    max_tokens: int = 512
    temperature: float = 0.0
    json_schema: Mapping[str, Any] | None = None
    logprobs: bool = False
    """Whether the text's probability is wanted too."""
    picture: bytes | None = None
    """PNG that is shown with the last message."""
    calling: Calling | None = None
    """What stands for `messages` and `json_schema` where the endpoint calls functions."""

    @property
    def characters(self) -> int:
        """Of what a model is to read, in the longer of its two forms; four are about a token."""
        read = sum(len(text) for _, text in self.messages)
        if self.calling is None:
            return read
        declared = sum(len(f"{each.name}{each.description}{each.parameters}") for each in self.calling.functions)
        return max(read, declared + sum(len(text) for _, text in self.calling.messages))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a model is shown of a passage."""

    marker: int
    """Rank of the passage, first is 1: what `[n]` refers to."""
    text: str
    """Sentences and table rows in the passage's order, a line each; a row's values with their columns' headings."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The best of several passages within a budget of tokens."""

    excerpts: tuple[Excerpt, ...]
    """In the passages' order; a passage of which nothing fits is left out."""
    ops: Mapping[OpKind, int] = field(default_factory=dict)
    """Similarity evaluations made while choosing."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What a generator wrote. In text for purpose `answer`, `[n]` refers to the prompt's passages[n-1]."""

    text: str
    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    ops: Mapping[OpKind, int] = field(default_factory=dict)
    """Similarity evaluations made while writing (the extractive generator scores sentences)."""
    abstained: AbstainReason | None = None
    finish_reason: str = "stop"
    calls: tuple[Call, ...] = ()
    """Where the prompt was put as `calling`; the text is then what was said beside them, mostly nothing."""
    logprob: float | None = None
    """Natural logarithm of the text's probability, where the prompt wanted it and the generator tells."""


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


@dataclass(frozen=True, slots=True)
class Measured:
    """What an architecture was worth on one kind of questions over this collection, and what it cost, per question."""

    arch: str
    questions: int
    quality: float
    """0 to 1, mean of the matrix's quality measure."""
    ops: float
    llm_calls: float


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    k: int = 10
    """Passages to answer from."""
    where: Filter = Filter()
    unsupported: Unsupported = "drop"


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
