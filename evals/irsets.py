"""Retrieval sets in BEIR's form, through the service's own encoder, store and fusion: each leg alone and fused.

Documents are indexed whole, as baselines are made, or in passages, as filings are: then a document ranks where its best
passage does (MaxP; Dai and Callan 2019), for an embedding model reads no more than a passage.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from app.adapters.bm25 import Bm25Encoder, tokens
from app.adapters.qdrant_edge import EdgeStore
from app.architectures.graph import Graph
from app.ports import Embedder, WritableStore
from app.retrieval.fusion import rrf
from app.types import Chunk, ChunkVectors, DocumentMeta, Filter, FloatArray, Hit, IndexStamp, Leg
from evals.asking import progress
from evals.measures import rank_measures
from evals.multihop import PhraseGraph, phrase_graph
from evals.passages import passages_of
from evals.questions import Collection, load_beir
from evals.reports.tables import fraction, markdown
from evals.statistics import Paired, paired

DEPTH = 100
ENOUGH = 0.98
"""Share of a baseline's nDCG@10 that BM25 must reach."""
_BATCH = 256
_PASSAGES_EACH = 4
"""Passages searched for per document wanted: several of the best are of one."""


@dataclass(frozen=True, slots=True)
class SetResult:
    """One retrieval set under one file of judgements."""

    name: str
    qrels: str
    documents: int
    queries: int
    ndcg: Mapping[str, float]
    """nDCG@10 by leg (bm25, dense) and of their fusion (hybrid)."""
    recall: Mapping[str, float]
    """recall@100, likewise."""
    hybrid_against_best: Paired | None
    """nDCG@10 per query against the leg with the higher mean; None without a dense leg."""
    baseline: float | None
    """A published or given nDCG@10 of BM25."""
    recall5: Mapping[str, float] = field(default_factory=dict)
    """recall@5, likewise, and of the walk (graph) and its fusion with hybrid (graph+hybrid) where there is a graph."""
    graph_against_hybrid: Paired | None = None
    """recall@5 per query, of the walk alone; None without a graph."""


async def evaluate(
    folder: Path,
    embedder: Embedder | None,
    encoder: Bm25Encoder,
    baselines: Sequence[Mapping[str, Any]] = (),
    *,
    fixed_length: bool = False,
    passages: bool = False,
    graph: bool = False,
) -> list[SetResult]:
    """Indexes the set once, asks every judged query once; a result per `qrels*.tsv`.

    `embedder` None is BM25 alone. The encoder is fitted to the mean length of what is indexed, documents or passages,
    unless its own is to stay. `graph` adds the service's walk over the names that documents and queries print.
    """
    judged = await asyncio.to_thread(_judged, folder)
    collection = next(iter(judged.values()))
    chunks = [chunk for id_, text in collection.documents.items() for chunk in chunks_of(id_, text, passages=passages)]
    if not fixed_length:
        encoder = fitted(encoder, (chunk.text for chunk in chunks))
    queries = {id_: text for found in judged.values() for id_, text in found.queries.items()}
    with TemporaryDirectory() as directory:
        dimensions = embedder.dimensions if embedder else 1
        stamp = IndexStamp(
            folder.name,
            embedder.name if embedder else "none",
            dimensions,
            encoder.name,
            "passages" if passages else "whole",
        )
        store = await asyncio.to_thread(EdgeStore.open, Path(directory) / "index", stamp)
        try:
            await index(store, chunks, embedder, encoder)
            walk = await asyncio.to_thread(_walk, chunks, collection.titles, queries) if graph and embedder else None
            pool = DEPTH * (_PASSAGES_EACH if passages else 1)
            ranked = await _ask(store, queries, embedder, encoder, pool, walk)
        finally:
            await asyncio.to_thread(store.close)
    return [
        _result(folder.name, name, found, ranked, _baseline(baselines, folder.name, name))
        for name, found in judged.items()
        if found.queries
    ]


