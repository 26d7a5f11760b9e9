"""The period that a table's column is headed by: "Three Months Ended March 31, 2023", "December 31, 2022", "2023"."""

import calendar
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeAlias

from app.types import DocumentMeta
from ingest.extraction.metadata import DATE, MONTH, months_later, parse_date

Period: TypeAlias = tuple[str | None, int | None]
"""ISO date of its end and its length in months, 0 for an instant; None is unknown."""

_ANNUAL = frozenset({"10-K", "20-F", "40-F", "AR"})
DAY = re.compile(DATE, re.I)
_MONTH_DAY = re.compile(rf"\b(?:{MONTH})\.?\s+\d{{1,2}}\b", re.I)
_YEAR = re.compile(r"(?<![\d,.$])(?:FY\s?'?)?((?:19|20)\d\d)\b(?!,\d)|\b(?:FY|[1-4]Q|Q[1-4])\s?'?(\d\d)\b", re.I)
_QUARTER = re.compile(
    r"\bQ([1-4])(?=\b|FY)|\b([1-4])Q(?=\b|\d)|\b(first|second|third|fourth)\s+(?:fiscal\s+)?quarter\b", re.I
)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_COUNTS = {
    "three": 3, "six": 6, "nine": 9, "twelve": 12, "thirteen": 13, "fourteen": 14, "twenty-six": 26,
    "twenty-seven": 27, "thirty-nine": 39, "forty": 40, "fifty-two": 52, "fifty-three": 53,
}  # fmt: skip
_SPAN = re.compile(rf"\b(\d{{1,2}}|{'|'.join(_COUNTS)})[\s-]+(months?|weeks?)\b", re.I)
_LASTS = (
    (re.compile(r"\bquarters?\s+(?:then\s+)?end(?:ed|ing)\b", re.I), 3),
    (re.compile(r"\bhalf[\s-]years?\b", re.I), 6),
    (re.compile(r"\b(?:fiscal\s+)?years?(?:\s+then)?\s+end(?:ed|ing)\b|\bannual\b|\byear\s+to\s+date\b", re.I), 12),
)
_AT = re.compile(rf"(?:^|\b(?:at|as\s+of)\s+|\bbalances?,?\s+)({DATE})\W*$", re.I)
_RANGE = re.compile(rf"({DATE})\s*(?:[–—-]|to|through)\s*({DATE})", re.I)
_YEAR_ROW = re.compile(r"\s*(?:fiscal\s+(?:year\s+)?)?(?:FY\s?'?)?(?:(?:19|20)\d\d|\d\d)\s*:?", re.I)
_SPOKEN_OF = re.compile(rf"\b(?:as\s+of|at|ended|ending)\s+({DATE})", re.I)
_CHANGE = re.compile(r"\bchanges?\b|\bvariance\b|\bgrowth\b|\bvs\.?\b|^\W*%", re.I)
_INSTANT = re.compile(r"\b(?:as\s+of|as\s+at)\b|^at\b", re.I)
_BALANCES = re.compile(r"balance\s+sheets?|statements?\s+of\s+financial\s+(?:position|condition)", re.I)
_FLOWS = re.compile(
    r"statements?\s+of\s+(?:\w+\s+)*?(?:income|operations|earnings|loss|cash\s+flows?|comprehensive)"
    r"|income\s+statements?|cash\s+flows?\s+statements?",
    re.I,
)
_NEAR = timedelta(days=8)
"""How far a year of 52 or 53 weeks may end from another's anniversary."""


@dataclass(frozen=True, slots=True)
class FiscalYears:
    """On which day a filing's fiscal years end."""

    ends: Mapping[int, date]
    annual: bool
    """Whether the filing reports a year."""

    def end(self, year: int, quarter: int = 4) -> date | None:
        """None where unknown. A quarter's end is told only from a year that ends with a month."""
        end = self.ends.get(year)
        if end is None or quarter == 4:
            return end
        return _month_end(months_later(end, 3 * (quarter - 4))) if _month_end(end) == end else None


def fiscal_years(meta: DocumentMeta, heads: Iterable[str]) -> FiscalYears:
    """From the period that the filing reports; where years end on a weekday, from the dates that table heads print."""
    annual = meta.form in _ANNUAL or (meta.form is None and meta.fiscal_period == "FY")
    quarter = {"Q1": 1, "Q2": 2, "Q3": 3}.get(meta.fiscal_period or "", 4)
    own = parse_date(meta.period_end)
    if own is None or meta.fiscal_year is None or (quarter == 4 and not annual and meta.fiscal_period is None):
        return FiscalYears({}, annual)
    ends: dict[int, date] = {}
    if _month_end(own) == own:
        year_end = _month_end(months_later(own, 3 * (4 - quarter)))
        ends = {meta.fiscal_year + n: _month_end(months_later(year_end, 12 * n)) for n in range(-12, 6)}
    elif quarter == 4:
        ends[meta.fiscal_year] = own
        for day in {d for head in heads for m in DAY.finditer(head) if (d := parse_date(m[0]))}:
            years = round((day - own).days / 365.25)
            if abs(day - months_later(own, 12 * years)) <= _NEAR:
                ends.setdefault(meta.fiscal_year + years, day)
    return FiscalYears(ends, annual)


