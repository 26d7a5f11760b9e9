"""Finds the numbers of a formula in the table rows of retrieved passages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.computing.arithmetic import evaluate, rounded
from app.computing.formulas import LINES, Formula, Line, Term
from app.evidence.statements import Statement, columns_of, statements
from app.question.periods import Period
from app.types import Hit

STATEMENTS: Mapping[str, re.Pattern[str]] = {
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
    column: int | None
    """Position among the row's values, first is 0; None where the row is quoted whole."""
    written: str
    """As it stands in an expression: `6,489`, `(-123)`."""
    scale: str
    """thousands, millions, billions, or "" where its table states none."""


def operands(formula: Formula, hits: Sequence[Hit], filings: Sequence[str]) -> dict[Term, Operand]:
    """As many of the terms as rows of these passages have. `filings` are to be believed, first ones first."""
    rows = statements(hits)
    found: dict[Term, Operand] = {}
    for name in dict.fromkeys(term.line for term in formula.terms):
        terms = [term for term in formula.terms if term.line == name]
        for own in _rows(LINES[name], terms, rows, hits, filings):
            found = {operand.term: operand for operand in own} | found
    return found


def _rows(
    line: Line, terms: Sequence[Term], rows: Sequence[Statement], hits: Sequence[Hit], filings: Sequence[str]
) -> list[list[Operand]]:
    """Per row of the line, the terms that it has; best row first.

    Better is one of the statement itself, then one that has more of the years, is of the first filing, better labelled.
    """
    found: list[tuple[tuple[int, ...], list[Operand]]] = []
    for row in rows:
        place_of_label = priority(line, row.row.label) if row.row else None
        if row.row is None or place_of_label is None or row.chunk.document_id not in filings:
            continue
        own = []
        for term in terms:
            columns = _columns(row, term.period)
            if columns and (number := written(row.row.values[columns[0]], line)):
                own.append(Operand(term, hits[row.marker - 1], row, columns[0], number, _scale(row.chunk.unit)))
        if own:
            stated = STATEMENTS[line.statement].search(f"{row.chunk.section or ''} {row.chunk.context}")
            place = filings.index(row.chunk.document_id)
            found.append(((not stated, -len(own), place, place_of_label, row.marker), own))
    return [own for _, own in sorted(found, key=lambda item: item[0])]


def priority(line: Line, label: str) -> int | None:
    """Position of the pattern that is a row's whole label."""
    label = _GAP.sub(" ", _FOOTNOTE.sub("", label)).strip(" .:,$—–-")
    for position, pattern in enumerate(line.labels):
        if re.fullmatch(pattern, label, re.IGNORECASE):
            return position
    return None


def _columns(row: Statement, period: Period) -> list[int]:
    """Values of the year's column; where quarters stand beside years, the last that it heads."""
    return columns_of(row, f"year {period}", [period])


def written(printed: str, line: Line) -> str | None:
    """As it stands in an expression; None where it is no amount."""
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
    scale = found[0].scale if "/" not in formula.template else ""
    return f"{formula.name}, {formula.period}{scale and f', in {scale}'}: {expression} = {shown}"
