"""Parsed filings into the store: embedded in windows across filings, each filing's record last."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from app.ports import Embedder, SparseEncoder, WritableFigures, WritableStore
from app.types import Chunk, ChunkVectors, Document, LegName, Removed, SparseVector
from ingest.captioning import CaptionCost
from ingest.parsing import Parsed
from ingest.relating import RelatingCost
from ingest.situating import SituatingCost
from ingest.sources import Source

_WINDOW = 256
"""Chunks embedded and written at once at most: sorted by length, so that the model pads little."""
_ENOUGH = 64
"""Chunks for which the model need not wait for more."""


@dataclass(slots=True)
class Tally:
    """How far a batch is; read by whoever shows progress."""

    pages: int = 0
    """Parsed."""
    chunks_parsed: int = 0
    chunks: int = 0
    """Written."""
    pictures: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By document id, pages read as pictures, and how many there are to read."""
    seconds: dict[str, float] = field(default_factory=lambda: {"parse": 0.0, "graph": 0.0, "embed": 0.0, "write": 0.0})
    """Busy time by stage: parsing summed over its processes, and the graph's part of it."""

    @property
    def ocr_pages(self) -> tuple[int, int]:
        """Read as pictures, and to read, in all files begun so far."""
        return sum(done for done, _ in self.pictures.values()), sum(of for _, of in self.pictures.values())

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - began


@dataclass(slots=True)
class Filing:
    """A parsed filing on its way into the store."""

    source: Source
    parsed: Parsed
    replaces: bool
    """The index holds it already: an older version, or the same bytes for other groups."""
    unwritten: int
    """Chunks not yet in the store."""
    captions: CaptionCost | None = None
    """Where pictures are put into words."""
    held: bool = False
    """The store has a record of this very document, finished or not."""
    related: RelatingCost | None = None
    """Where a model reads relations."""
    situated: SituatingCost | None = None
    """Where a model says where chunks stand."""


Filings: TypeAlias = "asyncio.Queue[Filing | None]"
"""None is the end."""
_Piece: TypeAlias = tuple[Filing, Chunk, str]
"""The text is what is embedded and tokenised."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Chunks of one or several filings, and their vectors."""

    pieces: list[_Piece]
    vectors: list[ChunkVectors]


@dataclass(frozen=True, slots=True)
class Index:
    """What filings are written into, and the models that make its vectors."""

    store: WritableStore
    embedder: Embedder
    sparse: Mapping[LegName, SparseEncoder]
    figures: WritableFigures | None = None
    originals: Path | None = None
    """Folder of the uploaded files that are kept for page images, by document id."""

    async def remove(self, document: Document) -> Removed:
        """Everything that came from a document.

        Its record says `ingesting` first and goes last: nobody is shown a document of which half is gone, and a killed
        removal is one of the unfinished records that every batch removes.
        """
        await self.store.put_document(replace(document, state="ingesting", ingested_at=""))
        for each in document.replaces:
            await self._erase(each)
        return await self._erase(document.id)

    async def _erase(self, document_id: str) -> Removed:
        """Of a document that nobody sees."""
        figures = await self.figures.delete(document_id) if self.figures else 0
        if self.originals:
            (self.originals / document_id).unlink(missing_ok=True)
        records = await self.store.delete_records(document_id)
        chunks, pages = await self.store.delete_document(document_id)
        return Removed(chunks, pages, figures, records)

    async def publish(self, document: Document) -> None:
        """Show a document that is whole, and remove what it replaces, of which nothing is seen from that moment.

        The moment is the writing of one record. The figures, a store of their own, follow it where they are another
        version's: until the next run they are seen or hidden with what a killed one left.
        """
        if self.figures and not document.replaces:
            await self.figures.show(document.id)
        await self.store.put_document(document)
        if document.replaces:
            await self.complete(document)

    async def complete(self, document: Document) -> None:
        """The rest of `publish`: also what a killed one left."""
        if self.figures:
            await self.figures.show(document.id, document.replaces)
        for each in document.replaces:
            await self._erase(each)
        await self.store.put_document(replace(document, replaces=()))


