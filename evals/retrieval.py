"""Where each system ranks the evidence: document and page hits, nDCG and reciprocal rank, in all and by class."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from evals import measures
from evals.asking import Asking
from evals.questions import Question
from evals.reports.tables import cell, markdown
from evals.statistics import Estimate, Paired, estimate, holm, paired
from evals.subjects import System

COLUMNS = (
    "document hit@1",
    "document hit@5",
    "page hit@1",
    "page hit@5",
    "page hit@10",
    "page nDCG@10",
    "page RR",
)
COMPARED = ("page hit@10", "page nDCG@10")


@dataclass(frozen=True, slots=True)
class Against:
    """One system beside another on the same questions."""

    system: str
    other: str
    measure: str
    paired: Paired


async def run(asking: Asking, systems: Sequence[System], questions: Sequence[Question]) -> dict[str, Any]:
    """Asks what is not asked yet. Per system and class an Estimate per measure; each system against each before it."""
    await asking.ask(asking.missing(systems, questions))
    found: dict[str, Any] = {"k": asking.k, "index": asking.version, "systems": {}, "problems": {}, "paired": []}
    by_system = {system.name: _values(asking, system, questions) for system in systems}
    for system in systems:
        values = by_system[system.name]
        kinds = {"all": questions} | {kind: [q for q in questions if q.kind == kind] for kind in kinds_of(questions)}
        found["systems"][system.name] = {kind: _estimates(values, members) for kind, members in kinds.items()}
        found["problems"][system.name] = len(questions) - len(values)
    found["paired"] = [
        Against(name, other, measure, paired(_column(by_system[name], measure), _column(by_system[other], measure)))
        for other, name in combinations(by_system, 2)
        for measure in COMPARED
    ]
    return found


def _column(values: Mapping[str, Mapping[str, float]], measure: str) -> dict[str, float]:
    return {id_: found[measure] for id_, found in values.items() if measure in found}


async def values_of(asking: Asking, system: System, questions: Sequence[Question], measure: str) -> dict[str, float]:
    """One measure per question id, of the questions it applies to."""
    await asking.ask(asking.missing([system], questions))
    return _column(_values(asking, system, questions), measure)


def _values(asking: Asking, system: System, questions: Sequence[Question]) -> dict[str, dict[str, float]]:
    outcomes = asking.outcomes(system, questions)
    replies = {id_: o.reply for id_, o in outcomes.items() if o.reply is not None}
    return measures.retrieval(questions, replies, asking.k)


def kinds_of(questions: Sequence[Question]) -> list[str]:
    return sorted({q.kind for q in questions if q.documents})


def _estimates(values: Mapping[str, Mapping[str, float]], members: Sequence[Question]) -> dict[str, Estimate]:
    scored = [values[q.id] for q in members if q.id in values]
    names = sorted({name for found in scored for name in found})
    return {name: estimate([found[name] for found in scored if name in found]) for name in names}


def table(found: Mapping[str, Any]) -> str:
    """Markdown: a row per class and system. `n` counts questions with evidence, and of them those scored by page."""
    rows: list[list[str]] = []
    kinds = list(next(iter(found["systems"].values()), {}))
    for kind in kinds:
        for name, by_kind in found["systems"].items():
            cells = [by_kind[kind].get(column, Estimate(0)) for column in COLUMNS]
            n = f"{cells[0].n}" if cells[0].n == cells[2].n else f"{cells[0].n}/{cells[2].n}"
            rows.append([f"{kind}: {name}", n, *map(cell, cells)])
    return markdown(["class: system", "n", *COLUMNS], rows) + "\n" + _paired_table(found["paired"])


def _paired_table(several: Sequence[Against]) -> str:
    """Each p adjusted for the number of rows (Holm)."""
    rows = [
        [
            f"{a.system} against {a.other}",
            a.measure,
            str(a.paired.n),
            str(a.paired.wins),
            str(a.paired.damages),
            f"{a.paired.difference:+.3f}",
            f"{p:.3f}",
        ]
        for a, p in zip(several, holm([a.paired.p for a in several]), strict=True)
    ]
    return markdown(["paired by question", "measure", "n", "wins", "damages", "difference", "p"], rows) if rows else ""


def as_json(found: Mapping[str, Any]) -> dict[str, Any]:
    systems = {
        name: {kind: {measure: asdict(e) for measure, e in by.items()} for kind, by in kinds.items()}
        for name, kinds in found["systems"].items()
    }
    return {**found, "systems": systems, "paired": [asdict(against) for against in found["paired"]]}
