"""Directions on the unit sphere: von Mises-Fisher draws, and bags of token vectors cut into windows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from app.types import FloatArray

DIMENSIONS = 64
Window: TypeAlias = Literal["dense", "sparse", "late"]
WINDOWS: Mapping[Window, slice] = {"dense": slice(0, 8), "sparse": slice(8, 16), "late": slice(16, 24)}
"""Tokens of a bag that each leg reads. Were two to overlap, a leg would see what only their fusion may."""
TOKENS = 24


def partitions(windows: Mapping[Window, slice], tokens: int) -> bool:
    """Whether every token is in exactly one window."""
    read = [token for window in windows.values() for token in range(tokens)[window]]
    return sorted(read) == list(range(tokens))


assert partitions(WINDOWS, TOKENS), "the windows of a bag must partition its tokens"


def unit(vectors: FloatArray) -> FloatArray:
    """Along the last axis."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def uniform(n: int, rng: np.random.Generator) -> FloatArray:
    """Shape (n, DIMENSIONS), unit rows in every direction alike."""
    return unit(np.asarray(rng.standard_normal((n, DIMENSIONS)), np.float32))


def around(mean: FloatArray, kappa: float, n: int, rng: np.random.Generator) -> FloatArray:
    """n von Mises-Fisher draws, shape (n, dimensions); `mean` is a unit vector (Wood, 1994)."""
    p = len(mean) - 1
    b = p / (2 * kappa + np.sqrt(4 * kappa**2 + p**2))
    x = (1 - b) / (1 + b)
    c = kappa * x + p * np.log(1 - x**2)
    found: list[float] = []
    while len(found) < n:
        z = rng.beta(p / 2, p / 2, n)
        w = (1 - (1 + b) * z) / (1 - (1 - b) * z)
        taken = kappa * w + p * np.log(1 - x * w) - c >= np.log(rng.uniform(size=n))
        found += w[taken].tolist()
    w = np.array(found[:n])[:, None]
    noise = rng.standard_normal((n, len(mean)))
    tangent = noise - (noise @ mean)[:, None] * mean
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.asarray(w * mean + np.sqrt(1 - w**2) * tangent, np.float32)


@dataclass(frozen=True)
class Bag:
    """What a text means here: its token vectors, shape (TOKENS, DIMENSIONS), unit rows."""

    tokens: FloatArray

    @cached_property
    def windows(self) -> Mapping[Window, FloatArray]:
        """The mean of each window's tokens, unit norm."""
        return {name: unit(self.tokens[window].mean(axis=0)) for name, window in WINDOWS.items()}


def bag(themes: Mapping[Window, FloatArray], kappas: Mapping[Window, float], rng: np.random.Generator) -> Bag:
    """Each window's tokens drawn around its theme."""
    tokens = np.empty((TOKENS, DIMENSIONS), np.float32)
    for name, window in WINDOWS.items():
        tokens[window] = around(themes[name], kappas[name], window.stop - window.start, rng)
    return Bag(tokens)


def tilted(original: Bag, axis: FloatArray, share: float) -> Bag:
    """Every token t as sqrt(1 − share²)·t + share·axis, unit norm; for t orthogonal to the axis, share is a sine."""
    return Bag(unit(np.asarray(np.sqrt(1 - share**2) * original.tokens + share * axis, np.float32)))


def maxsim(query: FloatArray, passages: FloatArray) -> FloatArray:
    """Mean over query tokens of the largest cosine with any token of each passage (late interaction, ColBERT).

    `query` has shape (q, d), `passages` (n, t, d), the result (n,).
    """
    cosines = np.einsum("qd,ntd->nqt", query, passages, optimize=True)
    return np.asarray(cosines.max(axis=2).mean(axis=1), np.float32)
