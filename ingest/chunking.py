"""Pages to chunks: exact slices that keep a table with its header and prose in whole sentences."""

import re
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from app.types import Chunk, DocumentMeta, Page
from ingest.metadata import printed
from ingest.sections import Section, running_lines
from ingest.tables import Table, tables

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "chunks.sextant")
_VERSION = 2
_WINDOW = 250
"""Word pieces that the embedding model reads of context and text together (256 with its own marks)."""
_HEADER_TOKENS = 60
_SMALL = 32
"""Tokens up to which a paragraph joins the table it introduces or explains."""
_SLIGHT = 18
"""Tokens up to which a heading or a section joins the section after it."""
_PIECE = re.compile(r"[A-Za-z]{1,7}|\d{1,2}|[^\w\s]|[^\W\dA-Za-z_]{1,2}|_")
_PARAGRAPH = re.compile(r"\S(?:.|\n(?!\n))*")
_TOTAL = re.compile(r"total|net (?:cash|income|earnings|loss|sales|revenue)|balance", re.I)
_QUARTERS = {"Q1": "first", "Q2": "second", "Q3": "third", "Q4": "fourth"}


def estimate_tokens(text: str) -> int:
    """Word pieces of a BERT vocabulary, to within about a tenth on filings: numbers cost one piece per two digits."""
    return len(_PIECE.findall(text))


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is never split: a sentence, a table's row, or a table's header with its first row."""

    start: int
    end: int
    tokens: int
    section: int
    table: int
    """Position of its table on the page; -1 for prose."""
    row: int
    """Position of its first row in the table."""
    opens: bool
    """Begins a paragraph or a table."""
    heading: bool


@dataclass(frozen=True, slots=True)
class Chunker:
    """Cuts a document so that a chunk never crosses a page, nor a section that holds more than a line.

    `max_tokens` bounds a chunk's text as `count` counts it; the text is bounded further where its context is long, so
    that both fit an embedding window of 256 word pieces.
    """

    max_tokens: int = 180
    count: Callable[[str], int] = estimate_tokens

    @property
    def name(self) -> str:
        """Name, version and parameters: part of the index stamp and of every chunk's id."""
        return f"structure-{_VERSION}(max_tokens={self.max_tokens},count={self.count.__name__})"

    def chunks(
        self,
        document_id: str,
        meta: DocumentMeta,
        pages: Sequence[Page],
        sections: Sequence[Section],
        found_tables: Sequence[Sequence[Table]] | None = None,
    ) -> list[Chunk]:
        """The document's chunks in reading order.

        Every chunk's text is exactly page.text[start:end]; only white space and running headers and footers are in no
        chunk. `context` names the document and the section and repeats the header of a table cut across chunks.
        `found_tables` are those of each page; None finds them from the places of its words.
        """
        found: list[Chunk] = []
        name = self.name
        above: tuple[str, int] | None = None
        of_pages = map(tables, pages) if found_tables is None else found_tables
        for page, running, on_page in zip(pages, running_lines(pages), of_pages, strict=True):
            if not page.text.strip():
                continue
            layout = _PageLayout(self, meta, page, on_page, running, sections, above)
            for units in layout.pack():
                first, last = units[0], units[-1]
                table = layout.table_of(units)
                ordinal = len(found)
                found.append(
                    Chunk(
                        id=str(uuid.uuid5(_NAMESPACE, f"{document_id}/{name}/{ordinal}")),
                        document_id=document_id,
                        ordinal=ordinal,
                        page=page.number,
                        start=first.start,
                        end=last.end,
                        text=page.text[first.start : last.end],
                        context=layout.context(first, last.section),
                        kind="table" if table else "text",
                        section=sections[last.section].title if last.section >= 0 else None,
                        meta=meta,
                        columns=table.columns if table else (),
                        unit=table.unit if table else None,
                    )
                )
            above = layout.last_header()
        return found


