"""Statements: the sentences and table rows of passages that may answer a question, and what speaks for each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise

from nupunkt import sent_spans

from app.adapters.bm25 import query_tokens, tokens
from app.evidence.groups import Group
from app.evidence.quantities import quantities
from app.evidence.quotes import Unit, units
from app.evidence.rows import Row, read_row
from app.question.companies import named_companies, without_names
from app.question.glossary import expanded, spelt_out
from app.question.lines import LINES, TITLES, label_rank, named_lines
from app.question.periods import Period, named_periods
from app.question.reading import reports
from app.types import Chunk, Document, Hit

_SHORTEST = 20
"""Characters below which a unit without figures is a heading, not a statement."""
_SENTENCE = re.compile(r"[•●▪–—*\-]?\s*[(\[\"“‘'$€£]*[A-Z\d].*[.!;][)\]\"”’']*(?:\s*\(\d+\))?", re.DOTALL)
_FEWEST = 5
"""Words of a line beside a table that can be a sentence."""
_SIGNED = re.compile(r"/s/ .*\b(?:LLP|L\.L\.P|PLLC|P\.?C|PLC)\b", re.IGNORECASE)
"""A firm's signature: in a filing, its auditor's."""
_BRACKETED = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)*)\]")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_SPAN = re.compile(r"\b(three|six|nine|twelve|thirteen|twenty-six|thirty-nine)[ -](?:months?|weeks?)\b", re.IGNORECASE)
_ON_DAY = re.compile(r"\b[A-Z][a-z]{2,8}\.? \d{1,2}\b")
_QUARTERLY = re.compile(r"\b(?:Q[1-4]|quarter|10-?Q)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![.?!:]\s)(?<!^)(?<![A-Za-z])[A-Z][a-z]{2,}(?:[A-Z][a-z]+)*\b")
"""A capitalised word that does not begin a sentence."""
_CALENDAR = frozenset(
    "ended ending three six nine twelve months january february march april may june july august september october "
    "november december fiscal quarter year form item note company inc corp corporation".split()
)


_MEASURE = re.compile(r"%|\b(?:change|percent|increase|decrease|effect|rates?|ratio)\b", re.IGNORECASE)
_ASIDE = frozenset(
    tokens(
        " ".join(_CALENDAR) + " q1 q2 q3 q4 10-K 10-Q 8-K annual quarterly report reports reported reporting filing "
        "filings disclose disclosed mention mentioned latest recent first second third fourth end usd company many"
    )
)
"""Terms that say when and in which filing, not what."""
_INSTRUCTION = re.compile(
    r"(?:please|give|answer|provide|assume|respond|calculate|compute|round|base|use|using|write|return|express|state|if"
    r"|by relying|note that|explain|show your)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"^(?:by|based (?:up)?on|using|according to|in agreement with|relying on|drawing on)\b[^?]*?"
    r"\b(?:statements?|sheets?|P&L|shown|given|provided)(?: of [\w ]+)?,\s+(?=\w+ )",
    re.IGNORECASE,
)
_PROSE = re.compile(r"\b(?:why|who|whom|what (?:drove|drives|caused|led)|reasons?|explains?|describes?|risks?)\b", re.I)
_CHANGE = re.compile(r"\b(?:chang|increas|decreas|gr[eo]w|declin|f[ae]ll|r[io]se|compar|differ|improv|worsen)", re.I)
HOW_MANY = re.compile(r"^(?!.*\band (?:how|what|which|when|who)\b).*\bhow many\b(?! times\b)", re.I | re.S)
"""A question for a count and nothing else."""
AMOUNT = re.compile(
    r"\b(?:how (?:much|many|large|big|high)|amounts?|extent|magnitude|what (?:percent\w*|share)"
    r"|what (?:was|were|is|are) (?:the )?(?:\w+ ){0,3}?(?:rate|percentage|price|value|number|total|size|scale|cost))\b",
    re.IGNORECASE,
)
"""A question for an amount, perhaps among other things."""
_AND_ASKED = re.compile(
    r"(?:,|\?)? and (?=(?:how|what|which|who|when|where|why|in which|by how)\b)|\?\s+", re.IGNORECASE
)
_SIZES = frozenset(
    tokens("amount amounts number numbers total much many large larger high size two three period differ")
)
"""Terms of a further question that do not say what it is about."""
_NO_COUNT = re.compile(
    r"[$€£¥]\s?\(?\d[\d,.]*|\d[\d,.]*\)?\s?(?:%|percent)"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\s+\d{1,2}\b"
    r"|\b(?:19|20)\d\d\b",
    re.I,
)
_NUMBER_WORD = re.compile(
    r"\d|\b(?:no|none|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundreds?|thousands?|several)\b",
    re.I,
)
_HEADING = re.compile(r".*:|(?:[A-Z][A-Za-z&,-]*|and|of|the)(?: (?:[A-Z][A-Za-z&,-]*|and|of|the)){0,4}", re.DOTALL)
"""A line of a table above rows of their own: "Earnings per share:", "North America"."""
_NOTE = re.compile(r"\(\d\d?\)")
SYNONYM = 0.5
"""Weight of what filings print instead of a question's own term."""
_QUARTER = {"three", "thirteen"}


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

    weights: Mapping[str, float]
    """Term -> weight: 1 for the question's own, less for what filings print instead."""
    periods: tuple[Period, ...]
    companies: frozenset[str]
    """Of the passages, those that the question names."""
    unknown: tuple[str, ...]
    """Names in the question that no passage mentions."""
    prose: bool
    """Whether it asks for a reason, a person or a description, which no row of figures gives."""
    lines: tuple[str, ...] = ()
    """Lines of the statements that it names, keys of LINES."""


