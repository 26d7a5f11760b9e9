"""Reads a question for the filings it names: company, form, fiscal period, resolved against those that are indexed."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.question.companies import named_companies, strangers, without_names
from app.question.glossary import spelt_out
from app.question.periods import MONTHS, Period, calendar_quarter, named_periods
from app.tools import Tools
from app.types import Condition, Document, Filter, Question

_FORMS = (
    ("10-K", re.compile(r"\b10-?K\b|\bannual reports?\b", re.I)),
    ("10-Q", re.compile(r"\b10-?Qs?\b|\bquarterly reports?\b", re.I)),
    ("8-K", re.compile(r"\b8-?Ks?\b|\bcurrent reports?\b", re.I)),
    ("20-F", re.compile(r"\b20-?F\b", re.I)),
    ("ER", re.compile(r"\b(?:earnings|press) releases?\b", re.I)),
)
_OUTLOOK = re.compile(
    r"\b(?:expect|forecast|guidance|outlook|plans?\b|project|anticipat|estimat|matur|due\b|commit|future|schedul|will\b"
    r"|(?-i:targets?\b|goals?\b)|pledg|ambition|net[- ]zero|expir|owe[ds]?\b"
    r"|(?:lease|benefit|principal) payments?\b"
    r"|(?:by|until|beyond) (?:the end of |(?:fiscal )?(?:year )?|FY ?)(?:19|20)\d\d\b)",
    re.I,
)
_EVENT = re.compile(rf"\b(?:{'|'.join(MONTHS)})\s+(?:19|20)\d\d\b", re.I)
"""A month: filings tell of what happened between a period's end and their own date."""
_LATEST = re.compile(
    r"\b(?:most recent|latest|newest|last)\s+(?:(?:annual|quarterly)\s+)?(?:10-?[KQ]|report|filing|quarter)\b", re.I
)
COMPARED = re.compile(
    r"\b(?:prior|previous|preceding|earlier|trend|histor|over (?:time|the)|year[- ]over|quarter[- ](?:over|to|by)"
    r"|(?:compar\w*|versus|vs\.?|than)\s+(?:\S+\s+){0,4}(?:quarters?|years?|periods?|10-?[KQ]s?)\b)",
    re.I,
)
"""Newest against older ones; a comparison of two lines of one filing stays with the newest."""
_QUARTERS = re.compile(
    r"\b(?:these|those|reported|across|all|the|prior|previous|past|recent|consecutive|several|last)\s+(?:\w+\s+){0,2}quarters"
    r"|\bquarter[- ](?:to|by|over)[- ]quarter|\b(?:each|every|per|by) quarter\b",
    re.I,
)
"""Speaks of quarters one by one: quarterly filings are meant, where there are any."""
_SHOWN = 20
"""Most ids put into a trace."""
ANNUAL = frozenset({"10-K", "20-F", "AR"})
"""Forms that report a whole year."""


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
    strangers: tuple[str, ...] = ()
    """What it gives as a company's name, where none of the index is named."""
    beyond: tuple[str, ...] = ()
    """Periods asked for, of one after the last filing of every company named; empty where it asks for an outlook."""


def read(question: str, catalogue: Sequence[Document]) -> Reading:
    """Narrow to the companies named, then each company's filings by period, form and newness.

    What would leave a company nothing is left out for that company, and said if it was so for all.
    """
    companies = sorted(named_companies(question, catalogue))
    forms = tuple(form for form, pattern in _FORMS if pattern.search(question))
    periods = named_periods(question)
    latest = bool(_LATEST.search(question)) and not periods and not COMPARED.search(question)
    wanted = forms or (("10-Q",) if _QUARTERS.search(question) else ())
    chosen: list[Document] = []
    unmatched: list[set[str]] = []
    for company in companies:
        own = [d for d in catalogue if d.meta.company == company]
        by_period = _for_periods(own, periods, forms) or _comparatives(own, periods)
        own = by_period or own
        by_form = [d for d in own if d.meta.form in wanted or (d.meta.form == "AR" and "10-K" in wanted)]
        own = by_form or own
        chosen += _newest(own) if latest else own
        unmatched.append({*(() if by_period else map(str, periods)), *(() if by_form else forms)})
    relaxed = tuple(sorted(set.intersection(*unmatched))) if unmatched else ()
    ids = tuple(sorted(d.id for d in chosen))
    return Reading(
        ids,
        tuple(companies),
        tuple(map(str, periods)),
        forms,
        latest,
        relaxed,
        () if companies else strangers(question),
        () if looks_ahead(question) else _beyond(catalogue, companies, periods),
    )


