"""The rows of an HTML table to lines on a grid: one row one line, figures whole and under one another."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from app.raised import RAISED
from ingest.formats.grid import MARK, Block, Run

PARAGRAPH, BREAK = "\ufdd0", "\ufdd1"
"""Stand in a cell's text where a block and a line end."""
MAX_COLUMNS = 1_000
"""That HTML allows a cell to span; a table's further columns fall into the last."""
MAX_ROWS = 65_534
"""That HTML allows a cell to span."""

_GAP = 4
"""Blanks after a cell: more than a closing mark hangs over."""
_OPENING = re.compile(r"(?:US|C|A|HK|NZ|S)?[$€£¥][\s(]*|\(")
_FIGURE = re.compile(
    r"(?:(?:US|C|A)?[$€£¥])?\s*(?:\(\s*)?[$€£¥]?[+\-–−]?\.?\d[\d,]*(?:\.\d+)?|[$€£¥]?\s*[—–-]{1,3}|\(?N/?M|n/?a", re.I
)
_TAIL = re.compile(rf"[)\]%]{{1,3}}|\)?\s?%\s?\)?|{RAISED.pattern}|{MARK}.*")
"""Of a figure, in a cell of its own: closing marks, or a footnote's."""
_HANGING = re.compile(rf"\s*(?:[)\]%*]|{RAISED.pattern})*(?:\s*{MARK}\S+)*$")
_LONGEST_FIGURE = 60
_AFTER_SIGN = re.compile(r"(?<=[$€£¥(])\s+(?=[\d(.])")
_BEFORE_CLOSING = re.compile(r"\s+(?=\))")
_PROSE = 300
"""Characters from which a cell of several paragraphs is no label."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_PARTED = re.compile(rf"{PARAGRAPH}|{BREAK}(?:\s*{BREAK})+")
_BETWEEN = str.maketrans({PARAGRAPH: " ", BREAK: " "})


class Cell(NamedTuple):
    """What stands from column `first` to before column `end`."""

    first: int
    end: int
    text: str


@dataclass(slots=True)
class _Run:
    """Cells that are read as one: a label, or a figure with its currency sign and closing marks."""

    first: int
    end: int
    """Of its last digit's cell."""
    text: str
    tail: str = ""
    """What hangs over to the right of the digits."""
    tail_end: int = 0
    figure: bool = False
    marks: int = 0
    """Columns of its cells that hold marks alone."""

    @property
    def year(self) -> bool:
        return _YEAR.fullmatch(self.text) is not None


@dataclass(slots=True)
class Rows:
    """A table while it is read: cells take the next free columns of their row."""

    rows: list[list[Cell]] = field(default_factory=list)
    _column: int = 0
    _spanning: list[tuple[int, int, int]] = field(default_factory=list)
    """First and end column of cells that reach down, and how many rows further."""

    def open_row(self) -> None:
        self.rows.append([])
        self._column = 0
        self._spanning = [(first, end, left - 1) for first, end, left in self._spanning if left > 0]

    def add(self, text: str, colspan: int = 1, rowspan: int = 1) -> None:
        """A cell in the open row."""
        if not self.rows:
            self.open_row()
        first = self._free(self._column)
        end = max(min(first + colspan, MAX_COLUMNS), first + 1)
        self._column = end
        if rowspan > 1 and end < MAX_COLUMNS:
            self._spanning.append((first, end, rowspan - 1))
        if text.translate(_BETWEEN).strip():
            self.rows[-1].append(Cell(first, end, text))

    def _free(self, column: int) -> int:
        taken = sorted((first, end) for first, end, _ in self._spanning)
        for first, end in taken:
            if first <= column < end:
                column = end
        return min(column, MAX_COLUMNS - 1)

    def take(self) -> list[list[Cell]]:
        """The rows read so far, which are then forgotten."""
        rows, self.rows = self.rows, []
        return rows


def blocks(rows: Sequence[Sequence[Cell]]) -> Iterator[Block]:
    """Tables as `_table` gives them; a row that is prose of its own, as where a table frames a page, parts them."""
    start = 0
    for index, row in enumerate(rows):
        if len(row) == 1 and len(row[0].text) > _PROSE and _PARTED.search(row[0].text.strip(PARAGRAPH)):
            yield from _table(rows[start:index])
            yield from paragraphs(row[0].text)
            start = index + 1
    yield from _table(rows[start:])


def _table(rows: Sequence[Sequence[Cell]]) -> Iterator[Block]:
    """A table of figures as one block; the rows of any other each as one, for they are paragraphs set side by side."""
    joined = [list(_runs(row)) for row in rows if row]
    figures = [run for runs in joined for run in runs[1:] if run.figure]
    if not any(not run.year for run in figures):
        for row in rows:
            if len(row) == 1:
                yield from paragraphs(row[0].text)
            elif row:
                yield Block([_plain(row)])
        return
    joined = _aligned(joined)
    label_end = min(run.first for runs in joined for run in runs[1:] if run.figure)
    for runs in joined:
        if len(runs) == 1 and runs[0].first < label_end:
            runs[0].end = min(runs[0].end, label_end)
    edges = _edges(joined)
    yield Block([[*_placed(runs, edges, label_end)] for runs in joined], figures=True)


