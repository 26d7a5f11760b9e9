"""Questions over the specimens: figures filled in from the reports, evidence found again in the written PDFs."""

import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import pypdfium2

from evals.specimens.reports import HERE, Report
from evals.specimens.tables import tables

Question: TypeAlias = dict[str, Any]
"""One line of questions.jsonl."""


class QuestionError(ValueError):
    """A question cites a string that no page of the report holds, or a comparison that the figures contradict."""


def page_texts(data: bytes) -> list[str]:
    """Text of every page of a PDF, first page at 0, runs of white space made one space."""
    with pypdfium2.PdfDocument(data) as document:
        return [" ".join(page.get_textpage().get_text_bounded().split()) for page in document]


def build(reports: Sequence[Report], pages: Mapping[str, Sequence[str]]) -> list[Question]:
    """Every question with its evidence located. `pages` maps a report's stem to its page texts.

    Raises QuestionError where a cited string is on no page.
    """
    by_stem = {report.stem: report for report in reports}
    asked = tomllib.loads((HERE / "questions.toml").read_text(encoding="utf-8"))["question"]
    built, counts = [], dict[str, int]()
    for raw in asked:
        filled = _theme(raw, reports) if "theme" in raw else raw
        counts[filled["class"]] = counts.get(filled["class"], 0) + 1
        name = f"specimen_{filled['class']}_{counts[filled['class']]:02}"
        built.append(_question(name, filled, by_stem, pages))
    return built


def _question(
    name: str, raw: Mapping[str, Any], by_stem: Mapping[str, Report], pages: Mapping[str, Sequence[str]]
) -> Question:
    facts = {stem: report.facts for stem, report in by_stem.items()}
    _check_order(name, raw.get("greater", []), facts)
    evidence = []
    for cited in raw.get("evidence", []):
        report = by_stem[cited["doc"]]
        text = _row_text(report, cited["row"]) if "row" in cited else cited["text"].format_map(facts)
        evidence.append({"doc": report.stem, "page": _page_of(name, text, pages[report.stem]), "text": text})
    docs: list[str] = sorted({cited["doc"] for cited in raw.get("evidence", [])})
    only = by_stem[docs[0]] if len(docs) == 1 else None
    question: Question = {
        "id": name,
        "question": raw["question"],
        "answer": raw["answer"].format_map(facts),
        "class": raw["class"],
        "doc": only.stem if only else None,
        "docs": docs,
        "evidence": evidence,
        "evidence_kind": "verified-string",
        "company": only.company["name"] if only else None,
        "form": only.form if only else None,
        "fiscal_year": only.year if only else None,
        "source": "specimen",
    }
    if "value" in raw:
        question |= {"value": _number(raw["value"].format_map(facts)), "unit": raw["unit"]}
    return question | ({"why": raw["why"]} if "why" in raw else {})


def _number(text: str) -> float:
    return float(text.replace(",", "").removesuffix("%"))


def _check_order(name: str, greater: Sequence[str], facts: Mapping[str, Mapping[str, str]]) -> None:
    figures = [_number(f"{{{path}}}".format_map(facts)) for path in greater]
    if any(left <= right for left, right in pairwise(figures)):
        raise QuestionError(f"{name}: {greater} are {figures}, not falling")


def _row_text(report: Report, place: str) -> str:
    table, label = place.split(":", 1)
    for row in tables(report)[table].rows:
        if row.label == label and row.cells:
            return row.text
    raise QuestionError(f"{report.stem} has no line {place}")


def _page_of(name: str, text: str, pages: Sequence[str]) -> int:
    for number, page in enumerate(pages, start=1):
        if text in page:
            return number
    raise QuestionError(f"{name}: no page holds {text!r}")


def theme_counts(reports: Sequence[Report], theme: str) -> dict[str, int]:
    """Companies by sector whose latest annual report has a risk factor on the theme."""
    counts: dict[str, int] = {}
    for report in _latest(reports):
        found = any(risk["theme"] == theme for risk in report.company["risks"])
        sector = report.company["sector"]
        counts[sector] = counts.get(sector, 0) + found
    return counts


def _latest(reports: Sequence[Report]) -> list[Report]:
    annual = [report for report in reports if report.form == "10-K"]
    last = max(report.year for report in annual)
    return [report for report in annual if report.year == last]


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _theme(raw: Mapping[str, Any], reports: Sequence[Report]) -> Question:
    """A counting question over a theme; evidence is the title of each risk factor counted."""
    counts = theme_counts(reports, raw["theme"])
    first, second = sorted(counts.values(), reverse=True)[:2]
    if first == second:
        raise QuestionError(f"theme {raw['theme']}: two sectors share the count {first}")
    winner = next(sector for sector, count in counts.items() if count == first)
    evidence, named = [], []
    for report in _latest(reports):
        for risk in report.company["risks"]:
            if risk["theme"] == raw["theme"] and report.year in risk.get("years", (report.year,)):
                evidence.append({"doc": report.stem, "text": risk["title"]})
                named.append(f"{report.company['short']} ({report.company['sector']})")
    return {
        "class": "global",
        "question": f"Of {_listed(sorted(counts))}, which sector has the most companies with a risk factor on "
        f"{raw['topic']} in their latest 10-K?",
        "answer": f"{winner}, with {first} companies. Over all sectors they are {_listed(named)}.",
        "evidence": evidence,
    }
