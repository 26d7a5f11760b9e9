"""Lines of text at character positions to pages: for filings that have columns but no page geometry of their own."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.errors import DocumentError
from app.types import Page, Word
from ingest.pdf import printed_label
from ingest.tables import Table, tables

Run: TypeAlias = tuple[int, str]
"""Column of its first character, from 0, and text; its blanks count as columns, but only words are kept."""
Line: TypeAlias = Sequence[Run]

MARK = "\ufdd2"
"""Begins a word that is a footnote's mark, set close behind the word before it."""

PAGE_CHARACTERS = 4_000
"""Of a page of a filing that has no page breaks."""
LONGEST_PAGE = 12_000
"""Characters from which a page is cut, page breaks or not."""
_WORD = re.compile(r"\S+")
_CHARACTER, _LINE, _HEIGHT = 5.0, 12.0, 9.0
_MARK_GAP = 0.4
_APART = 3
"""Blank lines after a table, so that no other is taken for its continuation."""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together: a paragraph or a table."""

    lines: Sequence[Line]
    figures: bool = False
    """Whether it is a table of figures."""


class Pages:
    """Collects blocks into pages; a page ends where the filing breaks it, or at the last block that fits.

    The grid serves to find tables and is then forgotten: a page of this kind has no words with boxes and no size.
    """

    def __init__(self, name: str, max_pages: int, longest: int) -> None:
        self.pages: list[Page] = []
        self.tables: list[tuple[Table, ...]] = []
        self._name, self._max_pages, self._longest = name, max_pages, longest
        self._rows: list[tuple[int, Line]] = []
        self._row, self._size = 0, 0
        self._figures = False

    def add(self, block: Block) -> int:
        """Number of the page on which the block begins. Raises DocumentError with reason too_large."""
        lines = [piece for line in block.lines for piece in self._fitting(line)]
        size = sum(map(_length, lines))
        if self._size and self._size + size > self._longest:
            self.break_page()
        if self._rows:
            self._row += 1 + (_APART - 1) * self._figures
        number = len(self.pages) + 1
        for line in lines:
            if self._size and self._size + _length(line) > self._longest:
                self.break_page()
            self._rows.append((self._row, line))
            self._row += 1
            self._size += _length(line)
        self._figures = block.figures
        return number

    def break_page(self) -> None:
        """End the page, unless nothing is on it."""
        if not self._rows:
            return
        if len(self.pages) == self._max_pages:
            raise DocumentError(f"{self._name} has more than {self._max_pages} pages; split it", "too_large")
        number = len(self.pages) + 1
        text, words = _set(self._rows)
        label = printed_label(text)
        self.tables.append(tuple(tables(Page(number, text, words))))
        self.pages.append(Page(number, text, (), 0.0, 0.0, label if label != str(number) else None))
        self._rows, self._row, self._size, self._figures = [], 0, 0, False

    def _fitting(self, line: Line) -> Iterator[Line]:
        """The line, or its pieces where it is longer than a page."""
        if _length(line) <= self._longest:
            yield line
            return
        for _, text in line:
            for piece in re.finditer(rf"\S(?:.{{0,{self._longest - 2}}}\S)?(?!\S)|\S{{1,{self._longest}}}", text, re.S):
                yield [(0, piece[0])]


def _length(line: Line) -> int:
    return sum(len(text) + 1 for _, text in line)


def _set(rows: Sequence[tuple[int, Line]]) -> tuple[str, tuple[Word, ...]]:
    """Text of the lines, a blank line where a row is empty, and its words on the grid, in points."""
    pieces: list[str] = []
    words: list[Word] = []
    length, above = 0, -1
    for row, line in rows:
        gap = "" if above < 0 else "\n" if row == above + 1 else "\n\n"
        length += len(gap)
        pieces.append(gap)
        shown, above, y = 0, row, row * _LINE
        for x, text in _placed(line):
            if shown:
                pieces.append(" ")
                length += 1
            pieces.append(text)
            words.append(Word(length, length + len(text), (x, y, x + len(text) * _CHARACTER, y + _HEIGHT)))
            length += len(text)
            shown += 1
    return "".join(pieces), tuple(words)


def _placed(line: Line) -> Iterator[tuple[float, str]]:
    """The line's words, each with its left edge in points."""
    right = 0.0
    for column, text in line:
        for word in _WORD.finditer(text):
            x, shown = (column + word.start()) * _CHARACTER, word[0]
            if shown[0] == MARK:
                x, shown = right + _MARK_GAP * _CHARACTER, shown.replace(MARK, "")
            if shown:
                right = x + len(shown) * _CHARACTER
                yield x, shown
