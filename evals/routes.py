"""What each architecture was worth on each kind of question that the router tells apart, and what choosing gains."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal, TypeAlias

from app.question.routing import ROUTES, Kind, order, route
from app.types import Document, DocumentMeta, Measured
from evals.matrix import Scores
from evals.questions import Question
from evals.statistics import Estimate, estimate

Role: TypeAlias = Literal["fixed", "router", "oracle"]
MEASURED = "auto by this matrix"
ORACLE = "oracle"
_META = ("title", "source", "company", "cik", "ticker", "form", "fiscal_year", "fiscal_period", "period_end", "filed")


def catalogue(documents: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Records as the router reads them, from the service's list."""
    return [
        Document(d["document_id"], "", DocumentMeta(**{name: d[name] for name in _META}), d["pages"], d["chunks"])
        for d in documents
    ]


def kinds_of(questions: Sequence[Question], documents: Sequence[Document]) -> dict[str, Kind]:
    """By question id."""
    return {question.id: route(question.text, documents).kind for question in questions}


def measured(
    scores: Sequence[Scores], questions: Sequence[Question], kinds: Mapping[str, Kind], quality: str
) -> dict[str, list[Measured]]:
    """Architectures asked with their defaults alone, on the questions that all of them were scored on."""
    plain = [one for one in scores if not one.system.options and one.system.arch != "auto"]
    columns = {one.system.arch: one.column(quality, questions) for one in plain}
    found: dict[str, list[Measured]] = {}
    for kind in ROUTES:
        ids = [q.id for q in questions if kinds[q.id] == kind and all(q.id in column for column in columns.values())]
        if ids:
            found[kind] = [_measured(one, columns[one.system.arch], ids) for one in plain]
    return found


def _measured(scores: Scores, column: Mapping[str, float], ids: Sequence[str]) -> Measured:
    costs = [scores.outcomes[id_].cost for id_ in ids]
    return Measured(
        scores.system.arch,
        len(ids),
        round(fmean(column[id_] for id_ in ids), 4),
        round(fmean(cost.get("ops", 0) for cost in costs), 1),
        round(fmean(cost.get("llm_calls", 0) for cost in costs), 2),
    )


def to_json(found: Mapping[str, Sequence[Measured]], generator: str) -> str:
    """What the service reads beside its index; what answers cost and are worth holds for one generator alone."""
    kinds = {kind: [asdict(one) for one in several] for kind, several in found.items()}
    return json.dumps({"generator": generator, "kinds": kinds}, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to choose who answers, on the questions that every system was scored on."""

    name: str
    role: Role
    """One architecture for all questions; one chosen by rules or measurements; or with hindsight."""
    quality: Estimate
    ops: float
    """Mean per question, as the LLM calls."""
    llm_calls: float


def choices(
    scores: Sequence[Scores], questions: Sequence[Question], kinds: Mapping[str, Kind], quality: str
) -> list[Choice]:
    """Each system as it was asked; what measurements would choose; and the oracle, whom no router beats.

    Measurements choose for each question by all others, so that none is judged by itself. The oracle takes the best
    architecture of each question, the cheapest of several, and pays for that one alone.
    """
    columns = {one.system.name: one.column(quality, questions) for one in scores}
    ids = [q.id for q in questions if all(q.id in column for column in columns.values())]
    fixed = [one for one in scores if one.system.arch != "auto"]
    if not ids or len(fixed) < 2:
        return []
    every: list[tuple[str, Role, dict[str, Scores]]] = [
        (one.system.name, "router" if one.system.arch == "auto" else "fixed", dict.fromkeys(ids, one)) for one in scores
    ]
    by_others = dict(_by_others(fixed, [q for q in questions if q.id in ids], kinds, quality))
    if len(by_others) == len(ids):
        every.append((MEASURED, "router", by_others))
    hindsight = {id_: min(fixed, key=lambda one: (-columns[one.system.name][id_], *_price(one, id_))) for id_ in ids}
    every.append((ORACLE, "oracle", hindsight))
    return [_choice(name, role, taken, columns) for name, role, taken in every]


def _choice(name: str, role: Role, taken: Mapping[str, Scores], columns: Mapping[str, Mapping[str, float]]) -> Choice:
    values = [columns[one.system.name][id_] for id_, one in taken.items()]
    calls, ops = zip(*(_price(one, id_) for id_, one in taken.items()), strict=True)
    return Choice(name, role, estimate(values), fmean(ops), fmean(calls))


def _by_others(
    fixed: Sequence[Scores], questions: Sequence[Question], kinds: Mapping[str, Kind], quality: str
) -> Iterator[tuple[str, Scores]]:
    """By question id, whom the measurements of all other questions choose; none where that one was not asked."""
    plain = {one.system.arch: one for one in fixed if not one.system.options}
    for question in questions:
        found = measured(fixed, [other for other in questions if other is not question], kinds, quality)
        archs, _ = order(kinds[question.id], found, None)
        if chosen := next((plain[arch] for arch in archs if arch in plain), None):
            yield question.id, chosen


def _price(scores: Scores, id_: str) -> tuple[float, float]:
    """LLM calls and ops."""
    cost = scores.outcomes[id_].cost
    return cost.get("llm_calls", 0), cost.get("ops", 0)