def looks_ahead(question: str) -> bool:
    """Whether it asks for what a filing says of later times than its own period."""
    return bool(_OUTLOOK.search(question) or _EVENT.search(question))


def _for_periods(documents: Sequence[Document], periods: Sequence[Period], forms: Sequence[str]) -> list[Document]:
    """Filings that report one of the periods; for a whole year its annual filing alone, unless a form is named."""
    found: dict[str, Document] = {}
    for period in periods:
        reporting = [d for d in documents if reports(d, period)]
        annual = [d for d in reporting if d.meta.form in ANNUAL]
        whole = period.quarter is None and period.day is None and not forms
        found |= {d.id: d for d in (annual if whole and annual else reporting)}
    return list(found.values())


def _beyond(catalogue: Sequence[Document], companies: Collection[str], periods: Sequence[Period]) -> tuple[str, ...]:
    """Periods that had not ended when the last filing of these companies was made, if all are such."""
    own = [d.meta for d in catalogue if d.meta.company in companies and d.meta.period_end]
    if not own:
        return ()
    last_day = max(meta.period_end or "" for meta in own)
    last_year = max(int(last_day[:4]), max(meta.fiscal_year or 0 for meta in own))
    ends = [(calendar_quarter(meta.period_end), meta.fiscal_year, meta.fiscal_period) for meta in own]
    calendar = max((p.year, p.quarter or 0) for p, _, _ in ends if p)
    fiscal = max((year or 0, int(name[1:]) if name and name[1:].isdigit() else 4) for _, year, name in ends)
    after = [
        p.day > last_day if p.day else (p.year, p.quarter) > max(calendar, fiscal) if p.quarter else p.year > last_year
        for p in periods
    ]
    return tuple(map(str, periods)) if after and all(after) else ()


def _newest(documents: Sequence[Document]) -> list[Document]:
    last = max(d.meta.period_end or "" for d in documents)
    return [d for d in documents if (d.meta.period_end or "") == last]


def reports(document: Document, period: Period) -> bool:
    """Whether the filing is for the period by the company's fiscal calendar, by the calendar, or by its file's name."""
    meta = document.meta
    if period.day:
        return meta.period_end == period.day
    if period.quarter is None:
        return meta.fiscal_year == period.year and meta.form != "8-K"
    fiscal = (meta.fiscal_year, meta.fiscal_period) == (period.year, f"Q{period.quarter}")
    label = re.search(rf"{period.year}[-_ ]?Q{period.quarter}|Q{period.quarter}[-_ ]?{period.year}", meta.source, re.I)
    return fiscal or period == calendar_quarter(meta.period_end) or bool(label)


def reporting(documents: Sequence[Document], period: Period, *, whole: bool = False) -> list[Document]:
    """Filings for the period, a whole year's annual one alone; else annual ones of the next two years.

    With `whole` no quarterly filing stands for a whole year.
    """
    found = _for_periods(documents, [period], ())
    if whole and period.quarter is None and period.day is None:
        found = [document for document in found if document.meta.form != "10-Q"]
    return found or _comparatives(documents, [period])


def _comparatives(chosen: Sequence[Document], periods: Sequence[Period]) -> list[Document]:
    """Annual filings of the next two years, which restate the year asked for, where that year's own is missing."""
    years = {p.year for p in periods if p.quarter is None and p.day is None}
    return [
        d
        for d in chosen
        if d.meta.form in ANNUAL and d.meta.fiscal_year and {d.meta.fiscal_year - 1, d.meta.fiscal_year - 2} & years
    ]


async def narrowed(question: Question, tools: Tools) -> tuple[Filter, str]:
    """The question's filter with the filings that its text names, and the terms that are left to search them for.

    Within a company's filings its name tells nothing, but stands in every chunk's context. What was read goes into the
    trace.
    """
    return narrowing(question, await noted_reading(question, tools))


async def noted_reading(question: Question, tools: Tools) -> Reading:
    """What was read goes into the trace."""
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
    return reading


def narrowing(question: Question, reading: Reading) -> tuple[Filter, str]:
    """`narrowed`, of a reading at hand."""
    if not reading.documents:
        return question.where, question.text
    named = Condition("document_id", "$in", reading.documents)
    terms = without_names(question.text, reading.companies)
    spelt = spelt_out(terms)
    return question.where.narrowed(named), terms if spelt == terms else f"{terms} {spelt}"
