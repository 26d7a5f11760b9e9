"""How far a judge agrees with labels: printed before its scores, as no score is better than its judge."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from evals.errors import UsageError
from evals.judging.judge import Judge
from evals.reports.tables import cell, fraction
from evals.statistics import Estimate, wilson


@dataclass(frozen=True, slots=True)
class Label:
    claim: str
    passage: str
    supported: bool
    kind: str = "all"
    """What the item tries: paraphrase, wrong year, ..."""
    part: str = ""
    """Of a set in parts that are reported apart: `seen` items were looked at while the rules were written."""


@dataclass(frozen=True, slots=True)
class Agreement:
    judge: str
    labels: str
    """Whose: the file's name."""
    n: int
    accuracy: float
    low: float
    high: float
    """Wilson's 95 % interval of the accuracy."""
    kappa: float
    """Cohen's: agreement beyond chance, 1 at best, 0 at chance."""
    falsely_supported: int
    """Labelled unsupported, judged supported."""
    falsely_denied: int
    wrong_by_kind: dict[str, str]
    """`2 of 7` per kind of item with a wrong verdict."""


def load_labels(path: Path | None = None) -> list[Label]:
    """JSONL of {claim, passage, supported, kind?}; None is the set that comes with the product. Raises UsageError."""
    source = path or files("evals.judging").joinpath("labels.jsonl")
    try:
        rows = [json.loads(line) for line in source.read_text("utf-8").splitlines() if line.strip()]
        asked = ((r["claim"], r["passage"], r["supported"], r.get("kind") or "all", r.get("part") or "") for r in rows)
        labels = [Label(*one) for one in asked]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} cannot be read as labels (claim, passage, supported): {error!r}") from error
    if not labels or any(type(label.supported) is not bool for label in labels):
        raise UsageError(f"{path}: every line needs supported: true or false")
    return labels


async def agreement(judge: Judge, labels: Sequence[Label], source: str) -> Agreement:
    """An item counts as judged supported where each of its claims is."""
    judged = []
    for label in labels:
        verdicts = await judge.attribute(label.claim, [label.passage])
        judged.append(bool(verdicts) and all(v.supported for v in verdicts))
    wrong = [label for label, said in zip(labels, judged, strict=True) if said != label.supported]
    kinds = Counter(label.kind for label in labels)
    right = len(labels) - len(wrong)
    return Agreement(
        judge.name,
        source,
        len(labels),
        right / len(labels),
        *wilson(right, len(labels)),
        kappa([label.supported for label in labels], judged),
        sum(not label.supported for label in wrong),
        sum(label.supported for label in wrong),
        {kind: f"{count} of {kinds[kind]}" for kind, count in Counter(label.kind for label in wrong).most_common()},
    )


def kappa(a: Sequence[bool], b: Sequence[bool]) -> float:
    """(p - e) / (1 - e), e the agreement expected of two raters who keep their shares (Cohen, 1960); 0 where e is 1."""
    n = len(a)
    observed = sum(x == y for x, y in zip(a, b, strict=True)) / n
    yes = sum(a) * sum(b) / n**2
    expected = yes + (n - sum(a)) * (n - sum(b)) / n**2
    return (observed - expected) / (1 - expected) if expected < 1 else 0.0


def sentence(found: dict[str, Any]) -> str:
    """One line, of `asdict(Agreement)`."""
    wrong = ", ".join(f"{kind} {count}" for kind, count in found["wrong_by_kind"].items())
    accuracy = cell(Estimate(found["n"], found["accuracy"], found["low"], found["high"]))
    return (
        f"Judge {found['judge']} against {found['n']} labels of {found['labels']}: accuracy {accuracy}, Cohen's kappa "
        f"{fraction(found['kappa'], 2)}; {found['falsely_supported']} falsely supported, {found['falsely_denied']} "
        f"falsely denied" + (f"; wrong: {wrong}." if wrong else ".")
    )