class Indexer:
    """Three stages joined by short queues, so that the model is busy while pages are stored and vectors written."""

    def __init__(
        self,
        index: Index,
        tally: Tally,
        *,
        taken_in: Callable[[Filing], None],
        finished: Callable[[Filing, Document], Awaitable[None]],
    ) -> None:
        """`finished` is called with each filing whose every part is stored, and its record, yet to be published."""
        self._store = index.store
        self._figures = index.figures
        self._embedder = index.embedder
        self._sparse = index.sparse
        self._tally = tally
        self._taken_in = taken_in
        self._finished = finished

    async def run(self, filings: Filings) -> None:
        """Until the end of `filings`."""
        pieces: asyncio.Queue[_Piece | None] = asyncio.Queue(2 * _WINDOW)
        windows: asyncio.Queue[_Window | None] = asyncio.Queue(1)
        async with asyncio.TaskGroup() as stages:
            stages.create_task(self._take_in(filings, pieces))
            stages.create_task(self._embed(pieces, windows))
            stages.create_task(self._write(windows))

    async def _take_in(self, filings: Filings, pieces: "asyncio.Queue[_Piece | None]") -> None:
        while (filing := await filings.get()) is not None:
            document = replace(filing.parsed.document, state="ingesting", ingested_at=_now())
            with self._tally.timed("write"):
                await self._store.put_document(document)
                if filing.held:  # it may have had more chunks: other groups, but also other captions or OCR
                    await self._store.delete_records(document.id)
                    if self._figures:
                        await self._figures.delete(document.id)
                    await self._store.delete_document(document.id)
                    await self._store.put_document(document)
                for pages in filing.parsed.pages():
                    await self._store.put_pages(document, pages)
                if self._figures:
                    await self._figures.put(document, filing.parsed.figures())
                await self._store.put_records(document.id, filing.parsed.records())
            said = filing.parsed.situations()
            for chunks in filing.parsed.chunks():
                for chunk in chunks:
                    text = f"{said[chunk.id]}\n{chunk.searchable}" if chunk.id in said else chunk.searchable
                    await pieces.put((filing, chunk, text))
            self._taken_in(filing)
        await pieces.put(None)

    async def _embed(self, pieces: "asyncio.Queue[_Piece | None]", windows: "asyncio.Queue[_Window | None]") -> None:
        ended = False
        while not ended:
            window, ended = await _fill(pieces)
            if not window:
                break
            window.sort(key=lambda piece: len(piece[2]))
            texts = [text for _, _, text in window]
            sparse = asyncio.create_task(asyncio.to_thread(self._encode_sparse, texts))
            with self._tally.timed("embed"):
                dense = await self._embedder.passages(texts)
            vectors = [ChunkVectors(*both) for both in zip(dense, await sparse, strict=True)]
            await windows.put(_Window(window, vectors))
        await windows.put(None)

    def _encode_sparse(self, texts: list[str]) -> list[dict[LegName, SparseVector]]:
        encoded = {name: encoder.passages(texts) for name, encoder in self._sparse.items()}
        return [{name: vectors[index] for name, vectors in encoded.items()} for index in range(len(texts))]

    async def _write(self, windows: "asyncio.Queue[_Window | None]") -> None:
        while (window := await windows.get()) is not None:
            with self._tally.timed("write"):
                await self._store.put_chunks([chunk for _, chunk, _ in window.pieces], window.vectors)
            self._tally.chunks += len(window.pieces)
            for filing, _, _ in window.pieces:
                filing.unwritten -= 1
                if not filing.unwritten:
                    await self._finish(filing)

    async def _finish(self, filing: Filing) -> None:
        document = replace(filing.parsed.document, state="ready", ingested_at=_now())
        with self._tally.timed("write"):
            await self._finished(filing, document)


async def _fill(pieces: "asyncio.Queue[_Piece | None]") -> tuple[list[_Piece], bool]:
    """The next window, and whether the queue has ended: what is there, but at least enough to be worth a run."""
    window: list[_Piece] = []
    while len(window) < _WINDOW and (len(window) < _ENOUGH or not pieces.empty()):
        piece = await pieces.get()
        if piece is None:
            return window, True
        window.append(piece)
    return window, False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
