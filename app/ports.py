"""What the architectures and the ingestion need from the outside world."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

from app.types import (
    Access,
    Box,
    Chunk,
    ChunkVectors,
    Document,
    Entity,
    External,
    Figure,
    Filter,
    FloatArray,
    Generation,
    Hit,
    IndexStamp,
    Job,
    Leg,
    LegResult,
    Packed,
    Page,
    Prompt,
    Relation,
    Removed,
    Rows,
    SparseVector,
)

R = TypeVar("R", Entity, Relation)
RecordField = Literal["keys", "aliases", "chunks", "type", "predicate"]
"""`keys`: the entity's, or a relation's subject and object; `chunks`: ids of those with a mention."""


class Store(Protocol):
    """One collection, read. Every call applies `access` (inside the filter) in the engine, before top-k.

    In the same way nothing is seen of a document whose record says `ingesting` or that another record replaces, but by
    `documents(None)` and `chunk_ids`: writing one record as `ready` shows a new version and hides the old one at once.
    """

    async def stamp(self) -> IndexStamp:
        """What the collection was built with; also the liveness check. Raises StoreUnavailable."""

    async def search(self, legs: Sequence[Leg], where: Filter) -> list[LegResult]:
        """All legs in one round trip; results in the legs' order, hits best first, ties by chunk id."""

    async def pages(self, keys: Sequence[tuple[str, int]], access: Access) -> list[Page | None]:
        """Pages by (document id, page number), in the keys' order; None where absent or not the caller's."""

    async def documents(self, access: Access | None = None) -> list[Document]:
        """Records ordered by id. None as access: every tenant's, unfinished ones included (for the ingestion)."""

    async def count(self, where: Filter) -> int:
        """Chunks that match, exactly."""

    async def dense_sample(self, where: Filter, limit: int) -> FloatArray:
        """Dense vectors of the first `limit` matching chunks by id, which is a hash; shape (chunks, dimensions)."""

    async def chunks(self, ids: Sequence[str], where: Filter) -> list[Chunk]:
        """Those of these chunks that match, in the ids' order."""

    async def records(self, kind: type[R], where: Filter, matching: Mapping[RecordField, Sequence[str]]) -> list[R]:
        """The graph's entities or relations, in a stable order.

        Each field of `matching` must hold one of its values. `where` is applied as far as it is about filings.
        """


class WritableStore(Store, Protocol):
    """The same collection, written. Each call is durable when it returns and may be repeated without effect."""

    async def put_document(self, document: Document) -> None: ...

    async def put_pages(self, document: Document, pages: Sequence[Page]) -> None: ...

    async def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[ChunkVectors]) -> None: ...

    async def put_records(self, document_id: str, records: Sequence[Entity | Relation]) -> None:
        """Replaces all that the graph had of the document."""

    async def delete_records(self, document_id: str) -> int:
        """Remove all that the graph has of the document. Returns how many records."""

    async def delete_document(self, document_id: str) -> tuple[int, int]:
        """Remove chunks, then pages, then the record. Returns (chunks, pages) removed."""

    async def chunk_ids(self, document_id: str) -> list[str]:
        """Ids of a document's chunks, for verification."""


class Figures(Protocol):
    """The numbers of every filing, as a table to query."""

    async def query(self, sql: str, access: Access, *, limit: int = 100, timeout_s: float = 2.0) -> Rows:
        """One SELECT over the view `figures`, which holds what the caller may see. Raises InvalidQuery, Timeout."""


class WritableFigures(Figures, Protocol):
    """The same table, written. Each call is durable when it returns and may be repeated without effect."""

    async def put(self, document: Document, figures: Sequence[Figure]) -> None:
        """Replaces all that the document had. Those of a document that is being ingested are not seen until `show`."""

    async def show(self, document_id: str, instead_of: Sequence[str] = ()) -> None:
        """The document's figures are seen from now on, and those of others are gone, at one moment."""

    async def delete(self, document_id: str) -> int:
        """Returns how many were removed."""

    async def counts(self) -> Mapping[str, int]:
        """Figures by document id, for verification."""

    async def of_document(self, document_id: str) -> list[Figure]:
        """In the order they were put."""


