"""Borderless tables of figures, found from the lines of a page and the places of its words."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from app.raised import RAISED
from app.types import Page
from ingest.formats.columns import Column, column_headers, columns_of, edge_of, nearest
from ingest.formats.page_lines import PERIOD, Line, figure_cells, page_lines, spaced, unit

_ANEW = re.compile(
    r"(?:see (?:the )?)?(?:the )?accompanying notes\b|notes? \d+[.:—–-]|items? \d+[a-c]?\.|part [iv]+\b"
    r"|(?:consolidated|condensed) (?:\w+ ){0,2}?(?:statements?|balance sheets?)\b",
    re.IGNORECASE,
)
"""A line that ends a table or begins what stands after it, however close to its rows."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, or a label that runs over several."""

    start: int
    end: int
    """Slice of the page's text."""
    label: str
    values: tuple[str, ...]
    """One per column of the table, "" where the cell is blank; empty for a heading inside the table."""
    spans: tuple[tuple[int, int] | None, ...] = field(default=(), compare=False)
    """Of each value, its slice of the page's text; None where the cell holds none or several."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of figures on one page."""

    start: int
    end: int
    """Slice of the page's text: caption, header and rows."""
    header_end: int
    """End of the caption and header in the page's text; equals start where there is none."""
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    """Header of each value column ("Three Months Ended June 30, 2023"), "" where none was found."""
    unit: str | None
    """"in millions, except per share data", as printed."""


def tables(page: Page) -> list[Table]:
    """Tables of a page in order, not overlapping. Prose, lists and contents pages give none."""
    lines = page_lines(page)
    found: list[Table] = []
    index, free = 0, 0
    while index < len(lines):
        if not lines[index].is_data:
            index += 1
            continue
        last = _last_row(lines, index)
        body = lines[index : last + 1]
        columns = columns_of(body)
        if columns and _is_table(body, columns):
            first, top = _header(lines, index, free, columns)
            found.append(_table(page, lines, (first, top, index, last), columns))
            free = last + 1
        index = last + 1
    return found


def _last_row(lines: Sequence[Line], first: int) -> int:
    """Index of the last line of figures of the table that starts at `first`."""
    last = first
    for index in range(first + 1, len(lines)):
        line, above = lines[index], lines[index - 1]
        if line.y0 - above.y1 > 3.2 * line.height or line.y1 < above.y0 or line.is_years:
            break
        if line.is_data:
            last = index
        elif index - last > 5 or _ANEW.match(_text(line)) or not _is_label(line, lines[first : last + 1]):
            break
    return last


def _text(line: Line) -> str:
    return " ".join(word.text for word in line.words)


def _is_label(line: Line, body: Sequence[Line]) -> bool:
    """Whether a line without figures may stand between rows: a heading or the start of a long label."""
    if line.values:
        return True
    left = median(row.values[0].x0 for row in body if row.is_data)
    return line.words[-1].x1 < left + 4 or (len(line.words) <= 5 and not _header_like(line, left))


def _header_like(line: Line, left: float) -> bool:
    text = " ".join(w.text for w in line.words)
    return line.words[0].x0 > left - 40 and bool(PERIOD.search(text))


def _is_table(body: Sequence[Line], columns: Sequence[Column]) -> bool:
    data = [line for line in body if line.is_data]
    if len(data) < 2 or len(columns) > 24:
        return False
    if len(columns) > 1:
        return sum(len(line.values) > 1 for line in data) >= 2 or len(data) > 3
    numbers = [int(v.text) for line in data for v in line.values if v.text.isdigit()]
    contents = len(numbers) == len(data) and numbers == sorted(numbers) and numbers[-1] < 1000
    return not contents


def _header(lines: Sequence[Line], row: int, free: int, columns: Sequence[Column]) -> tuple[int, int]:
    """Indexes of the first caption line and the first header line above the first row; both `row` where none."""
    left = columns[0].x0
    top = row
    while top > free and row - top < 8 and _close(lines[top - 1], lines[top]):
        line = lines[top - 1]
        if line.is_data or not (line.is_years or _is_header(line, left) or _is_heading(lines, top, row, left)):
            break
        top -= 1
    while top < row and not (lines[top].is_years or _is_header(lines[top], left)):
        top += 1
    return _caption(lines, top, free), top


