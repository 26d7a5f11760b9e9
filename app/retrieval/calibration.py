"""From what is known of a passage at query time to the probability that it answers, and what that calls for."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from app.errors import Unavailable

Action: TypeAlias = Literal["correct", "ambiguous", "incorrect"]
"""Of corrective RAG: the best passage surely answers, may answer, or surely does not."""

FEATURES = (
    "logit",
    "cosine",
    "coverage",
    "line",
    "agreed",
    "period",
    "periods",
    "company",
    "unmatched",
)
"""The cross-encoder's logit; the dense leg's cosine; the best statement's coverage (app/evidence/statements.py);
whether a row is a line of a statement that the question names, times `period`; how high both legs rank the passage, as
C / (C + rank) of the lower rank, 0 where a leg has not found it; the share of the question's periods that the passage
can tell of; whether there are none, one (1) or several (2), for a dated question is asked of few filings; whether it is
of a company that the question names, or none is named; and whether the question names a period or form that no filing
of its companies has. BM25's score is none of them: it depends on the words searched for, and coverage says the same by
itself."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic regression over FEATURES and two thresholds of its probability."""

    weights: tuple[float, ...]
    """Per feature, in FEATURES' order; of raw values, not of standardised ones."""
    intercept: float
    upper: float
    """A best passage at or above it is `correct`."""
    lower: float
    """One below it is `incorrect`."""
    fitted: Mapping[str, Any]
    """How: reranker, questions, pairs, seed, measures."""

    def __post_init__(self) -> None:
        if len(self.weights) != len(FEATURES) or not 0 <= self.lower <= self.upper <= 1:
            raise ValueError(f"{len(FEATURES)} weights and 0 <= lower <= upper <= 1 are needed")

    def probability(self, features: Sequence[float]) -> float:
        """1 / (1 + exp(−(intercept + Σ weight·feature)))."""
        z = self.intercept + sum(w * x for w, x in zip(self.weights, features, strict=True))
        return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))

    def to_json(self) -> str:
        named = asdict(self) | {"weights": dict(zip(FEATURES, self.weights, strict=True))}
        return json.dumps({"schema": 1, **named}, indent=1) + "\n"


def action(best: float, upper: float, lower: float) -> Action:
    """What the best passage's probability calls for."""
    if best >= upper:
        return "correct"
    return "incorrect" if best < lower else "ambiguous"


def read_calibration(path: Path) -> Calibration:
    """What `sextant-eval calibrate` wrote. Raises Unavailable."""
    try:
        found = json.loads(path.read_text("utf-8"))
        weights = tuple(float(found["weights"][name]) for name in FEATURES)
        return Calibration(weights, found["intercept"], found["upper"], found["lower"], found["fitted"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            f"{path} is no calibration of this version ({error!r}); write one with sextant-eval calibrate"
        ) from error


@cache
def shipped_calibration() -> Calibration:
    """The one that comes with the package, for the cross-encoder that does."""
    return read_calibration(Path(str(files("app") / "models" / "grader.json")))
