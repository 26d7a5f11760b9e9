"""What the architectures and the ingestion need from the outside world."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from app.types import (
    Access,
    Chunk,
    ChunkVectors,
    Document,
    Figure,
    Filter,
    FloatArray,
    Generation,
    IndexStamp,
    Leg,
    LegResult,
    Page,
    Prompt,
    Rows,
    SparseVector,
)


class Store(Protocol):
    """One collection, read. Every call applies `access` (inside the filter) in the engine, before top-k."""

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


class WritableStore(Store, Protocol):
    """The same collection, written. Each call is durable when it returns and may be repeated without effect."""

    async def put_document(self, document: Document) -> None: ...

    async def put_pages(self, document: Document, pages: Sequence[Page]) -> None: ...

    async def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[ChunkVectors]) -> None: ...

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
        """Replaces all that the document had."""

    async def delete(self, document_id: str) -> int:
        """Returns how many were removed."""

    async def counts(self) -> Mapping[str, int]:
        """Figures by document id, for verification."""


class Embedder(Protocol):
    """Texts to unit vectors, shape (n, dimensions), float32."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def passages(self, texts: Sequence[str]) -> FloatArray: ...

    async def queries(self, texts: Sequence[str]) -> FloatArray: ...


class SparseEncoder(Protocol):
    """Texts to sparse vectors. Pure and quick (BM25), so not async."""

    @property
    def name(self) -> str:
        """Name and parameters: part of the index stamp."""

    def passages(self, texts: Sequence[str]) -> list[SparseVector]: ...

    def queries(self, texts: Sequence[str]) -> list[SparseVector]: ...


class Reranker(Protocol):
    """A cross-encoder: one score per passage, higher is better."""

    @property
    def name(self) -> str: ...

    async def score(self, query: str, passages: Sequence[str]) -> list[float]: ...


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
