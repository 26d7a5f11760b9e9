"""The bench's record, its table, and two records side by side."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evals.bench.measures import Measure
from evals.reports.tables import markdown

Record: TypeAlias = dict[str, Any]
Verdict: TypeAlias = Literal["better", "worse", "same"]

SCHEMA = 1
_LEAST = 0.05
"""Change of a median that is worth a word."""
_UNREPEATED = 0.25
"""Noise assumed of a figure that was measured once."""


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    import torch

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(memory, 1),
        "python": platform.python_version(),
        "torch_threads": torch.get_num_threads(),
    }


def as_json(measures: Sequence[Measure]) -> dict[str, Any]:
    """By name: value, rounds, unit, which way is better, aim and whether it is met."""
    return {
        m.name: {
            "value": _short(m.value),
            "rounds": [_short(value) for value in m.rounds],
            "unit": m.unit,
            "better": m.better,
            "aim": m.aim,
            "met": m.met,
        }
        for m in measures
    }


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def headline(record: Record) -> str:
    at = record["machine"]
    before, after = (f"{record['load'][when]:.1f}" for when in ("before", "after"))
    return (
        f"{record['date']}, commit {record['commit'] or 'unknown'}, {record['scale']['name']}, "
        f"{record['seconds']:.0f} s on {at['cores']} cores, {at['memory_gib']:g} GiB, Python {at['python']}, "
        f"torch with {at['torch_threads']} threads; load average {before} before, {after} after."
    )


def to_markdown(record: Record) -> str:
    rows = [
        [
            name,
            _told(m["value"], m["unit"]),
            f"{_plain(min(m['rounds']))} to {_plain(max(m['rounds']))}" if len(m["rounds"]) > 1 else "once",
            _aim(m),
        ]
        for name, m in record["measures"].items()
    ]
    busy = record["load"]["before"] > record["machine"]["cores"] / 2
    warning = "\n> **Beware:** the machine was busy with something else when this began.\n" if busy else ""
    return f"# Speed\n\n{headline(record)}\n{warning}\n{markdown(['measure', 'median', 'rounds', 'aim'], rows)}"


def _aim(measure: Mapping[str, Any]) -> str:
    if measure["aim"] is None:
        return ""
    sign = "≤" if measure["better"] == "lower" else "≥"
    return f"{sign} {measure['aim']:g}: {'met' if measure['met'] else 'missed'}"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _told(value: float, unit: str) -> str:
    return f"{_plain(value)} {unit}" if unit not in ("ratio", "count") else _plain(value)


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of run B against run A."""

    name: str
    unit: str
    a: float
    b: float
    ratio: float | None
    """B over A; None where A is 0."""
    verdict: Verdict


def compare(a: Record, b: Record) -> list[Change]:
    """Over the measures that both have.

    Worse (or better) is what differs by 5 % or more in the median and is beyond the noise: every round of B is worse
    (better) than every round of A. A measure with a single round counts as if it had been a quarter off either way.
    """
    both = [name for name in b["measures"] if name in a["measures"]]
    return [_change(name, a["measures"][name], b["measures"][name]) for name in both]


def _change(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Change:
    (low_a, high_a), (low_b, high_b) = _range(a["rounds"]), _range(b["rounds"])
    ratio = b["value"] / a["value"] if a["value"] else None
    moved = b["value"] != a["value"] if ratio is None else abs(ratio - 1) >= _LEAST
    verdict: Verdict = "same"
    if moved and (low_b > high_a or high_b < low_a):
        verdict = "worse" if (low_b > high_a) == (b["better"] == "lower") else "better"
    return Change(name, b["unit"], a["value"], b["value"], ratio, verdict)


def _range(rounds: Sequence[float]) -> tuple[float, float]:
    if len(rounds) > 1:
        return min(rounds), max(rounds)
    return rounds[0] * (1 - _UNREPEATED), rounds[0] * (1 + _UNREPEATED)


def compared(a: Record, b: Record, changes: Sequence[Change]) -> str:
    """As Markdown: what is worse first."""
    order: Mapping[Verdict, int] = {"worse": 0, "better": 1, "same": 2}
    rows = [
        [c.name, _told(c.a, c.unit), _told(c.b, c.unit), "–" if c.ratio is None else f"{c.ratio:.2f}", c.verdict]
        for c in sorted(changes, key=lambda change: order[change.verdict])
    ]
    worse = sum(change.verdict == "worse" for change in changes)
    other = "" if a["machine"] == b["machine"] else "\n> **Beware:** the machines differ.\n"
    summary = f"\n{worse} of {len(changes)} measures are worse beyond the noise of their rounds.\n"
    table = markdown(["measure", "A", "B", "B / A", "B is"], rows)
    return f"# Two runs compared\n\nA: {headline(a)}\n\nB: {headline(b)}\n{other}\n{table}{summary}"
