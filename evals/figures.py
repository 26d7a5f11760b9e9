"""Whether the number that answers a question stands in one retrieved table passage with its label, unit and period."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from app.evidence.quantities import Quantity, quantities, same
from evals.asking import Asking
from evals.measures import Reply
from evals.questions import Question, stem
from evals.reports.tables import markdown
from evals.subjects import HttpSubject, System

Standing = Literal["computed", "prose", "bare", "whole"]
STANDINGS: Mapping[Standing, str] = {
    "computed": "the evidence pages do not print it",
    "prose": "they print it, but in no table",
    "bare": "in a table, without a label, unit or period",
    "whole": "in a table with its label, unit and period",
}
"""Where a question's number stands, the best of its places."""
_SQL = (
    "SELECT value, scale, unit, period_end, label, document_id, page, span_start, span_end FROM figures"
    " WHERE document_id = '{document}' AND page = {page}"
)
_MOST = 1000
"""Figures of a page, as many as the service gives at once."""
Row = Mapping[str, Any]
Place = tuple[str, int, int, int]
"""Document, page, and the slice of the page's text that is the number."""


@dataclass(frozen=True, slots=True)
class Found:
    """One question's number under one system."""

    system: str
    question_id: str
    standing: Standing
    page: bool
    """A passage of an evidence page was retrieved."""
    retrieved: bool
    """So was a passage of a table that holds the number whole: the table, or the part of it that is read."""


async def run(
    asking: Asking, subject: HttpSubject, systems: Sequence[System], questions: Sequence[Question]
) -> list[Found]:
    """Of questions that ask for a number and whose evidence pages are known; those without a reply are left out."""
    numeric = [q for q in questions if q.pages and _numbers(q)]
    await asking.ask(asking.missing(systems, numeric))
    ids = {stem(document["source"]): document["document_id"] for document in await subject.documents()}
    found: list[Found] = []
    for question in numeric:
        keys = [(ids[name], page) for name, page in sorted(question.pages) if name in ids]
        texts = {key: await subject.page(*key) for key in keys}
        printed = [number for text in texts.values() for number in quantities(text)]
        rows = [row for document, page in keys for row in await _rows(subject, document, page)]
        standing, places = place(_numbers(question), printed, rows)
        for system in systems:
            outcome = asking.outcomes(system, [question]).get(question.id)
            if outcome and outcome.reply:
                page, retrieved = _retrieved(outcome.reply, texts, places)
                found.append(Found(system.name, question.id, standing, page, retrieved))
    return found


def _numbers(question: Question) -> list[Quantity]:
    return quantities(question.figure or question.answer, question.text)


async def _rows(subject: HttpSubject, document: str, page: int) -> Sequence[Row]:
    return await subject.figures(_SQL.format(document=document, page=page), _MOST)


def place(
    wanted: Sequence[Quantity], printed: Sequence[Quantity], rows: Sequence[Row]
) -> tuple[Standing, frozenset[Place]]:
    """How the first of the wanted numbers that is printed stands, and where it stands whole."""
    number = next((one for one in wanted if any(same(one, other) for other in printed)), None)
    if number is None:
        return "computed", frozenset()
    tabled = [row for row in rows if same(number, _quantity(row))]
    whole = frozenset(
        (row["document_id"], row["page"], row["span_start"], row["span_end"])
        for row in tabled
        if all(row[name] for name in ("label", "unit", "period_end"))
    )
    return "whole" if whole else "bare" if tabled else "prose", whole


def _quantity(row: Row) -> Quantity:
    value = abs(Decimal(str(row["value"])))
    [printed] = quantities(f"${value:f}") or [Quantity(value, Decimal(0))]
    unit: Literal["%", "money", ""] = "%" if row["unit"] == "percent" else ""
    return replace(printed, unit=unit, scale=row["scale"] if unit == "" else None)


def _retrieved(reply: Reply, texts: Mapping[tuple[str, int], str], places: Iterable[Place]) -> tuple[bool, bool]:
    """Whether an evidence page was, and whether in one passage the number with its row was; `texts` are the pages'."""
    found = [p for p in reply["passages"] if (p["document_id"], p["page"]) in texts]
    read = [(p, texts[p["document_id"], p["page"]].find(p["text"])) for p in found if p["kind"] == "table"]
    return bool(found), any(
        (p["document_id"], p["page"]) == (document, page) and 0 <= at <= start and end <= at + len(p["text"])
        for p, at in read
        for document, page, start, end in places
    )


def table(found: Sequence[Found]) -> str:
    """A row for each system; the last two are shares of the questions with a retrieved evidence page.

    Numbers that were computed or stand in prose are left out of them: no table could hold those.
    """
    rows = []
    for system in dict.fromkeys(one.system for one in found):
        own = [one for one in found if one.system == system]
        counts = [str(sum(one.standing == standing for one in own)) for standing in STANDINGS]
        tabled = [one for one in own if one.standing in ("bare", "whole")]
        reached = [one for one in tabled if one.page]
        shares = [_share(one.standing == "whole" for one in reached), _share(one.retrieved for one in reached)]
        rows.append([system, str(len(own)), *counts, f"{len(reached)} of {len(tabled)}", *shares])
    return markdown(["system", "questions", *STANDINGS, "page retrieved", "whole there", "passage retrieved"], rows)


def _share(holds: Iterable[bool]) -> str:
    several = list(holds)
    return f"{sum(several) / len(several):.2f}" if several else "-"
