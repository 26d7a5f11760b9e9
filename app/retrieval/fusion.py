"""Fusion of rankings: by reciprocal rank, or by standardised score."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, pstdev
from typing import Literal, TypeAlias

from app.types import Chunk, Hit, LegRank

Fusion: TypeAlias = Literal["ranks", "scores"]
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


def with_leg(hits: Sequence[Hit], leg: str, scores: Sequence[float]) -> list[Hit]:
    """The hits by these scores of theirs, best first, each with its rank and score in the leg; ties as they stood."""
    order = sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])
    ranks = [LegRank(rank, score) for rank, (score, _) in enumerate(order, start=1)]
    return [replace(hit, legs={**hit.legs, leg: of}) for of, (_, hit) in zip(ranks, order, strict=True)]


def standardised(hits: Sequence[Hit], *, weights: Mapping[str, float] | None = None) -> list[Hit]:
    """score(d) = Σ over legs of weight · (s − mean) / deviation of the leg's scores s over these hits; best first.

    Legs are those that the hits keep. A hit that a leg did not find has the leg's lowest score; a leg whose scores are
    all equal adds 0. Ties are ordered by chunk id. Unlike ranks, scores keep how far apart two hits are.
    """
    totals = dict.fromkeys((hit.chunk.id for hit in hits), 0.0)
    for leg in sorted({name for hit in hits for name in hit.legs}):
        lowest = min(hit.legs[leg].score for hit in hits if leg in hit.legs)
        scores = {hit.chunk.id: hit.legs[leg].score if leg in hit.legs else lowest for hit in hits}
        mean, deviation = fmean(scores.values()), pstdev(scores.values())
        weight = 1.0 if weights is None else weights.get(leg, 1.0)
        for key, score in scores.items() if deviation > 0 else ():
            totals[key] += weight * (score - mean) / deviation
    order = sorted(hits, key=lambda hit: (-totals[hit.chunk.id], hit.chunk.id))
    return [replace(hit, rank=rank, score=totals[hit.chunk.id]) for rank, hit in enumerate(order, start=1)]


def in_order(hits: Iterable[Hit]) -> list[Hit]:
    """Ranks from 1 as they come; the score is 1/rank, for scores of different lists do not compare."""
    return [replace(hit, rank=rank, score=1 / rank) for rank, hit in enumerate(hits, start=1)]
