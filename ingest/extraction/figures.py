"""The numbers of a filing's tables, each with its label, period, unit and place; inline XBRL facts join their cells."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from app.raised import RAISED
from app.types import Chunk, DocumentMeta, Figure, Page
from ingest.extraction.column_periods import DAY, FiscalYears, fiscal_years, period_of, row_period
from ingest.formats.filing_text import Fact
from ingest.formats.tables import Row, Table

_DIGITS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")
_AFTER = re.compile(r"\s*[)\]]*\s*(%|pts|pp|bps|million|billion|years?|months|days|x\b)?", re.I)
_MOST_DIGITS = 15
"""Of a number that a double holds exactly; more are no amount."""
_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_FOREIGN = re.compile(r"(?<![A-Za-z])(?:C|A|CA|AU|HK|NZ|S|NT|R)\$")
_POWERS = {"thousand": 3, "million": 6, "billion": 9}
_POWER = re.compile(r"\b(thousand|million|billion)s?\b|(?<!\d)\(?000['’]?s(?: omitted)?\b", re.I)
_PER_SHARE = re.compile(
    r"(?<!\d)(?<!\d\s)\bper(?:\s+(?:common|ordinary|diluted|basic|average))*\s+(?:share|unit|ads)\b", re.I
)
"""But not "$.01 per share", which says something of the row's amount."""
_PER = re.compile(r"(?<!\d)(?<!\d\s)\bper\s+(?!cent)[a-z]+", re.I)
_SHARES = re.compile(
    r"\b(?:shares|units)\s+(?:outstanding|issued|authorized|repurchased|granted|vested)"
    r"|\b(?:weighted|average)\b.{0,40}\bshares\b|\b(?:number\s+of|common|treasury|diluted|outstanding)\s+shares\b"
    r"|^shares\b",
    re.I,
)
_PERCENT = re.compile(r"%|\bper\s?cent(?:age)?\b(?!\s+points)", re.I)
_OF_ALL = re.compile(r"\(?(?:as\s+a\s+)?(?:per\s?cent(?:age)?|%)\s+of\b|\bper\s+(?:\w+\s+)?share\b", re.I)
_COUNT = re.compile(r"^(?:total\s+)?(?:number|count)\s+of\b|\b(?:headcount|employees|store\s+count)$", re.I)
_STATED = re.compile(r"\bin\s+(?:thousand|million|billion)s\b|\((?:thousand|million|billion)s\b", re.I)
"""A power of ten that a row or column states for itself, not that of an amount it names."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_OF_YEARS = re.compile(r"\b(?:matur|expir|years?\b|dates?\b|due\b)", re.I)
_EXCEPT = re.compile(r"\b(?:except|other\s+than|unless)\b(.*)", re.I)
_PER_SHARE_DATA = re.compile(r"\bper[\s-]+share\b", re.I)
_LAST_LETTER = re.compile(r"(?<=[a-z]) (?=[a-z]$)")
"""Before the last letter of a title, which some files set apart."""
_STATEMENT = re.compile(
    r"(?:(?:un-?audited|interim|condensed|consolidated|combined|supplemental)\s+)*"
    r"(?:statements?\s+of\s+(?:\w+[\s,()&-]*){1,8}|balance\s+sheets?|income\s+statements?|cash\s+flows?\s+statements?)"
    r"(?:\s*\([^)]*\))?",
    re.I,
)
_TOTAL = re.compile(r"total\b|net\s+(?:cash|income|earnings|loss|sales|revenue)|balance\b", re.I)
_LONGEST_HEADING = 120
_EARLIER = 700
"""Characters above a table among which a statement's title may stand."""


class Number(NamedTuple):
    """A number as printed."""

    value: Decimal
    """Negative where it stands in parentheses or behind a minus."""
    unit: str | None
    """That its own marks name: percent, a currency, ..."""
    scale: int


