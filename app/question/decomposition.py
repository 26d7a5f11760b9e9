"""Splits a comparison by rule into one sub-question for each company, or each filing of a company, that it is about."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from app.question.companies import asked_of_one, named_companies, without_names
from app.question.periods import Period, named_periods, without_periods
from app.question.reading import Reading, read, reporting
from app.types import Document

OVER_TIME = re.compile(
    r"\b(?:over (?:time|the (?:years|quarters|periods))|trends?|histor(?:y|ical(?:ly)?)|fluctuat\w+|evol(?:ved?|ution)"
    r"|(?:these|those|reported|prior|previous|each|across|several|all|the|past)\s+(?:\w+\s+){0,2}(?:quarters|periods|years)"
    r"|(?:each|every|per) (?:\w+ )?(?:quarter|period|year)|quarter[- ](?:to|by|over)[- ]quarter"
    r"|quarterly reports|10-Qs|10-Ks|annual reports)\b",
    re.IGNORECASE,
)
"""Asks for several periods of one company."""
_TOGETHER = re.compile(
    r"\b(?:and|or|vs|versus|than|both|each|between|among|compar\w+|differ\w*|respectively|against)\b", re.IGNORECASE
)
"""Without one of these, several companies stand in a relation to each other, which no part would find."""
_QUARTERS = re.compile(r"\bquarter|\b10-?Q", re.IGNORECASE)
_YEARS = re.compile(r"\byears?\b|\bannual|\b10-?K", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A question that one company's filings, or one filing, should answer."""

    text: str
    documents: tuple[str, ...]
    """Ids of the filings to search; empty is all."""
    about: str
    """What sets it apart from its siblings: a company, a period or a filing's title."""
    over_time: bool = False
    """Whether its siblings are filings of the same company, asked one by one."""
    companies: tuple[str, ...] = ()
    """Whose filings they are; their names tell nothing there."""

    @property
    def terms(self) -> str:
        """What is left to search these filings for."""
        return without_names(self.text, self.companies)


def decompose(question: str, catalogue: Sequence[Document], *, most: int) -> list[SubQuestion]:
    """Two to `most` sub-questions, in the order of the companies' names or of time; empty where one search does.

    Several companies give one each; several periods of a company one for each that different filings report; words
    such as "over time" one for each filing of the form the question means, the newest `most`.
    """
    reading = read(question, catalogue)
    filings = [document for document in catalogue if document.id in set(reading.documents)]
    if len(reading.companies) > 1 and not _TOGETHER.search(question):
        return []
    if len(reading.companies) > 1:
        found = _by_company(question, reading, filings)
    elif len(reading.periods) > 1:
        found = _by_period(question, filings, reading.companies) or _by_filing(question, filings, reading, most)
    else:
        found = _by_filing(question, filings, reading, most)
    return found[:most] if len(found) > 1 else []


def _by_company(question: str, reading: Reading, filings: Sequence[Document]) -> list[SubQuestion]:
    found = []
    for company in reading.companies:
        others = [other for other in reading.companies if other != company]
        ids = tuple(document.id for document in filings if document.meta.company == company)
        if ids:
            found.append(SubQuestion(asked_of_one(question, others), ids, company, companies=(company,)))
    return found


def _by_period(question: str, filings: Sequence[Document], companies: tuple[str, ...]) -> list[SubQuestion]:
    """In the order of time, one per set of filings of filings; a filing that reports several periods is asked once."""
    periods = sorted(named_periods(question), key=lambda period: (period.year, period.quarter or 0, period.day or ""))
    by_filings: dict[tuple[str, ...], list[Period]] = {}
    for period in periods:
        ids = tuple(document.id for document in reporting(filings, period))
        if ids:
            by_filings.setdefault(ids, []).append(period)
    return [
        SubQuestion(
            without_periods(question, [p for p in periods if p not in own]),
            ids,
            ", ".join(map(str, own)),
            companies=companies,
        )
        for ids, own in by_filings.items()
    ]


def _by_filing(question: str, filings: Sequence[Document], reading: Reading, most: int) -> list[SubQuestion]:
    if reading.latest or not OVER_TIME.search(question):
        return []
    chosen = _of_one_form(question, filings)
    chosen.sort(key=lambda document: (document.meta.period_end or "", document.id))
    return [
        SubQuestion(question, (document.id,), document.meta.title, True, reading.companies)
        for document in chosen[-most:]
    ]


def _of_one_form(question: str, filings: Sequence[Document]) -> list[Document]:
    """Quarterly or annual filings where the question speaks of them, else those of the most frequent form."""
    forms = Counter(document.meta.form for document in filings if document.meta.form)
    if not forms:
        return []
    wanted = {"10-Q"} if _QUARTERS.search(question) else {"10-K", "20-F", "AR"} if _YEARS.search(question) else set()
    wanted &= forms.keys()
    wanted = wanted or {forms.most_common(1)[0][0]}
    return [document for document in filings if document.meta.form in wanted]


def companies_in(text: str, catalogue: Sequence[Document]) -> frozenset[str]:
    """Companies of the catalogue that a passage names; unlike a question's, its names are capitalised."""
    capitalised = (word if word[:1].isupper() or word == "&" else "x" for word in text.split())
    return named_companies(" ".join(capitalised), catalogue)