def _aligned(rows: list[list[_Run]]) -> list[list[_Run]]:
    """Without the cells of marks alone, where figures and headings stand under one another only then.

    Some rows have a cell for "$" or ")" and others neither that nor an empty one in its place, so that all behind it
    would stand a column further.
    """
    packed = [list(_packed(runs)) for runs in rows]
    columns, apart = sorted(_figure_ends(packed)), sorted(_figure_ends(rows))
    most = max(sum(run.figure and not run.year for run in runs[1:]) for runs in packed)
    if len(columns) > most or (len(columns) == len(apart) and _stand_over(rows, apart)):
        return rows
    for heads in _headings(packed, len(columns)):
        for run, end in zip(heads, columns, strict=True):
            run.first, run.end, run.tail_end = end - 1, end, end
    return packed


def _headings(rows: Sequence[Sequence[_Run]], columns: int) -> Iterator[Sequence[_Run]]:
    """Of rows without a figure, those with a cell for each column, and perhaps one over the labels."""
    for runs in rows:
        over = runs[1:] if len(runs) > columns and runs[0].first == 0 else runs
        if not any(run.figure and not run.year for run in runs) and len(over) == columns:
            yield over


def _stand_over(rows: Sequence[Sequence[_Run]], columns: Sequence[int]) -> bool:
    heads = [zip(each, columns, strict=True) for each in _headings(rows, len(columns))]
    return all(run.first < end <= run.end for pairs in heads for run, end in pairs)


def _packed(runs: Sequence[_Run]) -> Iterator[_Run]:
    left = 0
    for run in runs:
        own = max(run.end - run.first - run.marks, 1)
        first = run.first - left
        left += run.marks + max(run.tail_end - run.end, 0)
        yield replace(run, first=first, end=first + own, tail_end=first + own, marks=0)


def _figure_ends(rows: Sequence[Sequence[_Run]]) -> set[int]:
    return {run.end for runs in rows for run in runs[1:] if run.figure and not run.year}


def paragraphs(text: str) -> Iterator[Block]:
    for part in _PARTED.split(text):
        lines = [" ".join(line.split()) for line in part.split(BREAK)]
        if any(lines):
            yield Block([[(0, line)] for line in lines if line])


def _plain(row: Sequence[Cell]) -> list[Run]:
    line: list[Run] = []
    column = 0
    for cell in row:
        text = " ".join(cell.text.translate(_BETWEEN).split())
        line.append((column, text))
        column += len(text) + _GAP
    return line


def _runs(row: Sequence[Cell]) -> Iterator[_Run]:
    """The row's cells, with a currency sign, an opening parenthesis and closing marks joined to their figure."""
    opening: Cell | None = None
    last: _Run | None = None
    for cell in row:
        text = " ".join(cell.text.translate(_BETWEEN).split())
        if last and last.figure and _TAIL.fullmatch(text):
            last.tail += f" {text}" if text.startswith(MARK) else text.replace(" ", "")
            last.tail_end = cell.end
            continue
        if last:
            yield last
            last = None
        if _OPENING.fullmatch(text):
            first, sign = (opening.first, opening.text) if opening else (cell.first, "")
            opening = Cell(first, cell.end, sign + text.replace(" ", ""))
            continue
        if opening and not _FIGURE.match(text):
            yield _Run(opening.first, opening.end, opening.text)
            opening = None
        last = _run(cell, text, opening)
        opening = None
    if last:
        yield last
    if opening:
        yield _Run(opening.first, opening.end, opening.text)


def _run(cell: Cell, text: str, opening: Cell | None) -> _Run:
    first, sign = (opening.first, opening.text) if opening else (cell.first, "")
    hanging = _HANGING.search(text) if len(text) <= _LONGEST_FIGURE else None
    if hanging is None or not _FIGURE.fullmatch(text, 0, hanging.start()):
        return _Run(first, cell.end, f"{sign} {text}".strip())
    digits = _AFTER_SIGN.sub("", text[: hanging.start()])
    glue = "" if digits[0] in "(.0123456789" else " "
    tail = _BEFORE_CLOSING.sub("", hanging[0])
    marks = cell.first - first
    return _Run(first, cell.end, f"{sign}{glue}{digits}".strip(), tail, cell.end, figure=True, marks=marks)


def _edges(rows: Sequence[Sequence[_Run]]) -> list[int]:
    """Left edge of each column and of what follows the last: the narrowest grid on which every cell has room."""
    ends: dict[int, list[tuple[int, int]]] = {}
    for runs in rows:
        for run in runs:
            ends.setdefault(run.end, []).append((run.first, len(run.text) + _GAP))
            if run.tail_end > run.end:
                ends.setdefault(run.tail_end, []).append((run.end, max(len(run.tail) - _GAP + 2, 1)))
    edges = [0]
    for column in range(1, max(ends) + 1):
        edges.append(max([edges[-1], *(edges[first] + width for first, width in ends.get(column, ()))]))
    return edges


def _placed(runs: Sequence[_Run], edges: Sequence[int], label_end: int) -> Iterator[Run]:
    """Labels to the left, figures to the right with their marks hanging over, headers and years in the middle."""
    for run in runs:
        left, room = edges[run.first], edges[run.end] - edges[run.first] - _GAP - len(run.text)
        if run.first >= label_end:
            left += room if run.figure and not run.year else room // 2
        yield left, run.text + run.tail