class Ingestion(Protocol):
    """Takes files in and documents out while the service answers. All that is done is done for one caller."""

    async def submit(
        self, filename: str, content: AsyncIterator[bytes], access: Access, acl: tuple[str, ...] | None = None
    ) -> Job:
        """Keep the file and queue it. Raises InvalidInput, PayloadTooLarge, UnsupportedMedia, Busy, Unavailable."""

    async def job(self, job_id: str, access: Access) -> Job | None:
        """None where there is none, or not the caller's."""

    async def jobs(self, access: Access) -> list[Job]:
        """The caller's, latest first. Old finished ones are forgotten."""

    async def delete(self, document_id: str, access: Access) -> Removed:
        """Remove all that came from a document. Raises NotFound where there is none, or not the caller's."""

    def queued(self) -> int:
        """Jobs not yet finished, of every tenant."""

    def follow(self, listener: Callable[[Job], None]) -> None:
        """Called with every job that has finished, from now on; must not block."""


class PageImages(Protocol):
    """Pages of a document's original file as pictures."""

    async def png(self, document: Document, number: int, boxes: Sequence[Box], dpi: int) -> bytes:
        """Page `number` (first is 1) with the boxes marked.

        Raises NotFound where there is no picture of it, Conflict where its file has changed since, DocumentError.
        """


class Embedder(Protocol):
    """Texts to unit vectors, shape (n, dimensions), float32."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def passages(self, texts: Sequence[str]) -> FloatArray: ...

    async def queries(self, texts: Sequence[str]) -> FloatArray: ...


class TokenEmbedder(Protocol):
    """Texts to a unit vector per token, for late interaction."""

    async def tokens(self, texts: Sequence[str]) -> list[FloatArray]:
        """Per text shape (tokens, dimensions). Raises Unavailable where the model has none."""


class SparseEncoder(Protocol):
    """Texts to sparse vectors. Pure, and but for a model's quick (BM25), so not async."""

    @property
    def name(self) -> str:
        """Name and parameters: part of the index stamp."""

    def passages(self, texts: Sequence[str]) -> list[SparseVector]: ...

    def queries(self, texts: Sequence[str]) -> list[SparseVector]: ...


class Captioner(Protocol):
    """Puts a picture into words."""

    @property
    def name(self) -> str: ...

    async def caption(self, png: bytes) -> Generation:
        """`llm_calls` is 0 where it was at hand. Raises GeneratorUnavailable, Busy, UpstreamFailed, Timeout."""


class Reranker(Protocol):
    """A cross-encoder: one score per passage, higher is better."""

    @property
    def name(self) -> str: ...

    async def score(self, query: str, passages: Sequence[str]) -> list[float]: ...


class Packer(Protocol):
    """Chooses what of the passages a model is shown."""

    async def pack(self, question: str, passages: Sequence[Hit]) -> Packed: ...


class ExternalSearch(Protocol):
    """Looks outside the index: a folder, another collection, the web."""

    async def search(self, query: str, limit: int) -> list[External]:
        """Best first. Raises Unavailable."""


class Generator(Protocol):
    """Writes text. Raises GeneratorUnavailable, UpstreamFailed, Timeout."""

    @property
    def name(self) -> str: ...

    @property
    def purposes(self) -> frozenset[str] | None:
        """Prompt purposes it can serve; None is any. The extractive generator serves `answer` alone."""

    async def generate(self, prompt: Prompt) -> Generation: ...

    def stream(self, prompt: Prompt) -> AsyncIterator[str | Generation]:
        """Pieces of text, then one Generation with the whole text and the usage."""
