"""Finds the numbers of a formula in the figures' table, which knows the statement, and proves each on its page."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from app.computing.arithmetic import evaluate
from app.computing.formulas import Term
from app.computing.operands import POWERS, Operand, written
from app.errors import InvalidQuery, Timeout
from app.evidence.quotes import Unit, units
from app.evidence.statements import Statement
from app.question.lines import LINES, TITLES, Line, label_rank
from app.tools import Tools
from app.types import Chunk, Document, Filter, Hit, Rows

_MOST = 2_000
"""Figures read for one question."""
_DAYS = 365.25
_OFF = 0.1
"""Of a year, how far from the fiscal year's end a column may end: weeks make years of 364 or 371 days."""
_HEADED = re.compile(r"^(?:[^:]*(?:assets|liabilities|equity|activities|operations)[^:]*:\s*)+", re.IGNORECASE)
"""Headings of a balance sheet or of cash flows above a label; above a label of income stands a segment."""
_SCALES: Mapping[int, str] = {power: scale for scale, power in POWERS.items()}


@dataclass(frozen=True, slots=True)
class _Found:
    """A figure that is the term's by label, period and statement."""

    place: int
    """Of its filing among those to believe, first is 0."""
    priority: int
    """Of the label's pattern."""
    row: Mapping[str, Any]


async def operands_by_sql(
    terms: Sequence[Term], filings: Sequence[Document], where: Filter, tools: Tools
) -> dict[Term, Operand]:
    """Those of the terms for which the best filing has one value in the statement itself, where it can be quoted.

    `filings` are the documents to believe, first ones first. Nothing where the index keeps no figures.
    """
    if tools.ports.figures is None or not terms:
        return {}
    try:
        table = await tools.sql(_statement([document.id for document in filings]), limit=_MOST)
    except (InvalidQuery, Timeout) as error:
        tools.note("no_figures", why=str(error))
        return {}
    best = await asyncio.to_thread(_best_of, terms, table, filings)
    ids = list(dict.fromkeys(found.row["chunk_id"] for found in best.values()))
    chunks = {chunk.id: chunk for chunk in (await tools.chunks(ids, where) if ids else [])}
    proven = {
        term: operand
        for term, found in best.items()
        if found.row["chunk_id"] in chunks and (operand := _proven(term, found.row, chunks[found.row["chunk_id"]]))
    }
    tools.note("figures", terms=[f"{term.line} {term.period}" for term in proven])
    return proven


def _statement(ids: Sequence[str]) -> str:
    listed = ", ".join("'" + each.replace("'", "''") + "'" for each in ids)
    return (
        "SELECT document_id, label, statement, period_end, period_months, value, scale, unit, chunk_id, span_start,"
        f" span_end FROM figures WHERE document_id IN ({listed}) AND chunk_id IS NOT NULL AND dimensions IS NULL"
        " AND period_end IS NOT NULL AND period_months IN (0, 12) AND (statement LIKE '%statement%' OR statement LIKE"
        " '%balance sheet%') ORDER BY document_id, page, span_start"
    )


def _best_of(terms: Sequence[Term], table: Rows, filings: Sequence[Document]) -> dict[Term, _Found]:
    return {term: found for term in terms if (found := _best(term, table, filings))}


def _best(term: Term, table: Rows, filings: Sequence[Document]) -> _Found | None:
    """None where there is none, or the best are several of different value."""
    line, ids = LINES[term.line], [document.id for document in filings]
    found = []
    for values in table.rows:
        row = dict(zip(table.columns, values, strict=True))
        place = ids.index(row["document_id"]) if row["document_id"] in ids else -1
        if place < 0 or not _is_of(line, row) or _year(row["period_end"], filings[place]) != term.period.year:
            continue
        if (of_label := label_rank(line, _label(line, row["label"]))) is not None:
            found.append(_Found(place, of_label, row))
    best = min(((one.place, one.priority) for one in found), default=None)
    chosen = [one for one in found if (one.place, one.priority) == best]
    return chosen[0] if len({(one.row["value"], one.row["scale"]) for one in chosen}) == 1 else None


def _is_of(line: Line, row: Mapping[str, Any]) -> bool:
    months = 0 if line.statement == "balance" else 12
    plain = row["unit"] not in ("percent", "USD/share", "shares")
    return plain and row["period_months"] == months and bool(TITLES[line.statement].search(row["statement"]))


def _label(line: Line, label: str) -> str:
    return label if line.statement == "income" else _HEADED.sub("", label)


def _year(period_end: str, filing: Document) -> int | None:
    """The fiscal year that ends then, told by the filing's own; None where it is no year's end."""
    own, year = filing.meta.period_end, filing.meta.fiscal_year
    if own is None or year is None:
        return None
    years = (date.fromisoformat(own) - date.fromisoformat(period_end)).days / _DAYS
    return year - round(years) if abs(years - round(years)) < _OFF else None


def _proven(term: Term, row: Mapping[str, Any], chunk: Chunk) -> Operand | None:
    """None unless the chunk has the number where the figure says so, in a row under the figure's label."""
    start, end = row["span_start"] - chunk.start, row["span_end"] - chunk.start
    unit = next((unit for unit in units(chunk) if unit.start <= start and end <= unit.end), None)
    if unit is None or not _labelled(row["label"], unit):
        return None
    printed = written(chunk.text[start:end], outflow=LINES[term.line].outflow)
    if printed is None or evaluate(printed) != Decimal(str(_amount(row["value"], LINES[term.line]))):
        return None
    statement = Statement(1, chunk, unit, None, "", frozenset())
    return Operand(term, Hit(chunk, 1, 1.0), statement, None, printed, _SCALES.get(row["scale"], ""))


def _labelled(label: str, unit: Unit) -> bool:
    return " ".join(label.rpartition(": ")[2].split()).lower() in " ".join(unit.text.split()).lower()


def _amount(value: float, line: Line) -> float:
    return abs(value) if line.outflow else value
