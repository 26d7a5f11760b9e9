"""Fusion of rankings: by reciprocal rank, or by standardised score."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, pstdev

from app.types import Chunk, Hit, LegRank

C = 60.0
"""The constant of the paper: how little the very first ranks count for more than the next."""


def rrf(legs: Mapping[str, Sequence[Hit]], *, c: float = C, weights: Mapping[str, float] | None = None) -> list[Hit]:
    """score(d) = Σ over legs of weight / (c + rank of d in the leg); ranks from 1, an absent document adds 0.

    Ties are ordered by chunk id, so the order of the legs does not matter. Each hit keeps its rank and score per leg.
    Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods,
    SIGIR 2009.
    """
    scores: dict[str, float] = {}
    chunks: dict[str, Chunk] = {}
    ranks: dict[str, dict[str, LegRank]] = {}
    for name, hits in sorted(legs.items()):
        weight = 1.0 if weights is None else weights.get(name, 1.0)
        for hit in hits:
            key = hit.chunk.id
            scores[key] = scores.get(key, 0.0) + weight / (c + hit.rank)
            chunks[key] = hit.chunk
            ranks.setdefault(key, {})[name] = LegRank(hit.rank, hit.score)
    order = sorted(scores, key=lambda key: (-scores[key], key))
    return [Hit(chunks[key], rank, scores[key], ranks[key]) for rank, key in enumerate(order, start=1)]


def standardised(hits: Sequence[Hit], legs: Sequence[str]) -> list[Hit]:
    """score(d) = Σ over legs of (s − mean)/deviation, over these hits; best first, ties by chunk id.

    A hit that a leg did not find has the lowest score of those it found; a leg whose scores are all equal adds 0.
    """
    totals = [0.0] * len(hits)
    for leg in legs:
        known = [hit.legs[leg].score for hit in hits if leg in hit.legs]
        scores = [hit.legs[leg].score if leg in hit.legs else min(known) for hit in hits] if known else []
        deviation = pstdev(scores) if scores else 0.0
        if deviation > 0:
            mean = fmean(scores)
            totals = [total + (score - mean) / deviation for total, score in zip(totals, scores, strict=True)]
    order = sorted(range(len(hits)), key=lambda i: (-totals[i], hits[i].chunk.id))
    return [replace(hits[i], rank=rank, score=totals[i]) for rank, i in enumerate(order, start=1)]
