"""A stress run's record as Markdown and as one HTML page that opens from disk."""

from html import escape
from typing import Any

from evals.reports.markdown import headline
from evals.reports.page import page
from evals.reports.record import Record
from evals.reports.tables import cell, fraction, markdown
from evals.statistics import Estimate

_GOOD, _BAD = ("source", "flagged"), ("poison",)


def to_markdown(record: Record) -> str:
    stress = record["stress"]
    rows = [[f"{kind}: {name}", *cells] for kind, name, cells in _rows(stress)]
    kinds = "".join(f"- {kind}: {text}\n" for kind, text in stress["kinds"].items())
    outcomes = "".join(f"- {name}: {text}\n" for name, text in stress["outcomes"].items())
    return (
        f"# Answers over a collection made worse\n\n{headline(record['run'])}\n\n{stress['n']} of them have a figure "
        f"that stands on an evidence page and can be falsified. Shares with Wilson's 95 % interval; lost and won: "
        f"questions whose true figure is stated no longer, or only now, against the clean run, exact sign test.\n\n"
        f"{markdown(['kind: system', *_headings(stress)], rows)}\n{kinds}\n{outcomes}"
    )


def _headings(stress: dict[str, Any]) -> list[str]:
    return ["n", "retrieved", *stress["outcomes"], "lost / won", "p"]


def _rows(stress: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    found = []
    for kind, by_system in stress["cells"].items():
        for name, one in by_system.items():
            shares = [cell(Estimate(**one["outcomes"][outcome])) for outcome in stress["outcomes"]]
            against = one["against"]
            damage = [f"{against['damages']} / {against['wins']}", fraction(against["p"])] if against else ["", ""]
            seen = "" if against is None else fraction(one["retrieved"]["mean"], 2)
            found.append((kind, name, [str(stress["n"]), seen, *shares, *damage]))
    return found


def to_html(record: Record) -> str:
    """Retrieved text is shown as text: nothing in it is markup here."""
    stress = record["stress"]
    parts = {
        "headline": escape(f"{headline(record['run'])} {stress['n']} have a figure that can be falsified."),
        "headings": "".join(f"<th>{escape(heading)}</th>" for heading in _headings(stress)),
        "rows": "".join(_html_row(stress, kind, name, cells) for kind, name, cells in _rows(stress)),
        "kinds": "".join(f"<li><b>{escape(k)}</b>: {escape(text)}</li>" for k, text in stress["kinds"].items()),
        "outcomes": "".join(f"<li><b>{escape(k)}</b>: {escape(text)}</li>" for k, text in stress["outcomes"].items()),
        "questions": "".join(_html_question(question) for question in stress["questions"]),
    }
    return page("stress", parts)


def _html_row(stress: dict[str, Any], kind: str, name: str, cells: list[str]) -> str:
    tones = ["", "", *map(_tone, stress["outcomes"]), "", ""]
    shares = [0.0, 0.0, *(stress["cells"][kind][name]["outcomes"][o]["mean"] for o in stress["outcomes"]), 0.0, 0.0]
    body = "".join(
        f'<td class="{tone}" style="--share:{share:.2f}">{escape(text)}</td>'
        for text, tone, share in zip(cells, tones, shares, strict=True)
    )
    return f"<tr><th>{escape(kind)}: {escape(name)}</th>{body}</tr>"


def _tone(outcome: str) -> str:
    return "good" if outcome in _GOOD else "bad" if outcome in _BAD else ""


def _html_question(question: dict[str, Any]) -> str:
    results = "".join(
        f"<tr><th>{escape(kind)}: {escape(name)}</th><td class={_tone(row['outcome']) or 'plain'}>{row['outcome']}</td>"
        f"<td>{escape(row['answer'])}<small>{escape(' '.join(row['notes']))}</small></td></tr>"
        for kind, by_system in question["results"].items()
        for name, row in by_system.items()
    )
    return (
        f"<details><summary>{escape(question['question'])} <b>{escape(question['answer'])}</b></summary>"
        f"<div class=wide><table>{results}</table></div></details>"
    )
