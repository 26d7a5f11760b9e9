"""What the graph adds to an index: time and size per 1,000 pages with and without it, over a growing corpus."""

import time
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from app.graph.overview import Overviews
from app.ports import Embedder
from app.types import Filter
from evals.bench.ingestion import copied, ingest_once, open_index
from evals.bench.measures import Measure, Say, Scale

_PAGES = 1000
_MIB = 1 << 20


async def graph_growth(
    files: Sequence[Path], folder: Path, embedder: Embedder, scale: Scale, say: Say
) -> list[Measure]:
    """At each size of the corpus, with the graph and without: seconds, MiB on disk, records, all per 1,000 pages.

    And what reading the whole graph for its communities takes, which a question about the whole pays once per change.
    """
    found: list[Measure] = []
    for copies in scale.copies:
        corpus = copied(files, folder / f"graph-corpus-{copies}", copies)
        for kept in (False, True):
            name = f"graph/{copies}x, {'with' if kept else 'without'}"
            seconds, sizes, pages, busy = [], [], 0, []
            for number in range(scale.ingestions):
                say(f"ingesting {len(corpus)} filings {'with' if kept else 'without'} the graph, run {number + 1}")
                index = folder / f"graph-index-{copies}-{kept}-{number}"
                tally, took = await ingest_once(corpus, index, embedder, 1, graph=kept)
                pages = tally.pages
                seconds.append(took * _PAGES / pages)
                busy.append(tally.seconds["graph"] * _PAGES / pages)
                sizes.append(await to_thread.run_sync(on_disk, index) / _MIB * _PAGES / pages)
            found.append(Measure(f"{name}/end to end per 1,000 pages", "s", tuple(seconds)))
            found.append(Measure(f"{name}/on disk per 1,000 pages", "MiB", tuple(sizes)))
            if kept:
                found.append(Measure(f"{name}/extraction busy per 1,000 pages", "s", tuple(busy)))
                found += await _communities(name, index, embedder, pages, scale.rounds)
    return found


async def _communities(name: str, folder: Path, embedder: Embedder, pages: int, rounds: int) -> list[Measure]:
    async with open_index(folder, embedder) as index:
        times, read = [], 0
        for _ in range(rounds):
            began = time.perf_counter()
            overview = await Overviews(index.store).of(Filter(), await index.store.documents())
            times.append(time.perf_counter() - began)
            read = overview.read
    return [
        Measure(f"{name}/records per 1,000 pages", "records", (read * _PAGES / pages,)),
        Measure(f"{name}/communities derived", "s", tuple(times)),
    ]


def on_disk(folder: Path) -> int:
    """Bytes that its files take, holes in them left out."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
