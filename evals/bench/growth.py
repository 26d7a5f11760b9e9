"""What a search costs as the index grows: invented chunks, unit vectors and words drawn by a power law."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

import numpy as np

from app.adapters.bm25 import Bm25Encoder
from app.adapters.extractive import ExtractiveGenerator
from app.architectures.hybrid import Hybrid
from app.ports import Embedder, WritableStore
from app.tools import Ports, Tools
from app.types import Chunk, ChunkVectors, Document, DocumentMeta, Filter, Leg, Question, SparseVector
from evals.bench.ingestion import open_index
from evals.bench.measures import Measure, Say, Scale, memory_mib, percentile

_WORDS = 20_000
_TERMS = 77
"""Per chunk: the default chunker's mean over real filings."""
_PER_DOCUMENT = 500
_PER_WRITE = 1000
_POOL = 100
_AIM_AT, _AIM_MS = 100_000, 60.0


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Drawn by Zipf's law: rank r has a probability in proportion to 1/r."""
    ranks = np.exp(rng.random(count) * np.log(_WORDS)).astype(int)
    return [f"t{rank}" for rank in ranks]


def chunks(first: int, last: int, dimensions: int) -> Iterator[tuple[list[Chunk], list[ChunkVectors]]]:
    """Those with numbers from `first` to before `last`, in lots for one write; the same on every run."""
    encoder = Bm25Encoder()
    index_of: dict[str, int] = {}
    for start in range(first, last, _PER_WRITE):
        rng = np.random.default_rng(start)
        numbers = range(start, min(start + _PER_WRITE, last))
        dense = rng.standard_normal((len(numbers), dimensions)).astype(np.float32)
        dense /= np.linalg.norm(dense, axis=1, keepdims=True)
        lot, vectors = [], []
        for number, row in zip(numbers, dense, strict=True):
            terms = words(rng, _TERMS)
            for term in set(terms) - index_of.keys():
                index_of[term] = encoder.queries([term])[0].indices[0]
            indices = sorted({index_of[term] for term in terms})
            weights = tuple(float(weight) for weight in rng.uniform(0.5, 2.0, len(indices)))
            lot.append(_chunk(number, " ".join(terms)))
            vectors.append(ChunkVectors(row, {"bm25": SparseVector(tuple(indices), weights)}))
        yield lot, vectors


def _document(number: int) -> Document:
    meta = DocumentMeta(f"Filing {number}", f"bench://{number}", f"Company {number}", form="10-K", fiscal_year=2020)
    return Document(f"filing-{number}", f"{number:064x}", meta, _PER_DOCUMENT, _PER_DOCUMENT)


def _chunk(number: int, text: str) -> Chunk:
    document = _document(number // _PER_DOCUMENT)
    ordinal = number % _PER_DOCUMENT
    id_ = str(UUID(int=number))
    return Chunk(id_, document.id, ordinal, ordinal + 1, 0, len(text), text, "", "text", None, document.meta)


async def growth(folder: Path, embedder: Embedder, scale: Scale, say: Say) -> list[Measure]:
    """At each of the sizes: one round trip of two legs, hybrid's whole retrieval, ops, memory, the time of a write."""
    found: list[Measure] = []
    async with open_index(folder, embedder) as index:
        ports = Ports(index.store, embedder, index.sparse, ExtractiveGenerator(embedder))
        before, size = memory_mib(), 0
        for target in scale.chunks:
            say(f"growing the index to {target:,} chunks")
            seconds = await _grow(index.store, size, target, embedder.dimensions)
            say(f"searching {target:,} chunks")
            name = f"growth/{target:,} chunks"
            found.append(Measure(f"{name}/writing", "chunks/s", ((target - size) / seconds,), "higher"))
            found += await _searches(name, ports, target, scale)
            if before is not None and (now := memory_mib()) is not None:
                found.append(Measure(f"{name}/memory added", "MiB", (now - before,)))
            size = target
    return found


async def _grow(store: WritableStore, size: int, target: int, dimensions: int) -> float:
    """Seconds in the store's own calls."""
    for number in range(size // _PER_DOCUMENT, -(-target // _PER_DOCUMENT)):
        await store.put_document(_document(number))
    seconds = 0.0
    for lot, vectors in chunks(size, target, dimensions):
        began = time.perf_counter()
        await store.put_chunks(lot, vectors)
        seconds += time.perf_counter() - began
    return seconds


async def _searches(name: str, ports: Ports, size: int, scale: Scale) -> list[Measure]:
    rng = np.random.default_rng(size)
    asked = [" ".join(dict.fromkeys(words(rng, 8))) for _ in range(scale.searches)]
    hybrid = Hybrid()
    await hybrid.retrieve(Question(asked[0]), Tools(ports))  # reads the catalogue and counts, once per index
    searches, retrievals, ops = [], [], 0
    for _ in range(scale.rounds):
        bare, whole = [], []
        for text in asked:
            [query] = await ports.embedder.queries([text])
            legs = [Leg("dense", query, _POOL), Leg("bm25", ports.sparse["bm25"].queries([text])[0], _POOL)]
            began = time.perf_counter()
            await ports.store.search(legs, Filter())
            bare.append((time.perf_counter() - began) * 1000)
            tools = Tools(ports)
            await hybrid.retrieve(Question(text), tools)
            whole.append((time.perf_counter() - tools.started) * 1000)
            ops = tools.cost.ops
        searches.append(bare)
        retrievals.append(whole)
    return [
        *_percentiles(f"{name}/search", searches, None),
        *_percentiles(f"{name}/hybrid without generation", retrievals, _AIM_MS if size == _AIM_AT else None),
        Measure(f"{name}/ops a question", "ops", (float(ops),)),
    ]


def _percentiles(name: str, rounds: Sequence[Sequence[float]], aim: float | None) -> list[Measure]:
    return [
        Measure(f"{name} p50", "ms", tuple(percentile(times, 0.5) for times in rounds)),
        Measure(f"{name} p95", "ms", tuple(percentile(times, 0.95) for times in rounds), aim=aim),
    ]