def statements(passages: Sequence[Hit]) -> list[Statement]:
    """In the passages' order; headings, questions and rows without a figure are none."""
    found = []
    for marker, hit in enumerate(passages, start=1):
        table, group = hit.chunk.kind == "table", Group()
        for unit in units(hit.chunk):
            row = _row(unit.text, hit.chunk)
            signed = bool(_SIGNED.match(unit.text))
            told = not table or signed or _is_sentence(unit.text)
            if row is None and (not told or len(unit.text) < _SHORTEST or unit.text.endswith((":", "?"))):
                group.begin(unit.text if table and _HEADING.fullmatch(unit.text) else "")
                continue
            heading = group.of(row) if row else ""
            terms = frozenset(
                tokens(f"{heading} {row.label}" if row else f"{unit.text} auditor" if signed else unit.text)
            )
            found.append(Statement(marker, hit.chunk, unit, row, heading, terms))
    return found


def is_whole(statement: Statement) -> bool:
    """A row, or a sentence from its capital letter to its full stop: no heading, no end of a line cut off."""
    text = statement.unit.text
    return statement.row is not None or bool(_SENTENCE.fullmatch(text) or _SIGNED.match(text))


def _is_sentence(line: str) -> bool:
    """Prose that stands beside a table, on a line of its own."""
    return len(line.split()) >= _FEWEST and line.endswith(".") and bool(_SENTENCE.fullmatch(line))


def _row(text: str, chunk: Chunk) -> Row | None:
    """Outside a table, a line that ends in one plain number may as well be an entry of a list of contents.

    In one, a bracketed number more than there are columns is a footnote's: `Online (1) 51,129 51,096`.
    """
    table = chunk.kind == "table"
    if not table and len(text) > 200:
        return None
    row = read_row(text)
    if row is None or _are_years(row.values):
        return None
    if not table:
        return None if len(row.values) == 1 and row.values[0].isdigit() else row
    noted = len(row.values) == len(chunk.columns) + 1 and _NOTE.fullmatch(row.values[0])
    return Row(row.label, row.values[1:]) if noted and len(row.values) > 1 else row


def _are_years(values: Sequence[str]) -> bool:
    """Whether they are a heading's, `Net sales (millions) 2022 2021`."""
    years = [int(value) for value in values if _YEAR.fullmatch(value)]
    return len(years) == len(values) > 1 and all(abs(a - b) == 1 for a, b in pairwise(years))