def period_of(header: str, head: str, statement: str | None, years: FiscalYears) -> Period:
    """Of a column by its header; what that leaves open by the table's whole head, and by the statement's kind."""
    if _CHANGE.search(header) and not _year(header):
        return None, None
    day = _day(header, head)
    months = _months(header)
    if months is None and not _INSTANT.search(header):
        months = _months(head)
    if day is None and (year := _year(header)):
        quarter = _quarter(header)
        day = years.end(year, quarter or 4)
        if quarter:
            return (_iso(day), 3)
        if months != 12 and not (years.annual and months is None):
            day = None
    if day is None and not _year(header):
        return _of_head(head)
    if months is None or _BALANCES.search(f"{statement} {head}"):
        months = _kind(header, f"{statement} {head}", years)
    return _iso(day), months


def row_period(heading: str, label: str, column: Period, years: FiscalYears) -> Period:
    """That a row names itself, or the heading it stands under: "Balance at December 31, 2022", "First quarter".

    The column's period where it names none; the year in which a note is due is none.
    """
    if between := _RANGE.search(label):
        return _between(parse_date(between[1]), parse_date(between[2]))
    for text in (label, heading):
        if found := _AT.search(text):
            return _iso(parse_date(found[1])), 0
        if (months := _months(text)) and (found := DAY.search(text)):
            return _iso(parse_date(found[0])), months
    year, quarter = _year(label), _quarter(label)
    if quarter and (year or column[1] == 12):
        end = years.end(year, quarter) if year else _quarter_of(column[0], quarter, years)
        return _iso(end), 3
    if column[0] is None and year and _YEAR_ROW.fullmatch(label):
        return _iso(years.end(year)), 12
    return column


def _between(first: date | None, last: date | None) -> Period:
    if first is None or last is None or last < first:
        return None, None
    return _iso(last), round((last - first).days / 30.4) or None


def _quarter_of(year_end: str | None, quarter: int, years: FiscalYears) -> date | None:
    """The quarter's end in the fiscal year that ends on this day."""
    year = next((year for year, end in years.ends.items() if _iso(end) == year_end), None)
    return years.end(year, quarter) if year else None


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _of_head(head: str) -> Period:
    """The one period that a table's head speaks of: "as of December 31, 2022", "for the year ended ..."."""
    days = {parse_date(m[1]) for m in _SPOKEN_OF.finditer(head)}
    named = ({m[0] for m in DAY.finditer(head)}, {m[1] for m in _YEAR.finditer(head)})
    if len(days) != 1 or any(len(each) != 1 for each in named):
        return None, None
    ended = _SPOKEN_OF.search(head)
    instant = ended is not None and not ended[0].lower().startswith("end")
    return _iso(days.pop()), 0 if instant else _months(head)


def _day(header: str, head: str) -> date | None:
    """A date in the header, or its year with the one month and day that the header or else the head prints."""
    if found := DAY.search(header):
        return parse_date(found[0])
    year = _year(header)
    if year is None or _quarter(header):
        return None
    for text in (header, head):
        days = {" ".join(m[0].split()).lower() for m in _MONTH_DAY.finditer(text)}
        if len(days) == 1:
            return parse_date(f"{days.pop()}, {year}")
        if days:
            return None
    return None


def _year(text: str) -> int | None:
    found = _YEAR.search(text)
    return int(found[1] or f"20{found[2]}") if found else None


def _quarter(text: str) -> int | None:
    found = _QUARTER.search(text)
    return (int(found[1] or found[2] or 0) or _ORDINALS[found[3].lower()]) if found else None


def _months(text: str) -> int | None:
    """None where nothing says how long, or several things do."""
    said = {_length(m[1].lower(), m[2].lower()) for m in _SPAN.finditer(text)}
    said |= {months for pattern, months in _LASTS if pattern.search(text)} if not said else set()
    return said.pop() if len(said) == 1 else None


def _length(count: str, unit: str) -> int | None:
    number = _COUNTS.get(count) or int(count)
    if unit.startswith("month"):
        return number
    return {13: 3, 14: 3, 26: 6, 27: 6, 39: 9, 40: 9, 52: 12, 53: 12}.get(number)


def _kind(header: str, where: str, years: FiscalYears) -> int | None:
    """Length of a period that no word tells."""
    if _BALANCES.search(where) or _INSTANT.search(header):
        return 0
    dated = DAY.search(header) or _MONTH_DAY.search(header)
    if dated and not _FLOWS.search(where):
        return 0
    return 12 if years.annual else None


def _month_end(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])
