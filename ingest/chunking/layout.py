"""One page as what is never split (sentences, table rows), and the lines that are put above a chunk of it."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from app.types import DocumentMeta, Page
from ingest.extraction.metadata import printed
from ingest.formats.sections import Section
from ingest.formats.tables import Table

Split: TypeAlias = Callable[[int, int], Iterator[tuple[int, int]]]
"""From a span of the page's text to spans in it."""
Header = Literal["none", "document", "section"]
"""What is put above a chunk's text: nothing but a table's header; the document; the document and the section."""

_WINDOW = 250
"""Word pieces that the embedding model reads of context and text together (256 with its own marks)."""
_HEADER_TOKENS = 60
_PIECE = re.compile(r"[A-Za-z]{1,7}|\d{1,2}|[^\w\s]|[^\W\dA-Za-z_]{1,2}|_")
_PARAGRAPH = re.compile(r"\S(?:.|\n(?!\n))*")
_TOTAL = re.compile(r"total|net (?:cash|income|earnings|loss|sales|revenue)|balance", re.I)
_QUARTERS = {"Q1": "first", "Q2": "second", "Q3": "third", "Q4": "fourth"}


def estimate_tokens(text: str) -> int:
    """Word pieces of a BERT vocabulary, to within about a tenth on filings: numbers cost one piece per two digits."""
    return len(_PIECE.findall(text))


@dataclass(frozen=True, slots=True)
class Unit:
    """What is never split: a sentence, a table's row, or a table's header with its first row."""

    start: int
    end: int
    tokens: int
    section: int
    """Position of its section in the document's; -1 before the first."""
    table: int
    """Position of its table on the page; -1 for prose."""
    row: int
    """Position of its first row in the table."""
    opens: bool
    """Begins a paragraph or a table."""
    heading: bool