def _caption(lines: Sequence[Line], top: int, free: int) -> int:
    """Index of the first line of up to three short paragraphs above a table: titles, the unit, "... as follows:"."""
    for _ in range(3):
        start = top
        while start > free and lines[start - 1].end + 1 == lines[start].start:
            start -= 1
        if start == top:
            if start == free or not _close(lines[start - 1], lines[start]):
                return top
            start -= 1
            while start > free and lines[start - 1].end + 1 == lines[start].start:
                start -= 1
        if not _is_caption(lines[start:top]):
            return top
        top = start
    return top


def _is_caption(paragraph: Sequence[Line]) -> bool:
    text = " ".join(w.text for line in paragraph for w in line.words)
    if any(figure_cells(line) for line in paragraph) or len(paragraph) > 4 or text[:1].islower():
        return False
    return len(text.split()) <= 45 if text.endswith(":") else len(text.split()) <= 30 and not text.endswith((".", ";"))


def _close(above: Line, below: Line) -> bool:
    return -2 * below.height < below.y0 - above.y1 < 2.6 * below.height


def _is_header(line: Line, left: float) -> bool:
    """Whether a line heads columns: its words stand over them, and it does not run on from the label side."""
    cells = spaced(line)
    over = [c for c in cells if c.x1 > left - 12]
    text = " ".join(c.text for c in cells)
    if not over or figure_cells(line) > 1 or text.endswith((".", ":")):
        return False
    return not any(c.x0 < left - 60 and c.text.count(" ") > 3 for c in over)


def _is_heading(lines: Sequence[Line], top: int, row: int, left: float) -> bool:
    """Whether lines[top - 1] is a heading between the header and the first row ("Current assets:")."""
    line = lines[top - 1]
    return line.words[-1].x1 < left + 4 and len(line.words) < 14 and row - top < 4


def _table(page: Page, lines: Sequence[Line], spans: tuple[int, int, int, int], columns: Sequence[Column]) -> Table:
    caption, top, row, last = spans
    header = [line for line in lines[top:row]]
    while header and not (header[-1].is_years or _is_header(header[-1], columns[0].x0)):
        header.pop()
    first_row = top + len(header)
    heads = column_headers(header, columns)
    above = page.text[lines[max(caption - 3, 0)].start : lines[first_row].start]
    return Table(
        start=lines[caption].start,
        end=lines[last].end,
        header_end=lines[first_row - 1].end if first_row > caption else lines[caption].start,
        rows=tuple(_rows(page, lines[first_row : last + 1], columns)),
        columns=heads,
        unit=unit(above),
    )


def _rows(page: Page, body: Sequence[Line], columns: Sequence[Column]) -> Iterable[Row]:
    pending: list[Line] = []
    for line in body:
        if not line.values:
            pending.append(line)
            continue
        figures = [v for v in line.values if v.x1 > columns[0].x0]
        label = " ".join(w.text for w in line.words if not figures or w.start < figures[0].start)
        begins = _label_start(pending, label)
        for heading in pending[:begins]:
            yield Row(heading.start, heading.end, _said(page, heading), ())
        wrapped = pending[begins:]
        start = wrapped[0].start if wrapped else line.start
        label = " ".join([*(_said(page, w) for w in wrapped), label]).strip()
        values = [""] * len(columns)
        spans: list[tuple[int, int] | None] = [None] * len(columns)
        for value in figures:
            at = nearest(columns, edge_of(value))
            spans[at] = None if values[at] else (value.start, value.end)
            printed = RAISED.sub("", page.text[value.start : value.end]).replace(" %", "%")
            values[at] = f"{values[at]} {printed}".strip()
        yield Row(start, line.end, label, tuple(values), tuple(spans))
        pending = []


def _said(page: Page, line: Line) -> str:
    return RAISED.sub("", page.text[line.start : line.end]).strip()


def _label_start(pending: Sequence[Line], label: str) -> int:
    """Index in `pending` from which its lines belong to the label that follows."""
    index = len(pending)
    while index:
        text = pending[index - 1].words[-1].text
        continues = (
            not label or label[0].islower() or text.endswith((",", "—")) or text in ("and", "of", "for", "the", "to")
        )
        if not continues or text.endswith(":"):
            break
        index -= 1
        label = pending[index].words[0].text
    return index
