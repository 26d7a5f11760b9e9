"""Ingestion end to end against embedding the same chunks alone, by stage, over a corpus that is doubled."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from app.adapters.bm25 import Bm25Encoder
from app.adapters.figures_sqlite import SqliteFigures
from app.opening import index_stamp, open_store
from app.ports import Embedder
from app.settings import Settings
from app.types import FloatArray
from evals.bench.measures import Measure, Say, Scale
from evals.errors import SubjectError
from ingest.chunking import read_chunker
from ingest.indexing import Index, Tally
from ingest.pipeline import Batch, Options, Outcome
from ingest.sources import find_sources

COLLECTION = "bench"
TIMEOUT_S = 600.0
"""Per file: a slow machine is to be measured, too."""


class NotingEmbedder:
    """Keeps the texts that it is given."""

    def __init__(self, behind: Embedder) -> None:
        self.name = behind.name
        self.dimensions = behind.dimensions
        self.texts: list[str] = []
        self.queries = behind.queries
        self._behind = behind

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        self.texts += texts
        return await self._behind.passages(texts)


def copied(files: Sequence[Path], folder: Path, copies: int) -> list[Path]:
    """The PDFs so many times, each copy with bytes of its own, so that it is a filing of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for copy in range(copies):
        for file in files:
            path = folder / f"{file.stem}-{copy}.pdf"
            path.write_bytes(file.read_bytes() + f"\n% {folder.name} {copy}\n".encode())
            written.append(path)
    return written


@asynccontextmanager
async def open_index(folder: Path, embedder: Embedder) -> AsyncIterator[Index]:
    """A new index of the default chunker and BM25 in a folder."""
    settings = Settings(data_dir=folder, collection=COLLECTION, qdrant_url=None)
    stamp = index_stamp(settings.model_copy(update={"splade_model": "none"}), embedder, read_chunker("structure").name)
    async with open_store(settings, stamp, create=True) as store:
        yield Index(store, embedder, {"bm25": Bm25Encoder()}, SqliteFigures(settings.figures_file))


async def ingest_once(
    files: Sequence[Path], folder: Path, embedder: Embedder, workers: int, *, graph: bool = True
) -> tuple[Tally, float]:
    """The tally and the seconds from first file to last record. Raises SubjectError where a file fails."""
    failed: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        if outcome.outcome == "failed":
            failed.append(outcome)

    async with open_index(folder, embedder) as index:
        batch = Batch(
            index,
            read_chunker("structure"),
            Options(workers=workers, timeout_s=TIMEOUT_S, graph=graph, ocr="off"),
            note,
        )
        began = time.perf_counter()
        await batch.run(list(find_sources([str(file) for file in files])), ())
        seconds = time.perf_counter() - began
    if failed:
        raise SubjectError(f"{failed[0].source.shown} could not be ingested: {failed[0].detail}")
    return batch.tally, seconds


async def ingestion(
    files: Sequence[Path], folder: Path, embedder: Embedder, scale: Scale, say: Say
) -> tuple[list[Measure], Path]:
    """The measures, and the data directory of the largest corpus ingested.

    Embedding alone is one call with all chunks, sorted by length, straight after the ingestion that it is held against.
    """
    found: list[Measure] = []
    for copies in scale.copies:
        corpus = copied(files, folder / f"corpus-{copies}", copies)
        for workers in scale.workers:
            runs = []
            for number in range(scale.ingestions):
                say(f"ingesting {len(corpus)} filings with {workers} parsing processes, run {number + 1}")
                last = folder / f"index-{copies}-{workers}-{number}"
                noting = NotingEmbedder(embedder)
                tally, seconds = await ingest_once(corpus, last, noting, workers)
                began = time.perf_counter()
                await embedder.passages(sorted(noting.texts, key=len))
                runs.append((tally, seconds, time.perf_counter() - began))
            found += _of_runs(f"ingestion/{copies}x, {workers} parsing", runs)
    return found, last


def _of_runs(name: str, runs: Sequence[tuple[Tally, float, float]]) -> list[Measure]:
    stages = [
        Measure(f"{name}/{stage} busy", "s", tuple(tally.seconds[stage] for tally, _, _ in runs))
        for stage in runs[0][0].seconds
    ]
    return [
        Measure(f"{name}/over embedding", "ratio", tuple(whole / alone for _, whole, alone in runs), aim=1.25),
        Measure(f"{name}/end to end", "s", tuple(whole for _, whole, _ in runs)),
        Measure(f"{name}/embedding alone", "s", tuple(alone for _, _, alone in runs)),
        Measure(f"{name}/pages", "1/s", tuple(tally.pages / whole for tally, whole, _ in runs), "higher"),
        Measure(f"{name}/chunks", "1/s", tuple(tally.chunks / whole for tally, whole, _ in runs), "higher"),
        *stages,
    ]