def read_number(printed: str) -> Number | None:
    """`"$ (1,577)"` is -1577 USD, `"12.5 %"` is 12.5 percent; None where the text holds no one number."""
    printed = RAISED.sub("", printed)
    found = _DIGITS.search(printed)
    if found is None or sum(ch.isdigit() for ch in found[0]) > _MOST_DIGITS:
        return None
    before, after = printed[: found.start()], printed[found.end() :]
    if before[-1:].isalnum() or re.match(r"[,\w]", after):
        return None
    value = Decimal(found[0].replace(",", ""))
    negative = any(mark in before for mark in "(-−–")
    suffix = (m[1] or "").lower() if (m := _AFTER.match(after)) else ""
    currency = None if _FOREIGN.search(before) else next((_CURRENCIES[ch] for ch in before if ch in _CURRENCIES), None)
    unit = {"%": "percent", "pts": "points", "pp": "points", "bps": "basis points", "x": "times"}.get(suffix)
    if suffix in ("year", "years", "months", "days"):
        unit = suffix if suffix.endswith("s") else f"{suffix}s"
    return Number(-value if negative else value, unit or currency, _POWERS.get(suffix, 0))


def figures(
    document_id: str,
    meta: DocumentMeta,
    pages: Sequence[Page],
    tables: Sequence[Sequence[Table]],
    chunks: Sequence[Chunk],
    facts: Sequence[Fact] = (),
) -> list[Figure]:
    """In reading order. `tables` are those of each page; the chunks give the section and the id to find a figure by."""
    heads = [_head(page, table) for page, on_page in zip(pages, tables, strict=True) for table in on_page]
    years = fiscal_years(meta, heads)
    currency = _currency(pages)
    places = _Places(chunks)
    found: list[Figure] = []
    for page, on_page in zip(pages, tables, strict=True):
        for table in on_page:
            found += _TableReader(document_id, page, table, places, years, currency).figures()
    return _with_facts(document_id, found, facts, pages, places)


