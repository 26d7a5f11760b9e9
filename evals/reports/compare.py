"""Two runs side by side: what got better, what got worse, question by question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.reports.markdown import headline
from evals.reports.record import Record
from evals.reports.tables import fraction, markdown
from evals.statistics import Paired, holm, paired

_SHOWN = ("answer", "page hit@10", "cited_precision", "refusal", "false_refusal")
"""Measures of the table that has both runs side by side."""


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of one system, run B against run A."""

    system: str
    measure: str
    paired: Paired
    p_adjusted: float
    """Holm, over all systems and measures compared."""
    questions: Mapping[str, tuple[float, float]]
    """Value in A and in B of each question where they differ."""


def compare(a: Record, b: Record) -> list[Change]:
    """Over the systems, measures and questions that both runs have."""
    systems = [s["name"] for s in b["systems"] if s["name"] in {s["name"] for s in a["systems"]}]
    measures = [m for m in b["matrix"]["measures"] if m in a["matrix"]["measures"]]
    columns = [(s, m, _column(a["questions"], s, m), _column(b["questions"], s, m)) for s in systems for m in measures]
    found = [(s, m, before, after, paired(after, before)) for s, m, before, after in columns]
    found = [row for row in found if row[4].n]
    adjusted = holm([row[4].p for row in found])
    return [
        Change(system, measure, both, p, {id_: (before[id_], v) for id_, v in after.items() if v != before.get(id_, v)})
        for (system, measure, before, after, both), p in zip(found, adjusted, strict=True)
    ]


def _column(questions: Sequence[Mapping[str, Any]], system: str, measure: str) -> dict[str, float]:
    found = ((q["id"], q["results"].get(system, {}).get("measures", {})) for q in questions)
    return {id_: values[measure] for id_, values in found if measure in values}


def _beside(a: Record, b: Record) -> str:
    """Worth and price of each system in A and in B, a line each; measures that a run lacks are a dash."""
    of_a, of_b = ({system["name"]: system["bill"] for system in run["systems"]} for run in (a, b))
    names = [name for name in of_b if name in of_a]
    rows = [
        _line(run, label, name, bills[name]) for name in names for run, label, bills in ((a, "A", of_a), (b, "B", of_b))
    ]
    prices = ["ops a question", "LLM calls a question", "tokens a question", "p50 / p95 ms"]
    return markdown(["system", "run", *_SHOWN, *prices], rows)


def _line(run: Record, label: str, name: str, bill: Mapping[str, Any]) -> list[str]:
    cells = run["matrix"]["cells"]
    measured = [cells.get(measure, {}).get(name, {}).get("all", {}).get("estimate") for measure in _SHOWN]
    return [
        name,
        label,
        *("–" if each is None or each["mean"] is None else fraction(each["mean"]) for each in measured),
        f"{bill['mean_ops']['mean'] or 0:,.0f}",
        f"{bill['mean_calls']['mean'] or 0:.2f}",
        f"{(bill['input_tokens'] + bill['output_tokens']) / max(bill['n'], 1):,.0f}",
        f"{bill['p50_ms'] or 0:,.0f} / {bill['p95_ms'] or 0:,.0f}",
    ]


def to_markdown(a: Record, b: Record, changes: Sequence[Change]) -> str:
    moved = [change for change in changes if change.questions]
    head = f"# Two runs compared\n\nA: {headline(a['run'])}\n\nB: {headline(b['run'])}\n\n{_beside(a, b)}\n"
    if not moved:
        return head + "No measure of any question differs.\n"
    rows = [
        [
            change.system,
            change.measure,
            *(str(count) for count in (change.paired.n, change.paired.wins, change.paired.damages)),
            f"{change.paired.difference:+.3f}",
            f"{change.p_adjusted:.3f}",
        ]
        for change in moved
    ]
    questions = [
        [change.system, change.measure, id_, f"{before:g} → {after:g}"]
        for change in moved
        for id_, (before, after) in change.questions.items()
    ]
    return (
        head
        + markdown(["system", "measure", "n", "higher", "lower", "mean difference", "p (Holm)"], rows)
        + "\n## Questions that changed\n\n"
        + markdown(["system", "measure", "question", "A → B"], questions)
    )
