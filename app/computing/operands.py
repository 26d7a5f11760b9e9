"""Finds the numbers of a formula in the table rows of retrieved passages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.computing.arithmetic import evaluate, rounded
from app.computing.formulas import Formula, Term
from app.evidence.statements import Statement, columns_of, statements
from app.question.lines import LINES, TITLES, Line, label_rank
from app.question.periods import Period
from app.types import Hit

POWERS: Mapping[str, int] = {"thousands": 3, "millions": 6, "billions": 9}
"""Of ten, by a scale's name."""


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
    stated: bool = True
    """Whether its table is titled as the statement itself."""


def operands(terms: Sequence[Term], hits: Sequence[Hit], filings: Sequence[str]) -> dict[Term, Operand]:
    """As many of the terms as rows of these passages have. `filings` are to be believed, first ones first."""
    rows = statements(hits)
    found: dict[Term, Operand] = {}
    for name in dict.fromkeys(term.line for term in terms):
        of_line = [term for term in terms if term.line == name]
        for own in _rows(LINES[name], of_line, rows, hits, filings):
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
        place_of_label = label_rank(line, row.row.label) if row.row else None
        if row.row is None or place_of_label is None or row.chunk.document_id not in filings:
            continue
        own = []
        stated = TITLES[line.statement].search(f"{row.chunk.section or ''} {row.chunk.context}") is not None
        for term in terms:
            columns = columns_for(row, term.period)
            if columns and (number := written(row.row.values[columns[0]], outflow=line.outflow)):
                scale = scale_in(row.chunk.unit)
                own.append(Operand(term, hits[row.marker - 1], row, columns[0], number, scale, stated))
        if own:
            place = filings.index(row.chunk.document_id)
            found.append(((not stated, -len(own), place, place_of_label, row.marker), own))
    return [own for _, own in sorted(found, key=lambda item: item[0])]


def columns_for(row: Statement, period: Period) -> list[int]:
    """Values of the period's column; of several, in a quarterly filing the quarter's, not the year's to date."""
    return columns_of(row, "quarter" if row.chunk.meta.form == "10-Q" else "year", [period])


def written(printed: str, *, outflow: bool = False) -> str | None:
    """As it stands in an expression; None where it is no amount. An outflow's parentheses are no sign."""
    digits = re.sub(r"[^\d.,]", "", printed).strip(",.")
    if "%" in printed or not any(ch.isdigit() for ch in digits):
        return None
    negative = "(" in printed or re.match(r"[$€£¥]?[-−–]", printed) is not None
    return f"(-{digits})" if negative and not outflow else digits


def scale_in(unit: str | None) -> str:
    """thousands, millions, billions, or "" where the text names none."""
    found = re.search("|".join(POWERS), unit or "", re.IGNORECASE)
    return found[0].lower() if found else ""


def computed(formula: Formula, found: Sequence[Operand]) -> str:
    """`Fixed asset turnover, 2019: 6,489 / ((253 + 282) / 2) = 24.26`. Raises CalculationError."""
    expression = formula.template.format(*(operand.written for operand in found))
    value = evaluate(expression) * (100 if formula.percent else 1)
    written_to = max(len(operand.written.strip("()").partition(".")[2]) for operand in found)
    places = formula.places if "/" in formula.template else max(formula.places, written_to)
    shown = f"{rounded(value, places):,f}" + ("%" if formula.percent else "")
    scale = found[0].scale if "/" not in formula.template else ""
    return f"{formula.name}, {formula.period}{scale and f', in {scale}'}: {expression} = {shown}"


def restated(operand: Operand, scale: str) -> str:
    """`Inventory, 2019, in billions: 5,409 / 1000 = 5.41`; "" where its table has that scale, or none is known."""
    by = POWERS.get(scale, 0) - POWERS.get(operand.scale, 0)
    if not by or scale not in POWERS or operand.scale not in POWERS:
        return ""
    factor = str(10 ** abs(by))
    expression = f"{operand.written} {'/' if by > 0 else '*'} {factor}"
    value = rounded(evaluate(expression), 2 if by > 0 else 0)
    return f"{operand.term.line.capitalize()}, {operand.term.period}, in {scale}: {expression} = {value:,f}"
