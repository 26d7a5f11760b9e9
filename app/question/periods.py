"""Fiscal years, quarters and days, as questions and filings name them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FISCAL = re.compile(
    r"\b(?:FY\s?'?)?(?P<year>(?:19|20)\d\d)\b|\bFY\s?'?(?P<short>\d\d)\b"
    r"|\b(?:in|during|year)\s+(?P<far>1[0-8]\d\d|2[1-9]\d\d)(?=\s*(?:[.,;?!]|$))",  # not "in 1500 stores"
    re.I,
)
_ENDED = re.compile(
    r"\b(?P<month>january|february|march|april|may|june|july|august|september|october|november|december)\s+"
    r"(?P<day>\d{1,2}),?\s+(?P<year>(?:19|20)\d\d)\b",
    re.I,
)
_QUARTER_FIRST = re.compile(
    r"\b(?:Q(?P<digit>[1-4])|(?P<word>first|second|third|fourth)(?:\s+fiscal)?\s+quarter)(?:'s)?"
    r"(?:\s+of)?(?:\s+(?:fiscal|FY))?(?:\s+year)?[\s,'-]*(?P<year>(?:19|20)\d\d)\b",
    re.I,
)
_YEAR_FIRST = re.compile(r"\b(?P<year>(?:19|20)\d\d)[\s-]*Q(?P<digit>[1-4])\b", re.I)
MONTHS = "january february march april may june july august september october november december".split()
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}


@dataclass(frozen=True, slots=True)
class Period:
    """A year, a quarter of a year, or the day on which a period ended."""

    year: int
    quarter: int | None = None
    day: str | None = None

    def __str__(self) -> str:
        return self.day or (f"Q{self.quarter} {self.year}" if self.quarter else str(self.year))


def named_periods(question: str) -> tuple[Period, ...]:
    """Periods in the order named; a year that is part of a quarter or a date is not one of its own."""
    found: dict[Period, None] = {}
    rest = question
    for pattern, make in ((_ENDED, _day), (_QUARTER_FIRST, _quarter), (_YEAR_FIRST, _quarter)):
        for match in pattern.finditer(rest):
            found[make(match)] = None
        rest = pattern.sub(" ", rest)
    for match in _FISCAL.finditer(rest):
        found[_year(match)] = None
    return tuple(found)


def without_periods(text: str, periods: Sequence[Period]) -> str:
    """The text less the words that name these periods."""
    gone = set(periods)
    for pattern, make in ((_ENDED, _day), (_QUARTER_FIRST, _quarter), (_YEAR_FIRST, _quarter), (_FISCAL, _year)):
        text = pattern.sub(lambda match, make=make: " " if make(match) in gone else match[0], text)  # type: ignore[misc]
    return " ".join(text.split())


def _year(match: re.Match[str]) -> Period:
    return Period(int(match["year"] or match["far"] or f"20{match['short']}"))


def _day(match: re.Match[str]) -> Period:
    month = MONTHS.index(match["month"].lower()) + 1
    return Period(int(match["year"]), None, f"{match['year']}-{month:02d}-{int(match['day']):02d}")


def _quarter(match: re.Match[str]) -> Period:
    groups = match.groupdict()
    return Period(int(groups["year"]), int(groups["digit"]) if groups["digit"] else _ORDINALS[groups["word"].lower()])


def calendar_quarter(period_end: str | None) -> Period | None:
    """The quarter in which most of the three months before the day lie; a period may end some days into the next."""
    if period_end is None:
        return None
    year, month, day = (int(part) for part in period_end.split("-"))
    months = year * 12 + month - 1 - (day <= 15)
    return Period(months // 12, months % 12 // 3 + 1)
