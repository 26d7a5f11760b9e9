"""Fits the grader of corrective RAG to a collection: pairs from its index, a logistic regression, two thresholds."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from app.architectures.crag import Crag
from app.architectures.hybrid import Hybrid
from app.evidence.quantities import matched, quantities
from app.question.reading import narrowing, read
from app.retrieval.calibration import FEATURES, Calibration
from app.retrieval.grading import features, reranked
from app.tools import Ports, Tools
from app.types import Condition, Document, Filter, Hit, Limits
from app.types import Question as Asked
from evals.asking import progress
from evals.errors import UsageError
from evals.questions import Question, stem
from evals.reports.tables import fraction, markdown

Array: TypeAlias = npt.NDArray[np.float64]

STRANGERS = 4
"""Passages of filings that the question does not name, added to its own as further negatives."""
_PATIENCE_S = 600.0
_REGULAR = 0.1
"""Inverse strength of the penalty on standardised weights: there are few questions."""
WITHHELD = 0.2
"""Weight of a case whose filings were withheld: about one question in six then has no answer."""
FOLDS = 5
BINS = 8
PRECISION = 0.7
"""Of the questions called `correct`, the share whose best passage is evidence: how `upper` is chosen."""
REFUSED = 0.05
"""Most of the answerable questions that may be called `incorrect`: how `lower` is chosen."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question's graded pool."""

    question: str
    group: str
    """Company of its evidence (of several, the first): never both in training and in testing."""
    rows: Array
    """(passages, features)."""
    labels: Array
    """1 where the passage's page is evidence."""
    answerable: bool
    withheld: bool = False
    """The filings with the evidence were left out of the search: made up, so it weighs less and measures nothing."""


def write_cases(path: Path, found: Sequence[Case]) -> None:
    """One JSON object a line, to be fitted together with those of another collection."""
    lines = (json.dumps(asdict(c) | {"rows": c.rows.tolist(), "labels": c.labels.tolist()}) for c in found)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_cases(path: Path) -> list[Case]:
    """Raises UsageError."""
    try:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return [
            Case(**row | {"rows": np.array(row["rows"]).reshape(-1, len(FEATURES)), "labels": np.array(row["labels"])})
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} holds no cases of this version: {error!r}") from error


async def gathered(ports: Ports, questions: Sequence[Question]) -> list[Case]:
    """Per question with reliable evidence one case with it and one with its filings withheld; per unanswerable one."""
    catalogue = await Tools(ports).catalogue()
    found: list[Case] = []
    with progress() as bar:
        for question in bar.track(questions, description="asking"):
            found += [case async for case in _cases(question, catalogue, ports)]
    return found


async def _cases(question: Question, catalogue: Sequence[Document], ports: Ports) -> AsyncIterator[Case]:
    gold = [d for d in catalogue if stem(d.meta.source) in question.documents]
    if question.answerable and not (question.pages and gold):
        return
    group = min((d.meta.company or d.id for d in gold), default=question.id)
    limits = Limits(timeout_s=_PATIENCE_S)
    yield await _case(question, group, catalogue, (), Tools(ports, limits))
    if gold:
        rest = [d for d in catalogue if d not in gold]
        yield await _case(question, group, rest, tuple(d.id for d in gold), Tools(ports, limits))


async def _case(
    question: Question, group: str, catalogue: Sequence[Document], withheld: tuple[str, ...], tools: Tools
) -> Case:
    reading = read(question.text, catalogue)
    hidden = (Condition("document_id", "$nin", withheld),) if withheld else ()
    asked = Asked(question.text, where=Filter(hidden))
    where, terms = narrowing(asked, reading)
    found = (await Hybrid().fused(asked, terms, where, tools))[: Crag().pool]
    if reading.documents and not withheld:
        everywhere = await Hybrid().fused(asked, question.text, asked.where, tools)
        found += [hit for hit in everywhere if hit.chunk.document_id not in reading.documents][:STRANGERS]
    hits = await reranked(question.text, found, tools)
    rows = features(question.text, reading, hits) if hits else []
    labels = [float(answers(question, hit)) for hit in hits]
    return Case(
        question.id,
        group,
        np.array(rows, float).reshape(len(hits), len(FEATURES)),
        np.array(labels),
        question.answerable and not withheld,
        bool(withheld),
    )


