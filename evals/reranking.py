"""What a cross-encoder adds: the same candidates in the order of two legs, of the cross-encoder, and of fusions."""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from app.adapters.bm25 import Bm25Encoder
from app.adapters.qdrant_edge import EdgeStore
from app.architectures.hybrid import Hybrid
from app.ports import Embedder, Reranker
from app.question.reading import narrowed
from app.retrieval.fusion import rrf, standardised, with_leg
from app.tools import Ports, Tools
from app.types import Filter, Hit, IndexStamp, Leg
from app.types import Question as Asked
from evals.errors import UsageError
from evals.irsets import chunks_of, fitted, index
from evals.measures import rank_measures
from evals.passages import Bm25Index, passages_of
from evals.questions import Question, load_beir, stem
from evals.reports.tables import fraction, markdown
from evals.statistics import Paired, bootstrap, paired

_POOL = 100
WITHOUT, LEGS, ALONE = "without", "without, standard scores", "cross-encoder alone"
RANKS, SCORES = "reciprocal ranks", "standard scores"
_RERANK = "rerank"


@dataclass(frozen=True, slots=True)
class Candidates:
    """One query's best by two legs, in their fused order; a hit's `legs` keep its rank and score in each."""

    query: str
    hits: tuple[Hit, ...]
    read: tuple[str, ...]
    """What the cross-encoder reads of each hit."""
    items: tuple[str, ...]
    """What is judged: a document's id, or a filing and page."""
    gold: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Gain:
    """One order of the candidates, and against the order without the cross-encoder."""

    order: str
    ndcg: float
    """nDCG@10."""
    first: float
    """hit@1."""
    against: Paired
    """nDCG@10 by query."""
    low: float
    high: float
    """95 % interval of the difference (bootstrap)."""


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    queries: int
    depth: int
    found: float
    """Share of queries of which anything relevant is among the candidates: more is beyond any order."""
    gains: tuple[Gain, ...]
    pairs_per_s: float


async def of_set(
    folder: Path, embedder: Embedder, depth: int, sample: int, seed: int = 0, *, passages: bool = False
) -> list[Candidates]:
    """Of a folder in BEIR's form: documents are indexed whole; of a long one, the passage with the best BM25 is read.

    With `passages` they are cut as filings are, and `depth` passages are candidates: a document ranks where its best
    one does. At most `sample` judged queries, drawn by `seed`; judgements are `qrels_full_derived.tsv` where there is
    one.
    """
    full = "qrels_full_derived.tsv"
    judged = await asyncio.to_thread(load_beir, folder, full if (folder / full).exists() else "qrels.tsv")
    ids = sorted(judged.queries)
    ids = random.Random(seed).sample(ids, min(sample, len(ids)))
    chunks = [chunk for id_, text in judged.documents.items() for chunk in chunks_of(id_, text, passages=passages)]
    encoder = fitted(Bm25Encoder(), (chunk.text for chunk in chunks))
    found: list[Candidates] = []
    with TemporaryDirectory() as directory:
        stamp = IndexStamp(
            folder.name, embedder.name, embedder.dimensions, encoder.name, "passages" if passages else "whole"
        )
        store = await asyncio.to_thread(EdgeStore.open, Path(directory) / "index", stamp)
        try:
            await index(store, chunks, embedder, encoder)
            vectors = await embedder.queries([judged.queries[id_] for id_ in ids])
            for id_, vector in zip(ids, vectors, strict=True):
                text = judged.queries[id_]
                legs = [Leg("dense", vector, _POOL), Leg("bm25", encoder.queries([text])[0], _POOL)]
                dense, bm25 = await store.search(legs, Filter())
                hits = tuple(rrf({"dense": dense.hits, "bm25": bm25.hits})[:depth])
                read = tuple(_best_passage(text, hit.chunk.text) for hit in hits)
                items = tuple(hit.chunk.document_id for hit in hits)
                found.append(Candidates(text, hits, read, items, judged.qrels[id_]))
        finally:
            await asyncio.to_thread(store.close)
    return found


def _best_passage(query: str, text: str) -> str:
    found = passages_of(text)
    return found[0] if len(found) == 1 else found[int(np.argmax(Bm25Index(found).scores(query)))]


