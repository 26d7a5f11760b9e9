"""Statements: the sentences and table rows of passages that may answer a question, and what speaks for each."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.adapters.bm25 import query_tokens, tokens
from app.periods import Period, named_periods
from app.quotes import Unit, units
from app.reading import named_companies, reports
from app.rows import Row, read_row
from app.types import Chunk, Document, Hit

_SHORTEST = 20
"""Characters below which a unit without figures is a heading, not a statement."""
_BRACKETED = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)*)\]")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_SPAN = re.compile(r"\b(three|six|nine|twelve|thirteen|twenty-six|thirty-nine)[ -](?:months?|weeks?)\b", re.IGNORECASE)
_QUARTERLY = re.compile(r"\b(?:Q[1-4]|quarter)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![.?!:]\s)(?<!^)(?<![A-Za-z])[A-Z][a-z]{2,}(?:[A-Z][a-z]+)*\b")
"""A capitalised word that does not begin a sentence."""
_CALENDAR = frozenset(
    "ended ending three six nine twelve months january february march april may june july august september october "
    "november december fiscal quarter year form item note company inc corp corporation".split()
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A unit of a passage."""

    marker: int
    """Rank of its passage, first is 1: what `[n]` refers to."""
    chunk: Chunk
    unit: Unit
    row: Row | None
    group: str
    """Of a row, the heading above it in its table, such as "Earnings per share:"; else ""."""
    terms: frozenset[str]
    """Of a row, those of its label and group."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question asks about, apart from who and when."""

    terms: tuple[str, ...]
    periods: tuple[Period, ...]
    companies: frozenset[str]
    """Of the passages, those that the question names."""
    unknown: tuple[str, ...]
    """Names in the question that no passage mentions."""


def statements(passages: Sequence[Hit]) -> list[Statement]:
    """In the passages' order; headings and rows without a figure are none."""
    found = []
    for marker, hit in enumerate(passages, start=1):
        table, group = hit.chunk.kind == "table", ""
        for unit in units(hit.chunk):
            row = read_row(unit.text) if table or len(unit.text) < 200 else None
            if row is None and (table or len(unit.text) < _SHORTEST):
                group = unit.text if table and unit.text.endswith(":") else ""
                continue
            terms = frozenset(tokens(f"{group} {row.label}" if row else unit.text))
            found.append(Statement(marker, hit.chunk, unit, row, group if row else "", terms))
            group = "" if row and row.label.lower().startswith("total") else group
    return found


def subject_of(question: str, passages: Sequence[Hit]) -> Subject:
    """The question's terms without its companies and periods, which say where to look rather than for what."""
    records = [Document(hit.chunk.document_id, "", hit.chunk.meta, 0, 0) for hit in passages]
    companies = named_companies(question, records)
    periods = named_periods(question)
    when = {term for period in periods for term in (*tokens(str(period)), "fiscal", "q1", "q2", "q3", "q4")}
    who = {term for company in companies for term in tokens(company)}
    terms = tuple(t for t in query_tokens(question) if t not in when | who and t not in _MONTH_TERMS)
    said = set(tokens(" ".join(f"{hit.chunk.searchable} {hit.chunk.meta.company or ''}" for hit in passages)))
    names = dict.fromkeys(name for name in _NAME.findall(question) if name.lower() not in _CALENDAR)
    unknown = tuple(name for name in names if not set(tokens(name)) <= said)
    return Subject(terms or tuple(query_tokens(question)), periods, companies, unknown)


_MONTH_TERMS = frozenset(tokens(" ".join(sorted(_CALENDAR))))


def tells_of(chunk: Chunk, period: Period) -> bool:
    """Whether a passage can speak of the period: its filing reports it, or its text or table heading names it."""
    if reports(Document(chunk.document_id, "", chunk.meta, 0, 0), period):
        return True
    said = f"{chunk.context.partition(chr(10))[2]} {chunk.text} {' '.join(chunk.columns)}"
    if period.quarter is None and period.day is None:
        return str(period.year) in _YEAR.findall(said)
    return period in named_periods(said)


def coverage(subject: Subject, pool: Sequence[Statement]) -> list[float]:
    """0 to 1 per statement: the share of the subject's terms, weighted by their rarity in the pool, that it holds.

    Terms of its section and of its table's heading count too; a term that no statement holds counts against all.
    """
    frequency = Counter(term for statement in pool for term in statement.terms)
    weight = {t: math.log(1 + (len(pool) - frequency[t] + 0.5) / (frequency[t] + 0.5)) for t in set(subject.terms)}
    total = sum(weight.values()) or 1.0
    return [sum(weight[t] for t in weight if t in s.terms | heading_terms(s.chunk)) / total for s in pool]


def heading_terms(chunk: Chunk) -> frozenset[str]:
    return frozenset(tokens(f"{chunk.section or ''} {chunk.context.partition(chr(10))[2]} {chunk.unit or ''}"))


def conciseness(subject: Subject, statement: Statement) -> float:
    """Of a row: the share of its label's terms that the question asks for; 0 for a sentence."""
    if statement.row is None or not statement.terms:
        return 0.0
    return len(statement.terms & set(subject.terms)) / len(statement.terms)


def columns_of(statement: Statement, question: str, periods: Iterable[Period]) -> list[int]:
    """Positions of the row's values whose column is headed by a year asked for; empty where that cannot be told.

    Of columns for three and for nine months, those that the question means.
    """
    columns, row = statement.chunk.columns, statement.row
    if row is None or len(columns) != len(row.values):
        return []
    years = {str(period.year) for period in periods}
    chosen = [i for i, header in enumerate(columns) if years & set(_YEAR.findall(header))]
    asked = {span.lower() for span in _SPAN.findall(question)} or (
        {"three", "thirteen"} if _QUARTERLY.search(question) else set()
    )
    spans = [i for i in chosen if asked & {span.lower() for span in _SPAN.findall(columns[i])}]
    return spans or chosen


def worded(statement: Statement, columns: Sequence[int]) -> str:
    """The statement with its marker; of a row, the values of the columns, then their headings as a sentence.

    A bracketed number in the source would read as a marker, so it is put in parentheses.
    """
    marker = f"[{statement.marker}]"
    if statement.row is None or not columns:
        return f"{_plain(statement.unit.text)} {marker}"
    values = ", ".join(statement.row.values[i] for i in columns)
    headers = "; ".join(statement.chunk.columns[i] for i in columns)
    unit = f", {statement.chunk.unit}" if statement.chunk.unit else ""
    group = statement.group if not any(ch.isdigit() for ch in statement.group) else ""
    label = _plain(f"{group} {statement.row.label}").rstrip(":")
    return f"{label}: {_plain(values)} {marker}. For {_plain(headers)}{unit} {marker}."


def _plain(text: str) -> str:
    return _BRACKETED.sub(r"(\1)", " ".join(text.split()))


def overlap(a: Statement, b: Statement) -> float:
    """Shared terms, as a share of the smaller of the two."""
    return len(a.terms & b.terms) / (min(len(a.terms), len(b.terms)) or 1)
