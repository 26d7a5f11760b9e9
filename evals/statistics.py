"""How sure a figure is: intervals, paired tests and their correction, and who is dominated by whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

_Z = 1.959963984540054
"""Of 95 %."""
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over n questions and its 95 % interval; all None where n is 0."""

    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None


def estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """Wilson's interval where every value is 0 or 1, else a percentile bootstrap of the mean."""
    if not values:
        return Estimate(0)
    mean = sum(values) / len(values)
    if all(value in (0, 1) for value in values):
        return Estimate(len(values), mean, *wilson(sum(map(int, values)), len(values)))
    return bootstrap(values, seed)


def bootstrap(values: Sequence[float], seed: int = 0) -> Estimate:
    """The mean with a percentile interval; also right for differences, whose 0 and 1 are no successes and failures."""
    if not values:
        return Estimate(0)
    array = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, len(array), (_RESAMPLES, len(array)))
    low, high = np.percentile(array[drawn].mean(axis=1), [2.5, 97.5])
    return Estimate(len(values), float(array.mean()), float(low), float(high))


def wilson(successes: int, n: int) -> tuple[float, float]:
    """95 % interval of a proportion (Wilson, 1927): sensible at 0, at n, and for small n."""
    p = successes / n
    centre = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True, slots=True)
class Paired:
    """One system against another on the same questions."""

    n: int
    wins: int
    """Questions on which it is better."""
    damages: int
    """Questions on which it is worse."""
    difference: float
    """Mean over all n of (its value − the other's)."""
    p: float
    """Two-sided exact sign test on wins against damages; on 0/1 values that is McNemar's exact test."""


def paired(values: Mapping[str, float], baseline: Mapping[str, float]) -> Paired:
    """Over the questions both have a value for, keyed by question id."""
    differences = [values[key] - baseline[key] for key in values if key in baseline]
    wins, damages = sum(d > 1e-9 for d in differences), sum(d < -1e-9 for d in differences)
    mean = sum(differences) / len(differences) if differences else 0.0
    return Paired(len(differences), wins, damages, mean, sign_test(wins, damages))


def sign_test(wins: int, damages: int) -> float:
    """P(a split at least this uneven | a fair coin), two-sided, ties left out."""
    n = wins + damages
    tail = sum(comb(n, i) for i in range(min(wins, damages) + 1))
    return min(1.0, 2 * tail / (1 << n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted for their number, in the given order (Holm, 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for position, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def pareto(points: Mapping[str, tuple[float, ...]]) -> frozenset[str]:
    """Names no other point dominates. A point's first coordinate is better when higher, the others when lower."""

    def dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
        at_least: bool = a[0] >= b[0] and all(x <= y for x, y in zip(a[1:], b[1:], strict=True))
        return at_least and a != b

    return frozenset(name for name, p in points.items() if not any(dominates(other, p) for other in points.values()))


def quantile(values: Sequence[float], q: float) -> float | None:
    """Linear between order statistics; None of nothing."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), q)) if values else None
