"""Reads a question for the filings it names: company, form, fiscal period, resolved against those that are indexed."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.tools import Tools
from app.types import Condition, Document, Filter, Question

_SUFFIXES = frozenset(
    "ag bancorp co communications companies company corp corporation enterprises group holding holdings inc "
    "incorporated industries international limited llc lp ltd nv of plc sa se technologies the trust".split()
)
_GENERIC = frozenset(
    "advanced allied american applied bank best capital central city consolidated eastern energy federal first general "
    "global great international national new north northern old pacific public royal south southern standard state "
    "union united universal us western world".split()
)
"""First words of names that do not stand for the company alone."""
_WORD = re.compile(r"[^\W_]+(?:&[^\W_]+)*")
_FISCAL = re.compile(r"\b(?:FY\s?'?)?(?P<year>(?:19|20)\d\d)\b|\bFY\s?'?(?P<short>\d\d)\b", re.I)
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
_MONTHS = "january february march april may june july august september october november december".split()
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_FORMS = (
    ("10-K", re.compile(r"\b10-?K\b|\bannual reports?\b", re.I)),
    ("10-Q", re.compile(r"\b10-?Qs?\b|\bquarterly reports?\b", re.I)),
    ("8-K", re.compile(r"\b8-?Ks?\b|\bcurrent reports?\b", re.I)),
    ("20-F", re.compile(r"\b20-?F\b", re.I)),
    ("ER", re.compile(r"\b(?:earnings|press) releases?\b", re.I)),
)
_LATEST = re.compile(
    r"\b(?:most recent|latest|newest|last)\s+(?:10-?[KQ]|(?:annual|quarterly)\s+report|filing|quarter)\b", re.I
)
_COMPARED = re.compile(r"\b(?:compar|prior|previous|versus|vs\b|trend|histor|over (?:time|the))", re.I)
_SHOWN = 20
"""Most ids put into a trace."""
_ANNUAL = frozenset({"10-K", "20-F", "AR"})


@dataclass(frozen=True, slots=True)
class Reading:
    """The filings a question is about, as far as it says so."""

    documents: tuple[str, ...]
    """Ids; empty where the question names no company of the index."""
    companies: tuple[str, ...] = ()
    periods: tuple[str, ...] = ()
    """As read: "2018", "Q2 2023", "2023-07-01"."""
    forms: tuple[str, ...] = ()
    latest: bool = False
    """Whether it asks for the newest of them, and only that is meant."""
    relaxed: tuple[str, ...] = ()
    """What the question names but no filing of these companies matches, and was therefore left out."""


def read(question: str, catalogue: Sequence[Document]) -> Reading:
    """Narrow to the companies named, then each company's filings by period, form and newness.

    What would leave a company nothing is left out for that company, and said if it was so for all.
    """
    companies = sorted(named_companies(question, catalogue))
    forms = tuple(form for form, pattern in _FORMS if pattern.search(question))
    periods = named_periods(question)
    latest = bool(_LATEST.search(question)) and not periods and not _COMPARED.search(question)
    chosen: list[Document] = []
    unmatched: list[set[str]] = []
    for company in companies:
        own = [d for d in catalogue if d.meta.company == company]
        by_period = [d for d in own if any(_reports(d, p) for p in periods)] or _comparatives(own, periods)
        own = by_period or own
        by_form = [d for d in own if d.meta.form in forms or (d.meta.form == "AR" and "10-K" in forms)]
        own = by_form or own
        chosen += _newest(own) if latest else own
        unmatched.append({*(() if by_period else map(str, periods)), *(() if by_form else forms)})
    relaxed = tuple(sorted(set.intersection(*unmatched))) if unmatched else ()
    ids = tuple(sorted(d.id for d in chosen))
    return Reading(ids, tuple(companies), tuple(map(str, periods)), forms, latest, relaxed)


def _newest(documents: Sequence[Document]) -> list[Document]:
    last = max(d.meta.period_end or "" for d in documents)
    return [d for d in documents if (d.meta.period_end or "") == last]


def named_companies(question: str, catalogue: Iterable[Document]) -> frozenset[str]:
    """Companies of the catalogue whose name, short name or ticker stands in the question."""
    words = [word.lower() for word in _WORD.findall(_without_possessive(question))]
    text = f" {' '.join(words)} "
    verbatim = frozenset(re.findall(r"\b[A-Z][A-Z.]{1,5}\b", question))
    found: set[str] = set()
    for company, ticker in {(d.meta.company, d.meta.ticker) for d in catalogue if d.meta.company}:
        if company and (ticker in verbatim or any(f" {name} " in text for name in _names(company))):
            found.add(company)
    return frozenset(found)


@lru_cache(maxsize=10_000)
def _names(company: str) -> tuple[str, ...]:
    """Lower-case forms under which a company is spoken of: without suffix, and the first word if telling."""
    words = [word.lower() for word in _WORD.findall(_without_possessive(company))]
    while words and words[0] == "the":
        words.pop(0)
    words = [w for w in words if w != "com"] or words
    core = list(words)
    while len(core) > 1 and core[-1] in _SUFFIXES:
        core.pop()
    names = {" ".join(core)} if core and " ".join(core) not in _GENERIC | _SUFFIXES else {" ".join(words)}
    if core and len(core[0]) >= 3 and core[0] not in _GENERIC:
        names.add(core[0])
    return tuple(sorted(names))


def _without_possessive(text: str) -> str:
    return re.sub(r"['’]s?\b", "", text)


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
        found[Period(int(match["year"] or f"20{match['short']}"))] = None
    return tuple(found)


def _day(match: re.Match[str]) -> Period:
    month = _MONTHS.index(match["month"].lower()) + 1
    return Period(int(match["year"]), None, f"{match['year']}-{month:02d}-{int(match['day']):02d}")


def _quarter(match: re.Match[str]) -> Period:
    groups = match.groupdict()
    return Period(int(groups["year"]), int(groups["digit"]) if groups["digit"] else _ORDINALS[groups["word"].lower()])


def _reports(document: Document, period: Period) -> bool:
    """Whether the filing is for the period by the company's fiscal calendar, by the calendar, or by its file's name."""
    meta = document.meta
    if period.day:
        return meta.period_end == period.day
    if period.quarter is None:
        return meta.fiscal_year == period.year and meta.form != "8-K"
    fiscal = (meta.fiscal_year, meta.fiscal_period) == (period.year, f"Q{period.quarter}")
    label = re.search(rf"{period.year}[-_ ]?Q{period.quarter}|Q{period.quarter}[-_ ]?{period.year}", meta.source, re.I)
    return fiscal or period == _calendar_quarter(meta.period_end) or bool(label)


def _calendar_quarter(period_end: str | None) -> Period | None:
    """The quarter in which most of the three months before the day lie; a period may end some days into the next."""
    if period_end is None:
        return None
    year, month, day = (int(part) for part in period_end.split("-"))
    months = year * 12 + month - 1 - (day <= 15)
    return Period(months // 12, months % 12 // 3 + 1)


def _comparatives(chosen: Sequence[Document], periods: Sequence[Period]) -> list[Document]:
    """Annual filings of the next two years, which restate the year asked for, where that year's own is missing."""
    years = {p.year for p in periods if p.quarter is None and p.day is None}
    return [
        d
        for d in chosen
        if d.meta.form in _ANNUAL and d.meta.fiscal_year and {d.meta.fiscal_year - 1, d.meta.fiscal_year - 2} & years
    ]


async def narrowed(question: Question, tools: Tools) -> Filter:
    """The question's filter with the filings that its text names; what was read goes into the trace."""
    reading = read(question.text, await tools.catalogue())
    tools.note(
        "read",
        companies=reading.companies,
        periods=reading.periods,
        forms=reading.forms,
        latest=reading.latest,
        relaxed=reading.relaxed,
        documents=reading.documents[:_SHOWN],
        documents_total=len(reading.documents),
    )
    if not reading.documents:
        return question.where
    named = Condition("document_id", "$in", reading.documents)
    return Filter((*question.where.conditions, named), question.where.access)