def answers(question: Question, hit: Hit) -> bool:
    """Whether the passage is on an evidence page, or in a filing with evidence and holds every number of the answer.

    A filing says the same in several places, and the evidence names but one.
    """
    document = stem(hit.chunk.meta.source)
    if (document, hit.chunk.page) in question.pages:
        return True
    wanted = quantities(question.figure or question.answer, hint=question.text)
    if not wanted or document not in question.documents:
        return False
    found = quantities(hit.chunk.searchable)
    return all(matched(want, found) for want in wanted)


def fitted(found: Sequence[Case], seed: int = 0) -> tuple[Array, float]:
    """Raw weights and intercept of a logistic regression over all passages of these cases. Raises UsageError."""
    from sklearn.linear_model import LogisticRegression

    labels = np.concatenate([c.labels for c in found]) if found else np.zeros(0)
    if not 0 < labels.sum() < len(labels):
        raise UsageError("too few questions find evidence to fit to: two companies' at least are needed")
    rows = np.vstack([c.rows for c in found])
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    deviation[deviation == 0] = 1
    shares = np.concatenate([np.full(len(c.labels), WITHHELD if c.withheld else 1.0) for c in found])
    model = LogisticRegression(C=_REGULAR, max_iter=1000, random_state=seed)
    model.fit((rows - mean) / deviation, labels, sample_weight=shares)
    weights = model.coef_[0] / deviation
    return weights, float(model.intercept_[0] - weights @ mean)


def held_out(found: Sequence[Case], seed: int = 0) -> list[Array]:
    """Each case's weighted sums z, one per passage, by a model that saw no case of its group."""
    groups = sorted({c.group for c in found})
    np.random.default_rng(seed).shuffle(groups)
    fold = {group: i % FOLDS for i, group in enumerate(groups)}
    models = {k: fitted([c for c in found if fold[c.group] != k], seed) for k in sorted(set(fold.values()))}
    return [case.rows @ models[fold[case.group]][0] + models[fold[case.group]][1] for case in found]


