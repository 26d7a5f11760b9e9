"""Small PDFs, and an embedder and an index to put them in, for the tests of the batch."""

import hashlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
from reportlab.pdfgen.canvas import Canvas

from app.adapters.bm25 import Bm25Encoder
from app.adapters.figures_sqlite import SqliteFigures
from app.adapters.qdrant_edge import EdgeStore
from app.settings import Settings
from app.types import FloatArray, IndexStamp
from ingest.chunking import StructureChunker, read_chunker
from ingest.indexing import Index

DIMENSIONS = 8


def write_pdf(path: Path, *pages: str) -> Path:
    """One PDF page for each text, one line for each of its lines; the same texts give the same bytes.

    What follows a tab stands in a column of its own.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas = Canvas(str(path), invariant=1)
    for text in pages:
        for number, line in enumerate(text.split("\n")):
            label, *cells = line.split("\t")
            canvas.drawString(72, 720 - 14 * number, label)
            for column, cell in enumerate(cells):
                canvas.drawRightString(380 + 90 * column, 720 - 14 * number, cell)
        canvas.showPage()
    canvas.save()
    return path


def prose(name: str, sentences: int = 12) -> str:
    """Sentences that differ from those of any other name."""
    return "\n".join(
        f"In the year under review {name} sold {n}00 units in region {n}." for n in range(1, sentences + 1)
    )


def cover(company: str) -> str:
    """Of an annual report: whose it is, and with whom it competes."""
    lines = (
        "FORM 10-K",
        "For the fiscal year ended December 31, 2023",
        company,
        "(Exact name of registrant as specified in its charter)",
        "Item 1. Business",
        f"Our competitors include Rival of {company}, Birch Flour Corp and Dogwood LLC.",
        "In May we acquired Elm Bakeries, Inc. for $12 million.",
    )
    return "\n".join(lines)


def statement(name: str, first: int = 1) -> str:
    """A table of three rows and two years, whose six numbers begin with `first`."""
    rows = [
        f"{label} of {name}\t{first}{n},{n}00\t{first}{n},{n}50" for n, label in enumerate(("Sales", "Cost", "Tax"), 1)
    ]
    return "\n".join(["(in millions)\t2023\t2022", *rows])


def write_corpus(folder: Path, files: int = 6, pages: int = 5) -> list[Path]:
    return [
        write_pdf(
            folder / f"filing-{f}.pdf",
            *(f"{statement(f'firm {f}', p)}\n\n{prose(f'firm {f} page {p}', 30)}" for p in range(1, pages + 1)),
        )
        for f in range(1, files + 1)
    ]


class HashEmbedder:
    """A text's vector depends on the text alone; optionally slow, so that a test can interrupt it."""

    name = "hash"
    dimensions = DIMENSIONS

    def __init__(self, seconds_per_text: float = 0.0) -> None:
        self.seconds_per_text = seconds_per_text
        self.windows: list[int] = []

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        self.windows.append(len(texts))
        time.sleep(self.seconds_per_text * len(texts))  # noqa: ASYNC251 - stands for work that nothing interrupts
        return np.stack([_unit(text) for text in texts])

    async def queries(self, texts: Sequence[str]) -> FloatArray:
        return await self.passages(texts)

    def close(self) -> None:
        """It holds nothing."""


def _unit(text: str) -> FloatArray:
    digest = hashlib.sha256(text.encode()).digest()[:DIMENSIONS]
    vector = np.frombuffer(digest, np.uint8).astype(np.float32) + 1
    unit: FloatArray = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


def stamp(collection: str = "filings", chunker: str = StructureChunker().name) -> IndexStamp:
    return IndexStamp(collection, HashEmbedder.name, DIMENSIONS, Bm25Encoder().name, chunker)


@asynccontextmanager
async def open_embedded(settings: Settings, create: bool) -> AsyncIterator[Index]:
    """The embedded store of the settings with the hashing embedder, as slow as SECONDS_PER_TEXT says."""
    chunker = read_chunker(settings.chunker).name if create else ""
    store = EdgeStore.open(settings.index_dir, stamp(settings.collection, chunker), create=create)
    try:
        seconds = float(os.environ.get("SECONDS_PER_TEXT", "0"))
        yield Index(store, HashEmbedder(seconds), {"bm25": Bm25Encoder()}, SqliteFigures(settings.figures_file))
    finally:
        store.close()


if __name__ == "__main__":
    import sys

    from ingest.cli import run

    sys.exit(run(sys.argv[1:], open_embedded))