class _Places:
    """Which chunk holds a place."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = sorted(chunks, key=lambda chunk: (chunk.page, chunk.start))
        self._keys = [(chunk.page, chunk.start) for chunk in self._chunks]

    def at(self, page: int, start: int, end: int) -> Chunk | None:
        for index in range(bisect_right(self._keys, (page, start)) - 1, -1, -1):
            chunk = self._chunks[index]
            if chunk.page != page:
                break
            if end <= chunk.end:
                return chunk
        return None


class _TableReader:
    """One table's rows to figures."""

    def __init__(
        self,
        document_id: str,
        page: Page,
        table: Table,
        places: _Places,
        years: FiscalYears,
        currency: str | None,
    ) -> None:
        self._document_id = document_id
        self._page, self._table, self._places, self._years = page, table, places, years
        self._head = _head(page, table)
        first = next((span for row in table.rows for span in row.spans if span), (table.start, table.start))
        self.statement = _title(page, table) or _section(places.at(page.number, *first))
        self._periods = [period_of(header, self._head, self.statement, years) for header in table.columns]
        self._unmarked = self._head if not table.unit and _OF_ALL.search(self._head) else ""
        """What the head says of amounts without a mark of their own, in a table that states no power of ten."""
        self._dates = [(row.start, row.label) for row in table.rows if not row.values and DAY.search(row.label)]
        self._currency = _table_currency(page.text[table.start : table.end], currency)
        self._percents = [self._of_percent(column) for column in range(len(table.columns))]

    def _of_percent(self, column: int) -> bool:
        """Whether a column marks its first and its last number as percent and leaves the mark out between them.

        So it is set where every number has as many decimal places; whole numbers between may be counts.
        """
        spans = [row.spans[column] for row in self._table.rows if row.values]
        read = [read_number(self._page.text[span[0] : span[1]]) for span in spans if span]
        numbers = [number for number in read if number]
        if self._table.unit or len(numbers) < 3 or not numbers[0].unit == numbers[-1].unit == "percent":
            return False
        places = {number.value.as_tuple().exponent for number in numbers}
        return {number.unit for number in numbers} == {"percent", None} and len(places) == 1 and places <= {-1, -2}

    def figures(self) -> Iterator[Figure]:
        for index, row in enumerate(self._table.rows):
            label = self._label(index)
            for column, span in enumerate(row.spans):
                number = read_number(self._page.text[span[0] : span[1]]) if span else None
                if number is None or span is None or not label:
                    continue
                yield self._figure(row, label, column, span, number)

    def _figure(self, row: Row, label: str, column: int, span: tuple[int, int], number: Number) -> Figure:
        header = self._table.columns[column]
        if number.unit is None and self._percents[column]:
            number = number._replace(unit="percent")
        unit, scale = self._unit(label, header, number)
        chunk = self._places.at(self._page.number, *span)
        period_end, months = row_period(self._dated(row), row.label, self._periods[column], self._years)
        return Figure(
            document_id=self._document_id,
            page=self._page.number,
            chunk_id=chunk.id if chunk else None,
            start=span[0],
            end=span[1],
            label=label,
            statement=self.statement,
            value=number.value,
            scale=scale,
            unit=unit,
            column=header or None,
            period_end=period_end,
            period_months=months,
        )

    def _dated(self, row: Row) -> str:
        """The nearest heading above a row that has a date in it, however many others stand between."""
        index = bisect_right(self._dates, (row.start, "")) - 1
        return self._dates[index][1] if index >= 0 else ""

    def _label(self, index: int) -> str:
        """The row's label behind its heading; where it has none of its own (a total), the heading alone."""
        rows = self._table.rows
        own = " ".join(rows[index].label.split()).rstrip(" .:…$")
        heading = _heading(self._page, rows, index)
        return f"{heading}: {own}" if heading and own else own or heading

    def _unit(self, label: str, header: str, number: Number) -> tuple[str | None, int]:
        """Of one figure, and the power of ten it is given in: its own marks, its row, its column, then the table."""
        if number.scale:
            return number.unit or self._currency, number.scale
        said, printed = f"{label} {header}", number.unit
        if printed == "percent" or (printed is None and _PERCENT.search(f"{said} {self._unmarked}")):
            return "percent", 0
        if printed and printed not in _CURRENCIES.values():
            return printed, 0
        if printed is None and _YEAR.fullmatch(str(number.value)) and _OF_YEARS.search(header):
            return "year", 0
        if _PER_SHARE.search(f"{said} {self._unmarked}"):
            money = printed or self._currency
            return (f"{money}/share" if money else None), 0
        stated = _STATED.search(label) or _STATED.search(header)
        scale = _power(stated[0]) if stated else self._scale(said)
        if printed is None and (_SHARES.search(said) or header.lower() == "shares"):
            return "shares", scale
        if printed is None and (_COUNT.search(label) or _PER.search(said)):
            return None, 0
        money = printed or (self._currency if self._table.unit or "$" in self._head or scale else None)
        return money or self._dollars(), scale

    def _dollars(self) -> str | None:
        """The currency of a table that prints its sign somewhere."""
        text = self._page.text[self._table.start : self._table.end]
        return self._currency if any(sign in text for sign in _CURRENCIES) else None

    def _scale(self, said: str) -> int:
        """That the table's unit line states, unless it excepts such rows."""
        unit = self._table.unit or ""
        excepted = _EXCEPT.search(unit)
        stated = _power(unit[: excepted.start()] if excepted else unit)
        others = _PER_SHARE_DATA.sub("", excepted[1]) if excepted else ""
        if "share" in others.lower() and _SHARES.search(said):
            return _power(others)
        return stated


def _head(page: Page, table: Table) -> str:
    return " ".join(page.text[table.start : table.header_end].split())


def _power(text: str) -> int:
    found = _POWER.search(text)
    return _POWERS[found[1].lower()] if found and found[1] else 3 if found else 0


def _title(page: Page, table: Table) -> str | None:
    """The title of the statement that a table is, where it stands in its caption or close above it."""
    above = page.text[max(table.start - _EARLIER, 0) : table.header_end]
    for line in reversed(above.split("\n")):
        text = " ".join(line.split())
        if len(text) <= _LONGEST_HEADING and _STATEMENT.fullmatch(text.partition(" - ")[0].rstrip(" :")):
            return _LAST_LETTER.sub("", text)
    return None