class PageLayout:
    """One page's units and what is said above each of them."""

    def __init__(
        self,
        max_tokens: int,
        header: Header,
        meta: DocumentMeta,
        page: Page,
        found: Sequence[Table],
        running: Sequence[tuple[int, int]],
        sections: Sequence[Section],
        above: tuple[str, int] | None,
        kept_free: int = 0,
    ) -> None:
        """`running` are the spans of running lines; `above` is the `last_header` of the page before.

        `kept_free` tokens of the embedding window are for what else is embedded with a chunk.
        """
        self.count, self.max_tokens, self.header = cache(estimate_tokens), max_tokens, header
        self.meta, self.page, self.running, self.sections = meta, page, running, sections
        self.tables = found
        self.above = above
        self.window = _WINDOW - kept_free
        self.keys = [(s.page, s.start) for s in sections]
        self.cuts = self._cuts()

    def units(self, *, sentences: bool = False, words: bool = False) -> Iterator[Unit]:
        """In reading order, without running lines. A paragraph is one unit where it is short.

        With `sentences` each of its sentences is, with `words` each word; the rows of tables always are.
        """
        split = self._by_word if words else self._by_sentence if sentences else self._fitting
        position = 0
        for index, table in enumerate(self.tables):
            yield from self._prose(position, table.start, split)
            yield from self._rows(index, table)
            position = table.end
        yield from self._prose(position, len(self.page.text), split)

    def context(self, first: Unit, section: int) -> str:
        """Of a chunk that begins with this unit and is of this section."""
        lines = []
        if self.header != "none":
            named = section >= 0 and self.header == "section"
            lines.append(_document_line(self.meta, self.sections[section].title if named else None))
        if first.table >= 0:
            header = self._header(first.table) if first.row else self._inherited(first.table)
            lines += [header] if header else []
            lines += [heading] if (heading := self._group(first)) else []
        return "\n".join(lines)

    def table_of(self, units: Sequence[Unit]) -> Table | None:
        return next((self.tables[unit.table] for unit in units if unit.table >= 0), None)

    def opens(self, table: Table) -> int:
        """Where the table's first line begins that is no running line."""
        return next((a for a, _ in _lines(self.page.text, table.start, table.end) if not self._runs(a)), table.start)

    def limit(self, first: Unit) -> int:
        """Most tokens of a chunk that begins with this unit, so that its context fits the model's window as well.

        A chunk that is wanted longer than the window is embedded by what of it the window holds.
        """
        if self.max_tokens > _WINDOW:
            return self.max_tokens
        context = self.count(self.context(first, first.section))
        return max(min(self.max_tokens, self.window - context), self.max_tokens // 3)

    def runs_between(self, before: Unit, after: Unit) -> bool:
        """Whether a running header or footer stands between two units."""
        return any(before.end <= start < after.start for start, _ in self.running)

    def last_header(self) -> tuple[str, int] | None:
        """Header and width of the table at the foot of the page, for a table that goes on overleaf."""
        if not self.tables:
            return None
        last = self.tables[-1]
        if len(self.page.text) - last.end > 400:
            return None
        header = self._header(len(self.tables) - 1) or self._inherited(len(self.tables) - 1)
        return (header, len(last.columns)) if header else None

    def _header(self, index: int) -> str:
        """A table's header on a line of its own, its end kept where it is long: the columns stand there."""
        table = self.tables[index]
        lines = [
            " ".join(t.split()) for a, t in _lines(self.page.text, table.start, table.header_end) if not self._runs(a)
        ]
        while len(lines) > 1 and self.count(" | ".join(lines)) > _HEADER_TOKENS:
            lines.pop(0)
        header = " | ".join(filter(None, lines))
        return header if self.count(header) <= _HEADER_TOKENS else ""

    def _inherited(self, index: int) -> str:
        table = self.tables[index]
        if index or self.above is None or table.header_end > table.start or table.start > 400:
            return ""
        header, width = self.above
        return header if width == len(table.columns) else ""

    def _group(self, first: Unit) -> str:
        """The heading inside a table under which a chunk's first row stands, unless a total has closed it."""
        rows = self.tables[first.table].rows
        if first.row < len(rows) and not rows[first.row].values:
            return ""
        for row in reversed(rows[: first.row]):
            if not row.values:
                return row.label if self.count(row.label) <= 16 else ""
            if _TOTAL.match(row.label):
                return ""
        return ""

    def _cuts(self) -> list[int]:
        """Offsets at which a section begins; one that begins inside a table's header begins with the table."""
        starts = [s.start for s in self.sections if s.page == self.page.number]
        for index, start in enumerate(starts):
            for table in self.tables:
                if table.start <= start <= table.header_end:
                    starts[index] = table.start
        return starts

    def _section_at(self, offset: int) -> int:
        before = bisect_right(self.keys, (self.page.number, -1)) - 1
        return before + sum(cut <= offset for cut in self.cuts)

    def _runs(self, start: int) -> bool:
        return any(a <= start < b for a, b in self.running)

    def _rows(self, index: int, table: Table) -> Iterator[Unit]:
        start = self.opens(table)
        for number, row in enumerate(table.rows):
            start = start if number == 0 else row.start
            for part, (a, b) in enumerate(self._fitting(start, row.end)):
                opens = number == 0 and part == 0
                at = number if part == 0 else number + 1
                yield Unit(a, b, self.count(self.page.text[a:b]), self._section_at(a), index, at, opens, not row.values)

    def _prose(self, start: int, end: int, split: Split) -> Iterator[Unit]:
        for a, b in self._between(start, end):
            for match in _PARAGRAPH.finditer(self.page.text, a, b):
                first, last = match.start(), match.start() + len(match[0].rstrip())
                section = self._section_at(first)
                heading = last - first < 120 and self.page.text[last - 1] not in ".;,"
                for number, (c, d) in enumerate(split(first, last)):
                    yield Unit(
                        c, d, self.count(self.page.text[c:d]), section, -1, 0, number == 0, heading and number == 0
                    )

    def _between(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The spans from start to end, cut where a section begins, without the running lines."""
        edges = sorted({start, end, *(c for c in self.cuts if start < c < end)})
        for a, b in pairwise(edges):
            for run_start, run_end in self.running:
                if a <= run_start < b:
                    yield a, run_start
                    a = min(run_end, b)
            yield a, b

    def _fitting(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A span whole if it fits the limit; else its sentences, and those too long by their lines and words."""
        if end - start < self.max_tokens or self.count(self.page.text[start:end]) <= self.max_tokens // 2:
            yield start, end
        else:
            yield from self._by_sentence(start, end)

    def _by_sentence(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for a, b in _sentences(self.page.text, start, end):
            if self.count(self.page.text[a:b]) <= self.max_tokens // 2:
                yield a, b
            else:
                yield from self._by_words(a, b)

    def _by_word(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        yield from self._by_words(start, end, 1)

    def _by_words(self, start: int, end: int, most: int | None = None) -> Iterator[tuple[int, int]]:
        """Runs of words of `most` tokens, or longer where one word is; half the limit where it is left out."""
        half = max(self.max_tokens // 2, 1)
        most = half if most is None else most
        held, tokens, last = start, 0, start
        for match in re.finditer(rf"\S{{1,{half}}}", self.page.text[start:end]):  # a character is at most one token
            size = self.count(match[0])
            if tokens and tokens + size > most:
                yield held, last
                held, tokens = start + match.start(), 0
            tokens, last = tokens + size, start + match.end()
        yield held, last


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    position = start
    for line in text[start:end].split("\n"):
        if line.strip():
            yield position, line
        position += len(line) + 1


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of sentences without the white space between them."""
    part = text[start:end]
    for a, b in _splitter()(part):
        body = part[a:b]
        stripped = body.strip()
        if stripped:
            first = start + a + body.index(stripped[0])
            yield first, first + len(stripped)


@cache
def _splitter() -> Callable[[str], list[tuple[int, int]]]:
    from nupunkt import sent_spans

    spans: Callable[[str], Any] = sent_spans
    return spans


@lru_cache(maxsize=256)
def _document_line(meta: DocumentMeta, section: str | None) -> str:
    """Acme Corp (ACM) · 10-K · fiscal year 2022 (FY2022) · period ended December 31, 2022 · Item 8 > Note 5. Debt"""
    company = meta.company or meta.title
    parts = [f"{company} ({meta.ticker})" if meta.ticker else company, meta.form]
    if meta.fiscal_year and meta.form != "8-K":
        quarter = _QUARTERS.get(meta.fiscal_period or "")
        named = f"{quarter} quarter of fiscal year" if quarter else "fiscal year"
        short = f"{meta.fiscal_period} FY{meta.fiscal_year}" if quarter else f"FY{meta.fiscal_year}"
        parts.append(f"{named} {meta.fiscal_year} ({short})")
    if meta.period_end:
        day = printed(date.fromisoformat(meta.period_end))
        parts.append(day if meta.form == "8-K" else f"period ended {day}")
    if section:
        parts.append(_short(section))
    return " · ".join(filter(None, parts))


def _short(section: str) -> str:
    """ "Item 8. Financial Statements > Note 5. Debt" to "Item 8 > Note 5. Debt", at most fourteen words."""
    parent, _, child = section.rpartition(" > ")
    item = re.match(r"(?:Part [IV]+, )?Item \d+[A-C]?(?:\.\d\d)?", parent)
    name = f"{item[0]} > {child}" if item else section
    return " ".join(name.split()[:14])