def core_question(text: str) -> str:
    """The question without what instructs the answerer: "Round to one place.", "Based on the balance sheet,"."""
    parts = [_CLAUSE.sub("", part) for a, b in sent_spans(text) for part in text[a:b].strip().split(": ") if part]
    asked = [part for part in parts if not _INSTRUCTION.match(part)]
    return " ".join(asked) or text


def subject_of(question: str, passages: Sequence[Hit]) -> Subject:
    """The question's terms without its companies, periods and forms, which say where to look rather than for what."""
    core = spelt_out(core_question(question))
    records = [Document(hit.chunk.document_id, "", hit.chunk.meta, 0, 0) for hit in passages]
    companies = named_companies(question, records)
    periods = named_periods(question)
    aside = {term for period in periods for term in tokens(str(period))} | _ASIDE
    aside |= {term for company in companies for term in tokens(company)}
    terms = tuple(t for t in query_tokens(core) if t not in aside) or tuple(query_tokens(core))
    weights = dict.fromkeys(expanded(terms), SYNONYM) | dict.fromkeys(terms, 1.0)
    said = set(tokens(" ".join(f"{hit.chunk.searchable} {hit.chunk.meta.company or ''}" for hit in passages)))
    names = dict.fromkeys(name for name in _NAME.findall(core) if name.lower() not in _CALENDAR)
    unknown = tuple(name for name in names if not set(tokens(name)) <= said)
    lines = tuple(key for key, _, _ in named_lines(without_names(core, sorted(companies))))
    return Subject(weights, periods, companies, unknown, bool(_PROSE.search(core)), lines)


def tells_of(chunk: Chunk, period: Period) -> bool:
    """Whether a passage can speak of the period: its filing reports it, or its text or table heading names it."""
    if reports(Document(chunk.document_id, "", chunk.meta, 0, 0), period):
        return True
    said = f"{chunk.context.partition(chr(10))[2]} {chunk.text} {' '.join(chunk.columns)}"
    if period.quarter is None and period.day is None:
        return str(period.year) in _YEAR.findall(said)
    return period in named_periods(said)


def match(subject: Subject, statement: Statement) -> tuple[float, float]:
    """Coverage and focus, 0 to 1: how much of the subject the statement holds, and how much of it is the subject.

    Coverage counts the terms of the statement's section and table heading as well. A synonym stands for the term it
    replaces, so the subject's full weight is that of its own terms. Focus is 0 for a sentence: only a row's label says
    one thing.
    """
    own = sum(weight for weight in subject.weights.values() if weight == 1.0) or 1.0  # a question without a term
    heading = heading_terms(statement.chunk)
    covered = sum(w for t, w in subject.weights.items() if t in statement.terms or t in heading) / own
    if statement.row is None or not statement.terms:
        return min(covered, 1.0), 0.0
    shared = sum(w for t, w in subject.weights.items() if t in statement.terms)
    return min(covered, 1.0), 2 * shared / (len(statement.terms) + own)


def line_of(subject: Subject, statement: Statement) -> str:
    """The line asked for that a row is, by its label and its table's title; "" for all else."""
    if not (own := labelled(subject, statement)):
        return ""
    head = f"{statement.chunk.section or ''} {statement.chunk.context}"
    return next((key for key in own if TITLES[LINES[key].statement].search(head)), "")


def labelled(subject: Subject, statement: Statement) -> list[str]:
    """The lines asked for that a row is by its label, whatever its table is titled."""
    row = statement.row
    return [key for key in subject.lines if row and label_rank(LINES[key], row.label) is not None]


@lru_cache(maxsize=4096)
def heading_terms(chunk: Chunk) -> frozenset[str]:
    return frozenset(tokens(f"{chunk.section or ''} {chunk.context.partition(chr(10))[2]} {chunk.unit or ''}"))


def counts(statement: Statement) -> bool:
    """Whether it can answer "how many": a number in it is neither money, nor a share, nor a date."""
    text = statement.unit.text if statement.row is None else " ".join(statement.row.values)
    return bool(_NUMBER_WORD.search(_NO_COUNT.sub(" ", text)))