def _section(chunk: Chunk | None) -> str | None:
    """ "Item 8. Financial Statements > Note 5. Debt" is "Note 5. Debt"."""
    return chunk.section.rpartition(" > ")[2] if chunk and chunk.section else None


def _heading(page: Page, rows: Sequence[Row], index: int) -> str:
    """The heading inside the table under which a row stands: until a total, or a row further left than others below."""
    own = _left(page, rows[index].start)
    if _TOTAL.match(rows[index].label):
        return ""
    within = own
    for row in reversed(rows[:index]):
        left = _left(page, row.start)
        if row.values:
            if _TOTAL.match(row.label):
                return ""
            within = max(within, left)
            continue
        text = " ".join(row.label.split()).rstrip(" :")
        outside = own < left - 1 or (within > own + 1 and own <= left + 1)
        return "" if outside or len(text) > _LONGEST_HEADING or not any(map(str.isalpha, text)) else text
    return ""


def _left(page: Page, offset: int) -> float:
    """Where the word at a place begins, in points; 0 in a page without places."""
    index = bisect_right(page.words, offset, key=lambda word: word.start) - 1
    return page.words[index].box[0] if index >= 0 else 0.0


def _currency(pages: Sequence[Page]) -> str | None:
    """The one that most amounts are printed in."""
    signs = Counter(ch for page in pages for ch in page.text if ch in _CURRENCIES)
    return _CURRENCIES[signs.most_common(1)[0][0]] if signs else None


def _table_currency(text: str, currency: str | None) -> str | None:
    signs = Counter(ch for ch in text if ch in _CURRENCIES)
    return _CURRENCIES[signs.most_common(1)[0][0]] if signs else currency


def _with_facts(
    document_id: str, found: Sequence[Figure], facts: Sequence[Fact], pages: Sequence[Page], places: _Places
) -> list[Figure]:
    """Facts say more of the cells they stand in; the others are figures of their own, named by their concept."""
    by_place: dict[int, dict[int, Figure]] = {}
    for figure in found:
        by_place.setdefault(figure.page, {})[figure.start] = figure
    for fact in facts:
        on_page = by_place.setdefault(fact.page, {})
        cell = next((f for f in on_page.values() if f.start <= fact.start and fact.end <= f.end), None)
        if cell and cell.concept:
            continue
        known = _joined(cell, fact) if cell else _alone(document_id, fact, pages[fact.page - 1], places)
        if known:
            on_page[known.start] = known
    return [by_place[page][start] for page in sorted(by_place) for start in sorted(by_place[page])]


def _joined(cell: Figure, fact: Fact) -> Figure:
    """What a fact declares outranks what its table seems to say, but not the printed sign: the concept's may differ."""
    return replace(
        cell,
        scale=fact.scale,
        unit=fact.unit or cell.unit,
        period_end=fact.period_end or cell.period_end,
        period_months=cell.period_months if fact.period_months is None else fact.period_months,
        concept=fact.concept,
        dimensions=fact.dimensions,
    )


def _alone(document_id: str, fact: Fact, page: Page, places: _Places) -> Figure | None:
    number = read_number(page.text[fact.start : fact.end])
    chunk = places.at(fact.page, fact.start, fact.end)
    if number is None or chunk is None:
        return None
    return Figure(
        document_id=document_id,
        page=fact.page,
        chunk_id=chunk.id,
        start=fact.start,
        end=fact.end,
        label=_words(fact.concept),
        statement=_section(chunk),
        value=-number.value if fact.negative else number.value,
        scale=fact.scale,
        unit=fact.unit,
        period_end=fact.period_end,
        period_months=fact.period_months,
        concept=fact.concept,
        dimensions=fact.dimensions,
    )


def _words(concept: str) -> str:
    """ "us-gaap:NetIncomeLoss" is "Net income loss"."""
    name = concept.rpartition(":")[2]
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name) or [name]
    return " ".join([words[0], *(word if word.isupper() else word.lower() for word in words[1:])])