async def of_questions(questions: Sequence[Question], ports: Ports, depth: int) -> list[Candidates]:
    """Hybrid's own candidates, its filters by company and period on, for questions whose evidence pages are known."""
    found: list[Candidates] = []
    for question in questions:
        if not question.pages:
            continue
        tools, asked = Tools(ports), Asked(question.text, k=depth)
        where, terms = await narrowed(asked, tools)
        hits = tuple((await Hybrid().fused(asked, terms, where, tools))[:depth])
        read = tuple(hit.chunk.searchable for hit in hits)
        items = tuple(_place(stem(hit.chunk.meta.source), hit.chunk.page) for hit in hits)
        found.append(Candidates(question.text, hits, read, items, {_place(*page): 1 for page in question.pages}))
    return found


def _place(document: str, page: int) -> str:
    return f"{document} page {page}"


async def measure(name: str, candidates: Sequence[Candidates], reranker: Reranker) -> Measured:
    """Raises UsageError where there is no query to measure on."""
    if not candidates:
        raise UsageError(f"{name} holds no query whose evidence is known")
    return measured(name, candidates, *await scored(candidates, reranker))


async def scored(candidates: Sequence[Candidates], reranker: Reranker) -> tuple[list[list[float]], float]:
    """The cross-encoder's score of every candidate, and how many pairs a second that took."""
    started = time.perf_counter()
    scores = [await reranker.score(found.query, found.read) for found in candidates]
    return scores, sum(map(len, scores)) / max(time.perf_counter() - started, 1e-9)


def measured(name: str, candidates: Sequence[Candidates], scores: Sequence[Sequence[float]], speed: float) -> Measured:
    """Every order of the same candidates by the same measures."""
    gold = {str(i): found.gold for i, found in enumerate(candidates)}
    orders = [_orders(found, given) for found, given in zip(candidates, scores, strict=True)]
    by_order = {
        order: rank_measures(gold, {str(i): found[order] for i, found in enumerate(orders)}, 10) for order in orders[0]
    }
    return Measured(
        name=name,
        queries=len(candidates),
        depth=max(len(found.hits) for found in candidates),
        found=sum(not found.gold.keys().isdisjoint(found.items) for found in candidates) / len(candidates),
        gains=tuple(_gain(order, values, by_order[WITHOUT]) for order, values in by_order.items()),
        pairs_per_s=speed,
    )


def _orders(found: Candidates, scores: Sequence[float]) -> dict[str, list[str]]:
    """Items best first, by the name of the order."""
    item = {hit.chunk.id: item for hit, item in zip(found.hits, found.items, strict=True)}
    graded = with_leg(found.hits, _RERANK, scores)
    legs = {name: _leg(graded, name) for name in sorted({name for hit in graded for name in hit.legs})}
    ranked = {
        WITHOUT: list(found.hits),
        LEGS: standardised(found.hits),
        ALONE: legs[_RERANK],
        RANKS: rrf(legs),
        SCORES: standardised(graded),
    }
    return {name: list(dict.fromkeys(item[hit.chunk.id] for hit in hits)) for name, hits in ranked.items()}


def _leg(hits: Sequence[Hit], name: str) -> list[Hit]:
    """Those that the leg found, as it ranked and scored them."""
    found = [(hit.legs[name], hit) for hit in hits if name in hit.legs]
    return [replace(hit, rank=of.rank, score=of.score) for of, hit in sorted(found, key=lambda pair: pair[0].rank)]


def _gain(order: str, values: Mapping[str, Mapping[str, float]], base: Mapping[str, Mapping[str, float]]) -> Gain:
    ndcg, before = ({key: found["nDCG@10"] for key, found in v.items()} for v in (values, base))
    interval = bootstrap([ndcg[key] - before[key] for key in ndcg])
    first = sum(found["hit@1"] for found in values.values()) / len(values)
    low, high = interval.low or 0.0, interval.high or 0.0
    return Gain(order, sum(ndcg.values()) / len(ndcg), first, paired(ndcg, before), low, high)


def table(several: Sequence[Measured]) -> str:
    """Markdown, a row per set and order."""
    headings = [
        "set",
        "queries",
        "found",
        "order",
        "nDCG@10",
        "difference",
        "95 %",
        "wins",
        "damages",
        "hit@1",
        "pairs/s",
    ]
    rows = [
        [
            m.name,
            str(m.queries),
            fraction(m.found),
            gain.order,
            fraction(gain.ndcg),
            "–" if gain.order == WITHOUT else f"{gain.against.difference:+.3f}",
            "–" if gain.order == WITHOUT else f"{gain.low:+.3f} to {gain.high:+.3f}",
            str(gain.against.wins),
            str(gain.against.damages),
            fraction(gain.first),
            f"{m.pairs_per_s:.0f}",
        ]
        for m in several
        for gain in m.gains
    ]
    return markdown(headings, rows)