def _judged(folder: Path) -> dict[str, Collection]:
    """The set under each of its files of judgements."""
    names = sorted(path.name for path in folder.glob("qrels*.tsv")) or ["qrels.tsv"]
    return {name: load_beir(folder, name) for name in names}


def fitted(encoder: Bm25Encoder, texts: Iterable[str]) -> Bm25Encoder:
    """The encoder with these texts' own mean length: the service's constant is that of its chunks, not of a set."""
    lengths = [len(tokens(text)) for text in texts]
    return replace(encoder, average_length=sum(lengths) / max(len(lengths), 1))


async def index(store: WritableStore, chunks: Sequence[Chunk], embedder: Embedder | None, encoder: Bm25Encoder) -> None:
    with progress() as bar:
        task = bar.add_task("indexing", total=len(chunks))
        for start in range(0, len(chunks), _BATCH):
            batch = chunks[start : start + _BATCH]
            texts = [chunk.text for chunk in batch]
            dense = await _dense(embedder, texts)
            sparse = encoder.passages(texts)
            await store.put_chunks(batch, [ChunkVectors(d, {"bm25": s}) for d, s in zip(dense, sparse, strict=True)])
            bar.advance(task, len(batch))


async def _dense(embedder: Embedder | None, texts: Sequence[str], *, queries: bool = False) -> FloatArray:
    if embedder is None:
        return np.ones((len(texts), 1), np.float32)
    return await (embedder.queries(texts) if queries else embedder.passages(texts))


def chunks_of(document_id: str, text: str, *, passages: bool = False) -> list[Chunk]:
    """The document whole, or in passages."""
    meta = DocumentMeta(title=document_id, source=document_id)
    parts = passages_of(text) if passages else [text]
    ids = [str(uuid5(NAMESPACE_URL, f"{document_id} {n}" if n else document_id)) for n in range(len(parts))]
    return [
        Chunk(ids[n], document_id, n, 1, 0, len(part), part, "", "text", None, meta) for n, part in enumerate(parts)
    ]


@dataclass(frozen=True, slots=True)
class _Walk:
    """The graph of a set, and its chunks by id."""

    graph: PhraseGraph
    chunks: Mapping[str, Chunk]

    def ranked(self, question: str, dense: Sequence[Hit], hybrid: Sequence[Hit]) -> dict[str, Sequence[Hit]]:
        """The walk alone, and fused with hybrid as the architecture does it."""
        order = self.graph.order(question, dense, Graph().damping)[: len(dense)]
        walked = [Hit(self.chunks[each], rank, 1 / rank) for rank, each in enumerate(order, start=1)]
        return {"graph": walked, "graph+hybrid": rrf({"search": hybrid, "graph": walked})}


def _walk(chunks: Sequence[Chunk], titles: Mapping[str, str], queries: Mapping[str, str]) -> _Walk:
    by_chunk = {chunk.id: titles[chunk.document_id] for chunk in chunks if chunk.document_id in titles}
    graph = phrase_graph({chunk.id: chunk.text for chunk in chunks}, by_chunk, queries)
    return _Walk(graph, {chunk.id: chunk for chunk in chunks})


async def _ask(
    store: WritableStore,
    queries: Mapping[str, str],
    embedder: Embedder | None,
    encoder: Bm25Encoder,
    pool: int,
    walk: _Walk | None,
) -> dict[str, dict[str, list[str]]]:
    """Document ids best first, by leg and by query."""
    ranked: dict[str, dict[str, list[str]]] = defaultdict(dict)
    with progress() as bar:
        for id_, text in bar.track(queries.items(), description="asking"):
            legs = [Leg("bm25", encoder.queries([text])[0], pool)]
            if embedder is not None:
                [query] = await _dense(embedder, [text], queries=True)
                legs.append(Leg("dense", query, pool))
            found = await store.search(legs, Filter())
            lists: dict[str, Sequence[Hit]] = {leg.name: r.hits for leg, r in zip(legs, found, strict=True)}
            if embedder is not None:
                lists["hybrid"] = rrf(lists)
            if walk is not None:
                lists |= await asyncio.to_thread(walk.ranked, id_, lists["dense"], lists["hybrid"])
            for name, hits in lists.items():
                ranked[name][id_] = list(dict.fromkeys(hit.chunk.document_id for hit in hits))[:DEPTH]
    return ranked


