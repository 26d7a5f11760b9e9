"""Lines of text at character positions to pages: for filings that have columns but no page geometry of their own."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.errors import DocumentError
from app.types import Page, Word
from ingest.formats.page_text import printed_label
from ingest.formats.tables import Table, tables

Run: TypeAlias = tuple[int, str]
"""Column of its first character, from 0, and text; its blanks count as columns, but only words are kept."""
Line: TypeAlias = Sequence[Run]

MARK = "\ufdd2"
"""Begins a word that is a footnote's mark, set close behind the word before it."""

LONGEST_PAGE = 12_000
"""Characters that may stand between two page breaks and still be one page."""
PAGE_CHARACTERS = 4_000
"""Of the pages into which more than that is cut."""
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
    """Collects blocks into pages: those that the filing's own breaks make, unless they would be longer than any.

    The grid serves to find tables and is then forgotten: a page of this kind has no words with boxes and no size.
    """

    def __init__(self, name: str, max_pages: int) -> None:
        self.pages: list[Page] = []
        self.tables: list[tuple[Table, ...]] = []
        self.anchors: dict[str, int] = {}
        """Number of the page on which each name that links lead to stands."""
        self._name, self._max_pages = name, max_pages
        self._names: list[str] = []
        self._held: list[tuple[list[str], Block]] = []
        """What may still be one page, with the names that stand before each block."""
        self._cutting = False
        self._rows: list[tuple[int, Line]] = []
        self._row, self._size = 0, 0
        self._figures = False

    def mark(self, name: str) -> None:
        """A link may lead to what comes next."""
        self._names.append(name)

    def add(self, block: Block) -> None:
        """Raises DocumentError with reason too_large."""
        names, self._names = self._names, []
        if self._cutting:
            self._place(names, block)
            return
        self._held.append((names, block))
        self._size += sum(map(_length, block.lines))
        if self._size > LONGEST_PAGE:
            self._cutting = True
            self._release()

    def break_page(self) -> None:
        """End the page, unless nothing is on it. Raises DocumentError with reason too_large."""
        self._release()
        self._end_page()
        self._cutting = False

    def _release(self) -> None:
        held, self._held, self._size = self._held, [], 0
        for names, block in held:
            self._place(names, block)

    def _place(self, names: Sequence[str], block: Block) -> None:
        longest = PAGE_CHARACTERS if self._cutting else LONGEST_PAGE
        lines = [piece for line in block.lines for piece in _fitting(line, longest)]
        if self._size and self._size + sum(map(_length, lines)) > longest:
            self._end_page()
        if self._rows:
            self._row += 1 + (_APART - 1) * self._figures
        for name in names:
            self.anchors.setdefault(name, len(self.pages) + 1)
        for line in lines:
            if self._size and self._size + _length(line) > longest:
                self._end_page()
            self._rows.append((self._row, line))
            self._row += 1
            self._size += _length(line)
        self._figures = block.figures

    def _end_page(self) -> None:
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


def _fitting(line: Line, longest: int) -> Iterator[Line]:
    """The line, or its pieces of at most `longest` characters, cut between words where it has any."""
    if _length(line) <= longest:
        yield line
        return
    for _, text in line:
        for piece in re.finditer(rf"\S(?:.{{0,{longest - 3}}}\S)?(?!\S)|\S{{1,{longest - 1}}}", text, re.S):
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