def scaling(found: Sequence[Case], sums: Sequence[Array]) -> tuple[float, float]:
    """a, b such that 1/(1 + exp(−(a·z + b))) of a question's best z is how often that passage answers (Platt, 1999).

    The regression speaks of any passage; of the best of a pool, two more numbers are needed.
    """
    from sklearn.linear_model import LogisticRegression

    pairs = [(z.max(), c.labels[z.argmax()]) for c, z in zip(found, sums, strict=True) if len(z) and not c.withheld]
    best, right = np.array(pairs).reshape(-1, 2).T
    if not 0 < right.sum() < len(right):
        return 1.0, 0.0
    model = LogisticRegression(C=10.0, max_iter=1000).fit(best[:, None], right)
    a, b = float(model.coef_[0][0]), float(model.intercept_[0])
    return (a, b) if a > 0 else (1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Best:
    """A question's best passage: its grade, whether it is evidence, whether the index had an answer."""

    grade: float
    right: bool
    answerable: bool


def bests(found: Sequence[Case], grades: Sequence[Array]) -> list[Best]:
    return [
        Best(float(p.max()), bool(c.labels[p.argmax()]), c.answerable) if len(p) else Best(0.0, False, c.answerable)
        for c, p in zip(found, grades, strict=True)
    ]


def thresholds(best: Sequence[Best], precision: float = PRECISION, refused: float = REFUSED) -> tuple[float, float]:
    """(upper, lower): the lowest grade from which `precision` holds, and the quantile `refused` of the answerable."""
    ranked = sorted(best, key=lambda b: -b.grade)
    right = np.cumsum([b.right for b in ranked]) / np.arange(1, len(ranked) + 1)
    enough = [b.grade for b, share in zip(ranked, right, strict=True) if share >= precision]
    answerable = [b.grade for b in best if b.answerable]
    lower = float(np.quantile(answerable, refused)) if answerable else 0.0
    upper = max(enough[-1] if enough else 1.0, lower)
    return round(upper, 4), round(min(lower, upper), 4)


def measures(best: Sequence[Best], upper: float, lower: float) -> dict[str, Any]:
    """AUC and ECE of the best grade, its reliability in bins of equal size, and what each threshold gives."""
    grade, right = np.array([b.grade for b in best]), np.array([b.right for b in best], float)
    bins = [
        (float(grade[i].mean()), float(right[i].mean()), len(i))
        for i in np.array_split(np.argsort(grade), min(BINS, len(best)))
    ]
    called = {
        "correct": grade >= upper,
        "ambiguous": (grade < upper) & (grade >= lower),
        "incorrect": grade < lower,
    }
    answerable = np.array([b.answerable for b in best])
    return {
        "auc": round(auc(grade, right), 4),
        "ece": round(sum(abs(p - o) * n for p, o, n in bins) / len(best), 4),
        "reliability": [[round(p, 4), round(o, 4), n] for p, o, n in bins],
        "actions": {
            name: {"n": int(chosen.sum()), "right": round(float(right[chosen].mean()), 4) if chosen.any() else None}
            for name, chosen in called.items()
        },
        "answerable_incorrect": _share(called["incorrect"][answerable]),
        "unanswerable_incorrect": _share(called["incorrect"][~answerable]),
    }


def _share(chosen: npt.NDArray[np.bool_]) -> float | None:
    return round(float(chosen.mean()), 4) if len(chosen) else None


def auc(scores: Array, labels: Array) -> float:
    """Probability that a right one scores above a wrong one, ties half (Mann and Whitney, 1947); nan without both."""
    right, wrong = scores[labels == 1], scores[labels == 0]
    if not (len(right) and len(wrong)):
        return float("nan")
    above = (right[:, None] > wrong[None, :]).mean() + 0.5 * (right[:, None] == wrong[None, :]).mean()
    return float(above)


def calibrated(found: Sequence[Case], reranker: str, seed: int = 0) -> Calibration:
    """Fitted to all cases; scaling, thresholds and measures by models that did not see the company.

    The scaling's two numbers are fitted to the same held-out sums that ECE is measured on.
    """
    sums = held_out(found, seed)
    a, b = scaling(found, sums)
    every = bests(found, [np.asarray(1 / (1 + np.exp(-(a * z + b)))) for z in sums])
    best = [b for b, case in zip(every, found, strict=True) if not case.withheld]
    upper, lower = thresholds(best)
    without = [b.grade < lower for b, case in zip(every, found, strict=True) if case.withheld]
    weights, intercept = fitted(found, seed)
    weights, intercept = a * weights, a * intercept + b
    how = {
        "reranker": reranker,
        "cases": len(found),
        "passages": sum(len(c.labels) for c in found),
        "evidence": int(sum(c.labels.sum() for c in found)),
        "seed": seed,
        "folds": FOLDS,
        "held_out": measures(best, upper, lower) | {"withheld_incorrect": _share(np.array(without, bool))},
    }
    return Calibration(tuple(round(float(w), 5) for w in weights), round(intercept, 5), upper, lower, how)


def table(made: Calibration) -> str:
    """Markdown: measures, reliability, and what the thresholds give, all held out by company."""
    how, out = made.fitted, made.fitted["held_out"]
    head = (
        f"{how['cases']} cases, {how['passages']} passages, {how['evidence']} of them evidence; held out by company in "
        f"{how['folds']} folds, seed {how['seed']}\n"
        f"AUC {fraction(out['auc'])}, ECE {fraction(out['ece'])}; called incorrect: of the answerable "
        f"{_percent(out['answerable_incorrect'])}, of the others {_percent(out['unanswerable_incorrect'])}, of those "
        f"whose filings were withheld {_percent(out['withheld_incorrect'])}\n\n"
    )
    bins = [[fraction(p), fraction(o), str(n)] for p, o, n in out["reliability"]]
    actions = [
        [name, str(row["n"]), "–" if row["right"] is None else fraction(row["right"])]
        for name, row in out["actions"].items()
    ]
    limits = f"\nupper {made.upper:g}, lower {made.lower:g}\n\n"
    return (
        head
        + markdown(["grade", "evidence", "n"], bins)
        + limits
        + markdown(["action", "n", "best is evidence"], actions)
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"
