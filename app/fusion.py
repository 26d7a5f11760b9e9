"""Reciprocal rank fusion."""

from collections.abc import Mapping, Sequence

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
