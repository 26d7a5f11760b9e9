"""Personalised PageRank over passages and entities: which of them a walker who keeps returning to the seeds meets."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.types import FloatArray


def pagerank(
    edges: Sequence[tuple[int, int, float]], seeds: FloatArray, *, damping: float = 0.5, rounds: int = 30
) -> FloatArray:
    """Shape (n,), sums to 1, as `seeds` does: the share of time at each vertex.

    `edges` are undirected (from, to, weight above 0). From a vertex the walker follows an edge in proportion to its
    weight with probability `damping`, else it begins anew at a seed; from a vertex without edges it always does.
    Haveliwala: Topic-Sensitive PageRank, WWW 2002; for passages as in HippoRAG 2 (Gutiérrez et al., 2025).
    """
    start = (seeds / seeds.sum()).astype(np.float64)
    if not edges:
        return np.array(start, np.float32)
    ends = np.array([(a, b) for a, b, _ in edges])
    source, target = np.concatenate([ends, ends[:, ::-1]]).T
    weight = np.tile(np.array([w for _, _, w in edges], np.float64), 2)
    out = _summed(source, weight, len(start))
    share = weight / out[source]
    rank = start
    for _ in range(rounds):
        moved = _summed(target, rank[source] * share, len(start))
        rank = damping * moved + (1 - damping * float(rank[out > 0].sum())) * start
    walked: FloatArray = rank.astype(np.float32)
    return walked


def _summed(places: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    total: npt.NDArray[np.float64] = np.bincount(places, values, minlength=size).astype(np.float64)
    return total