def further(question: str, subject: Subject) -> list[tuple[frozenset[str], bool]]:
    """Of each further question in it, ", and how large was the reserve?", its terms and whether it is for an amount."""
    found = []
    for clause in _AND_ASKED.split(core_question(question))[1:]:
        own = {term for term, weight in subject.weights.items() if weight == 1.0} - _SIZES
        if terms := own & set(query_tokens(clause)):
            found.append((frozenset(terms), bool(AMOUNT.search(clause))))
    return found


def tells_amount(statement: Statement) -> bool:
    """Whether it has a number that is no date."""
    return statement.row is not None or bool(quantities(statement.unit.text))


def columns_of(statement: Statement, question: str, periods: Sequence[Period]) -> list[int]:
    """Positions of the row's values whose column is headed by the period asked for; empty where that cannot be told.

    Without a period it is the filing's own; a change over one period needs the whole row. Of columns for three and for
    nine months, those that the question means.
    """
    return [] if len(periods) < 2 and _CHANGE.search(question) else _headed(statement, question, periods)


def shown_columns(statement: Statement, question: str, periods: Sequence[Period]) -> list[int]:
    """The same to be quoted: of a change over one period, its column and the like ones beside."""
    headed = _headed(statement, question, periods)
    return like_columns(statement, headed) if headed and not columns_of(statement, question, periods) else headed


def _headed(statement: Statement, question: str, periods: Sequence[Period]) -> list[int]:
    columns, row = statement.chunk.columns, statement.row
    if row is None or len(columns) != len(row.values):
        return []
    headings = _headings(statement.chunk, periods)
    of_days = [period.day is not None for period in periods] or [False]
    chosen = {i for each, day in zip(headings, of_days, strict=True) for i in _first_headed(columns, each, day)}
    asked = {span.lower() for span in _SPAN.findall(question)} or (_QUARTER if _QUARTERLY.search(question) else set())
    spans = {i for i in chosen if asked & {span.lower() for span in _SPAN.findall(columns[i])}}
    return sorted(spans or chosen)


def like_columns(statement: Statement, columns: Sequence[int]) -> list[int]:
    """These and those beside that differ in their dates alone: of a quarter's column, the same quarter's a year before.

    Columns for other spans of time are left out, as are those headed by no year, such as a change in percent.
    """
    headers = statement.chunk.columns
    kinds = {_kind(headers[i]) for i in columns}
    return [i for i, header in enumerate(headers) if i in columns or (_kind(header) in kinds and _YEAR.search(header))]


def _kind(header: str) -> tuple[tuple[str, ...], bool]:
    """The spans of time that a column's heading names, and whether it is another measure's than the amount's."""
    return tuple(span.lower() for span in _SPAN.findall(header)), bool(_MEASURE.search(header))


def _headings(chunk: Chunk, periods: Sequence[Period]) -> list[tuple[str, ...]]:
    """Per period, what may head its column, the most exact first."""
    end = chunk.meta.period_end
    own = (_printed(end), end[:4]) if end else ()
    if not periods:
        return [own]
    record = Document(chunk.document_id, "", chunk.meta, 0, 0)
    found = []
    for period in periods:
        exact = (_printed(period.day),) if period.day else ()
        at_end = own[:1] if reports(record, period) else ()
        found.append((*exact, *at_end, str(period.year), *(own[1:] if at_end else ())))
    return found


def _first_headed(columns: Sequence[str], headings: Sequence[str], of_day: bool) -> list[int]:
    """Where a day is meant, a bare year heads no column of another day of that year."""
    for heading in headings:
        fits = [i for i, column in enumerate(columns) if heading in column]
        if headed := [i for i in fits if not (of_day and heading.isdigit() and _ON_DAY.search(columns[i]))]:
            return headed
    return []


def _printed(iso: str) -> str:
    day = date.fromisoformat(iso)
    return f"{day:%B} {day.day}, {day.year}"


def plain(text: str) -> str:
    return _BRACKETED.sub(r"(\1)", " ".join(text.split()))


def overlap(a: Statement, b: Statement) -> float:
    """Shared terms, as a share of the smaller of the two."""
    return len(a.terms & b.terms) / (min(len(a.terms), len(b.terms)) or 1)