def _result(
    name: str, qrels: str, judged: Collection, ranked: Mapping[str, Mapping[str, list[str]]], baseline: float | None
) -> SetResult:
    by_leg = {leg: rank_measures(judged.qrels, lists, DEPTH) for leg, lists in ranked.items()}
    ndcg = {leg: {query: values["nDCG@10"] for query, values in found.items()} for leg, found in by_leg.items()}
    recall = {leg: [values[f"recall@{DEPTH}"] for values in found.values()] for leg, found in by_leg.items()}
    means = {leg: sum(values.values()) / len(values) for leg, values in ndcg.items()}
    against = None
    if "hybrid" in ndcg:
        best = max(("bm25", "dense"), key=means.__getitem__)
        against = paired(ndcg["hybrid"], ndcg[best])
    first = {leg: {query: values["recall@5"] for query, values in found.items()} for leg, found in by_leg.items()}
    return SetResult(
        name=name,
        qrels=qrels,
        documents=len(judged.documents),
        queries=len(judged.queries),
        ndcg=means,
        recall={leg: sum(values) / len(values) for leg, values in recall.items()},
        hybrid_against_best=against,
        baseline=baseline,
        recall5={leg: sum(values.values()) / len(values) for leg, values in first.items()},
        graph_against_hybrid=paired(first["graph"], first["hybrid"]) if "graph" in first else None,
    )


def _baseline(rows: Sequence[Mapping[str, Any]], name: str, qrels: str) -> float | None:
    """`ndcg10` of the row with this set and file of judgements."""
    return next((row["ndcg10"] for row in rows if (row["set"], row["qrels"]) == (name, qrels)), None)


def short_of_baseline(results: Sequence[SetResult]) -> list[SetResult]:
    return [r for r in results if r.baseline is not None and r.ndcg["bm25"] < ENOUGH * r.baseline]


def table(results: Sequence[SetResult]) -> str:
    headings = ["set", "judgements", "documents", "queries", "BM25 nDCG@10", "baseline", "ratio", "dense", "hybrid"]
    headings += ["hybrid − best leg", "wins", "damages", "p", "recall@100 BM25", "dense", "hybrid"]
    return markdown(headings, [_row(result) for result in results])


def multihop_table(results: Sequence[SetResult]) -> str:
    """recall@5 of those results that have a graph."""
    headings = ["set", "queries", "recall@5 BM25", "dense", "hybrid", "graph+hybrid", "graph", "− hybrid"]
    headings += ["wins", "damages", "p"]
    legs = ("bm25", "dense", "hybrid", "graph+hybrid", "graph")
    return markdown(
        headings,
        [
            [
                r.name,
                str(r.queries),
                *(fraction(r.recall5[leg]) for leg in legs),
                *(f"{against.difference:+.3f}", str(against.wins), str(against.damages), f"{against.p:.3f}"),
            ]
            for r in results
            if (against := r.graph_against_hybrid)
        ],
    )


def _row(r: SetResult) -> list[str]:
    def of(values: Mapping[str, float], leg: str) -> str:
        return fraction(values[leg]) if leg in values else "–"

    against = r.hybrid_against_best
    return [
        r.name,
        r.qrels,
        str(r.documents),
        str(r.queries),
        of(r.ndcg, "bm25"),
        "–" if r.baseline is None else fraction(r.baseline),
        "–" if not r.baseline else f"{r.ndcg['bm25'] / r.baseline:.3f}",
        of(r.ndcg, "dense"),
        of(r.ndcg, "hybrid"),
        *(
            ["–"] * 4
            if against is None
            else [f"{against.difference:+.3f}", str(against.wins), str(against.damages), f"{against.p:.3f}"]
        ),
        of(r.recall, "bm25"),
        of(r.recall, "dense"),
        of(r.recall, "hybrid"),
    ]
