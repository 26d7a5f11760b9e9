"""Finds the numbers of a formula in the table rows of retrieved passages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.computing.arithmetic import evaluate, rounded
from app.computing.formulas import LINES, Formula, Line, Term
from app.evidence.statements import Statement, columns_of, statements
from app.question.periods import Period
from app.types import Hit

_STATEMENTS: Mapping[str, re.Pattern[str]] = {
    "income": re.compile(
        r"\b(?:statements? of (?:\w+ ){0,2}?(?:income|operations|earnings)|income statements?)\b", re.IGNORECASE
    ),
    "balance": re.compile(
        r"\b(?:balance sheets?|statements? of (?:\w+ ){0,2}?(?:position|condition))\b", re.IGNORECASE
    ),
    "cash": re.compile(r"\bstatements? of (?:\w+ ){0,2}?cash flows?\b", re.IGNORECASE),
}
_FOOTNOTE = re.compile(r"\s*\((?:\d|[a-z]|see[^)]*|note[^)]*)\)|[*†‡:.]+$", re.IGNORECASE)
_GAP = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Operand:
    term: Term
    hit: Hit
    statement: Statement
    """Its row; the marker is the hit's place among those given."""
    column: int
    """Position among the row's values, first is 0."""
    written: str
    """As it stands in an expression: `6,489`, `(-123)`."""


def operands(formula: Formula, hits: Sequence[Hit], filings: Sequence[str]) -> list[Operand] | None:
    """One per term, in order; None where one is missing, or their tables' units (thousands, millions) differ.

    `filings` are the documents to believe, first ones first.
    """
    rows = statements(hits)
    found: dict[Term, Operand] = {}
    for name in dict.fromkeys(term.line for term in formula.terms):
        terms = [term for term in formula.terms if term.line == name]
        for own in _rows(LINES[name], terms, rows, hits, filings):
            found = {operand.term: operand for operand in own} | found
    units = {_scale(operand.statement.chunk.unit) for operand in found.values()}
    return [found[term] for term in formula.terms] if len(found) == len(formula.terms) and len(units) == 1 else None


def _rows(
    line: Line, terms: Sequence[Term], rows: Sequence[Statement], hits: Sequence[Hit], filings: Sequence[str]
) -> list[list[Operand]]:
    """Per row of the line, the terms that it has; best row first.

    Better is one of the statement itself, then one that has more of the years, is of the first filing, better labelled.
    """
    found: list[tuple[tuple[int, ...], list[Operand]]] = []
    for row in rows:
        priority = _priority(line, row)
        if row.row is None or priority is None or row.chunk.document_id not in filings:
            continue
        own = []
        for term in terms:
            columns = _columns(row, term.period)
            written = _written(row.row.values[columns[0]], line) if columns else None
            if written:
                own.append(Operand(term, hits[row.marker - 1], row, columns[0], written))
        if own:
            stated = _STATEMENTS[line.statement].search(f"{row.chunk.section or ''} {row.chunk.context}")
            place = filings.index(row.chunk.document_id)
            found.append(((not stated, -len(own), place, priority, row.marker), own))
    return [own for _, own in sorted(found, key=lambda item: item[0])]


def _priority(line: Line, row: Statement) -> int | None:
    """Position of the pattern that is the row's whole label."""
    if row.row is None:
        return None
    label = _GAP.sub(" ", _FOOTNOTE.sub("", row.row.label)).strip(" .:,$—–-")
    for position, pattern in enumerate(line.labels):
        if re.fullmatch(pattern, label, re.IGNORECASE):
            return position
    return None


def _columns(row: Statement, period: Period) -> list[int]:
    """Values of the year's column; where quarters stand beside years, the last that it heads."""
    return columns_of(row, f"year {period}", [period])


def _written(printed: str, line: Line) -> str | None:
    digits = re.sub(r"[^\d.,]", "", printed).strip(",.")
    if "%" in printed or not any(ch.isdigit() for ch in digits):
        return None
    negative = "(" in printed or re.match(r"[$€£¥]?[-−–]", printed) is not None
    return f"(-{digits})" if negative and not line.outflow else digits


def _scale(unit: str | None) -> str:
    found = re.search(r"thousands|millions|billions", unit or "", re.IGNORECASE)
    return found[0].lower() if found else ""


def computed(formula: Formula, found: Sequence[Operand]) -> str:
    """`Fixed asset turnover, 2019: 6,489 / ((253 + 282) / 2) = 24.26`. Raises CalculationError."""
    expression = formula.template.format(*(operand.written for operand in found))
    value = evaluate(expression) * (100 if formula.percent else 1)
    shown = f"{rounded(value, formula.places):,f}" + ("%" if formula.percent else "")
    scale = _scale(found[0].statement.chunk.unit) if "/" not in formula.template else ""
    return f"{formula.name}, {formula.period}{scale and f', in {scale}'}: {expression} = {shown}"