class _PageLayout:
    """One page's units and what is said above each of them."""

    def __init__(
        self,
        chunker: Chunker,
        meta: DocumentMeta,
        page: Page,
        found: Sequence[Table],
        running: Sequence[tuple[int, int]],
        sections: Sequence[Section],
        above: tuple[str, int] | None,
    ) -> None:
        self.count, self.max_tokens = cache(chunker.count), chunker.max_tokens
        self.meta, self.page, self.running, self.sections = meta, page, running, sections
        self.tables = found
        self.above = above
        self.keys = [(s.page, s.start) for s in sections]
        self.cuts = self._cuts()

    def pack(self) -> Iterator[list[_Unit]]:
        """Units joined up to the limit, in order."""
        held: list[_Unit] = []
        for unit in self._units():
            if held and (self._must_break(held, unit) or _sum(held) + unit.tokens > self._limit(held[0])):
                forced = self._must_break(held, unit)
                done, held = (held, []) if forced else _cut(held)
                yield done
                if held and _sum(held) + unit.tokens > self._limit(held[0]):
                    yield held
                    held = []
            held.append(unit)
        if held:
            yield held

    def context(self, first: _Unit, section: int) -> str:
        """Of a chunk that begins with this unit and is of this section."""
        lines = [_document_line(self.meta, self.sections[section].title if section >= 0 else None)]
        if first.table >= 0:
            header = self._header(first.table) if first.row else self._inherited(first.table)
            lines += [header] if header else []
            lines += [heading] if (heading := self._group(first)) else []
        return "\n".join(lines)

    def table_of(self, units: Sequence[_Unit]) -> Table | None:
        return next((self.tables[unit.table] for unit in units if unit.table >= 0), None)

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

    def _group(self, first: _Unit) -> str:
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

    def _limit(self, first: _Unit) -> int:
        return max(min(self.max_tokens, _WINDOW - self.count(self.context(first, first.section))), self.max_tokens // 3)

    def _must_break(self, held: Sequence[_Unit], unit: _Unit) -> bool:
        if any(held[-1].end <= start < unit.start for start, _ in self.running):
            return True
        if unit.section != held[-1].section and not self._joins(held):
            return True
        if unit.table == held[-1].table:
            return False
        if unit.table >= 0 and held[0].table < 0:
            return _sum(held) > _SMALL
        return unit.table >= 0 or unit.tokens > _SMALL

    def _joins(self, held: Sequence[_Unit]) -> bool:
        """Whether what is held goes with the next section: a heading, or a section of a line ("Item 6. [Reserved]").

        Alone it would be a chunk that says nothing and, for its context, comes up for every short question.
        """
        if _sum(held) > _SLIGHT:
            return False
        whole = any(cut <= held[0].start and not self.page.text[cut : held[0].start].strip() for cut in self.cuts)
        return whole or all(unit.heading for unit in held)

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

    def _units(self) -> Iterator[_Unit]:
        position = 0
        for index, table in enumerate(self.tables):
            yield from self._prose(position, table.start)
            yield from self._rows(index, table)
            position = table.end
        yield from self._prose(position, len(self.page.text))

    def _rows(self, index: int, table: Table) -> Iterator[_Unit]:
        start = next((a for a, _ in _lines(self.page.text, table.start, table.end) if not self._runs(a)), table.start)
        for number, row in enumerate(table.rows):
            start = start if number == 0 else row.start
            for part, (a, b) in enumerate(self._fitting(start, row.end)):
                opens = number == 0 and part == 0
                at = number if part == 0 else number + 1
                yield _Unit(
                    a, b, self.count(self.page.text[a:b]), self._section_at(a), index, at, opens, not row.values
                )

    def _prose(self, start: int, end: int) -> Iterator[_Unit]:
        for a, b in self._between(start, end):
            for match in _PARAGRAPH.finditer(self.page.text, a, b):
                first, last = match.start(), match.start() + len(match[0].rstrip())
                section = self._section_at(first)
                heading = last - first < 120 and self.page.text[last - 1] not in ".;,"
                for number, (c, d) in enumerate(self._fitting(first, last)):
                    yield _Unit(
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
        text = self.page.text
        if end - start < self.max_tokens or self.count(text[start:end]) <= self.max_tokens // 2:
            yield start, end
            return
        for a, b in _sentences(text, start, end):
            if self.count(text[a:b]) <= self.max_tokens // 2:
                yield a, b
            else:
                yield from self._by_words(a, b)

    def _by_words(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        held, tokens, last = start, 0, start
        longest = max(self.max_tokens // 2, 1)  # a character is at most one token
        for match in re.finditer(rf"\S{{1,{longest}}}", self.page.text[start:end]):
            size = self.count(match[0])
            if tokens and tokens + size > self.max_tokens // 2:
                yield held, last
                held, tokens = start + match.start(), 0
            tokens, last = tokens + size, start + match.end()
        yield held, last


def _sum(units: Sequence[_Unit]) -> int:
    return sum(unit.tokens for unit in units)


def _cut(held: list[_Unit]) -> tuple[list[_Unit], list[_Unit]]:
    """What is full and what waits for more: headings wait, and a paragraph that began late does."""
    at = len(held)
    while at > 1 and held[at - 1].heading:
        at -= 1
    if held[0].table < 0 and at == len(held):
        late = next((i for i in range(len(held) - 1, 0, -1) if held[i].opens), 0)
        if late and _sum(held[:late]) >= 0.6 * _sum(held):
            at = late
            while at > 1 and held[at - 1].heading:
                at -= 1
    return held[:at], held[at:]


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
