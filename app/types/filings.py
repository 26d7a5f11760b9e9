"""What is read of a filing and kept of it: pages, chunks, the record of the whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Box: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1 in points (1/72 inch), origin at the page's top left, y downwards."""
ChunkKind = Literal["text", "table", "figure"]
OcrMode = Literal["auto", "off", "force"]
"""Read as pictures: pages whose text layer is missing or garbled, none, or all."""


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
