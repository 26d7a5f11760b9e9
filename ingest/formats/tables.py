"""Borderless tables of figures, found from the lines of a page and the places of its words."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from app.raised import RAISED
from app.types import Page, Word

_NUMBER = re.compile(
    r"[$€£¥]?[(\[]?[$€£¥+\-–−]?\d[\d,]*(?:\.\d+)?[)\]]?[%x]?[)\]]?(?:\([a-z0-9]{1,2}\))?\*?"
    r"|[$€£¥]?\(?\.\d+\)?%?|[—–-]+%?|\(?N/?M\)?|[Nn]/?[Aa]|[Nn]il|\*"
)
_YEAR = re.compile(r"(?:19|20)\d\d(?:\(\w\)|\*)?")
_FOOTNOTE = re.compile(r"\(?[a-z0-9]{1,2}\)(?:\([a-z0-9]\))*")
_CURRENCIES = ("$", "€", "£", "¥")
_SUFFIXES = frozenset({"%", "%)", "years", "year", "months", "days", "bps", "pts", "million", "billion", "pp"})
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_PERIOD = re.compile(
    rf"(?:{_MONTHS})\.?\s+\d|\b(?:19|20)\d\d\b|\b(?:months?|weeks?|quarters?|years?|fiscal)\b.*\bended\b|^Q[1-4]\b",
    re.I,
)
_DAY_ALONE = re.compile(rf"(?:{_MONTHS})\.?\s+\d{{1,2}},?(?!\s*(?:19|20)\d\d)", re.I)
_UNIT = re.compile(
    r"\(?[^().;:\n]*?\b((?:(?:u\.?s\.? )?(?:dollars?|amounts?|shares|tabular \w+|\$)[\w $]*? )?(?:in )?"
    r"(?:thousands|millions|billions)(?:[^)\n]*?(?:except|unless)[^)\n]*)?)",
    re.I,
)
_TITLE = re.compile(r"statements?\b|balance sheets?\b|schedule\b|^table of contents", re.I)
_WIDTHS = {"(": 0.6, ")": 0.6, "%": 1.6, ",": 0.5, ".": 0.5, " ": 0.5, "*": 0.7, "—": 1.8}
_WIDE = 0.65
"""Blank space between two columns, in line heights, from which it is more than a word space."""


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


class Cell(NamedTuple):
    """A word or several that belong together; offsets in the page's text, points from the left."""

    start: int
    end: int
    x0: float
    x1: float
    text: str


@dataclass(slots=True)
class Line:
    """One line of a page with its words, and the figures that stand at its end."""

    start: int
    end: int
    y0: float
    y1: float
    words: list[Cell]
    values: list[Cell]
    completes_dates: bool = False
    """Whether its years complete days that stand in lines above: "December 31, June 30," over "2022 2022"."""

    @property
    def height(self) -> float:
        return max(self.y1 - self.y0, 4.0)

    @property
    def label(self) -> list[Cell]:
        return [w for w in self.words if not self.values or w.start < self.values[0].start]

    @property
    def is_years(self) -> bool:
        if not self.values or not all(_YEAR.fullmatch(v.text) for v in self.values):
            return False
        if self.completes_dates:
            return True
        return len({v.text[:4] for v in self.values}) > 1 or _heads(self.label)

    @property
    def is_data(self) -> bool:
        if not self.values or self.is_years:
            return False
        if len(self.values) > 1:
            return True
        label = self.label
        return bool(label) and self.values[0].x0 - label[-1].x1 > 1.5 * self.height


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
        columns = _columns(body)
        if columns and _is_table(body, columns):
            first, top = _header(lines, index, free, columns)
            found.append(_table(page, lines, (first, top, index, last), columns))
            free = last + 1
        index = last + 1
    return found


def page_lines(page: Page) -> list[Line]:
    """The page's lines with the figures at their ends."""
    lines: list[Line] = []
    words = iter(page.words)
    word = next(words, None)
    position = 0
    for text in page.text.split("\n"):
        start, end = position, position + len(text)
        position = end + 1
        cells: list[Cell] = []
        y0, y1 = [], []
        while word is not None and word.end <= end:
            if cell := _cell(word, page.text[word.start : word.end]):
                cells.append(cell)
                y0.append(word.box[1])
                y1.append(word.box[3])
            word = next(words, None)
        if cells:
            middle = len(y0) // 2
            top, bottom = sorted(y0)[middle], sorted(y1)[middle]
            values = _figures(cells, bottom - top)
            lines.append(Line(start, end, top, bottom, cells, values, _completes(values, lines[-2:])))
    return lines


def _cell(word: Word, text: str) -> Cell | None:
    """The word without raised marks; None where it is nothing else."""
    plain = RAISED.sub("", text)
    end = word.start + len(text.removesuffix(RAISED.findall(text)[-1])) if plain != text else word.end
    return Cell(word.start, end, word.box[0], word.box[2], plain) if plain else None


def _completes(values: Sequence[Cell], above: Sequence[Line]) -> bool:
    days = sum(len(_DAY_ALONE.findall(" ".join(w.text for w in line.words))) for line in above)
    return 1 < len(values) <= days and all(_YEAR.fullmatch(v.text) for v in values)


def _figures(words: Sequence[Cell], height: float) -> list[Cell]:
    """Figures at the end of a line that wide gaps set apart from its label and from each other."""
    wide = _WIDE * max(height, 4.0)
    figures: list[Cell] = []
    index = len(words) - 1
    while index >= 0:
        if _marks_footnote(words, index):
            index -= 1
            continue
        number = index - (words[index].text in _SUFFIXES)
        if number < 0 or not _NUMBER.fullmatch(words[number].text):
            break
        first = number - (number > 0 and words[number - 1].text in _CURRENCIES)
        if first and first == number and words[first].x0 - words[first - 1].x1 < wide:
            break
        text = " ".join(w.text for w in words[first : number + 1])
        figures.append(Cell(words[first].start, words[index].end, words[number].x0, words[number].x1, text))
        index = first - 1
    figures.reverse()
    if len(figures) > 1 and figures[0].start == words[0].start and _YEAR.fullmatch(figures[0].text):
        years = sum(_YEAR.fullmatch(f.text) is not None for f in figures)
        return figures[1:] if years == 1 else figures
    return figures


def _marks_footnote(words: Sequence[Cell], index: int) -> bool:
    """Whether a word is a reference such as (a) or (1) set close behind a figure."""
    if not index or not _FOOTNOTE.fullmatch(words[index].text):
        return False
    return words[index].x0 - words[index - 1].x1 < 3 and words[index - 1].text[-1] in "0123456789)%"


def _heads(label: Sequence[Cell]) -> bool:
    """Whether the words left of a row of years are a header's: nothing, a unit or the start of a date."""
    text = " ".join(w.text for w in label)
    return not text or (
        len(label) <= 8 and bool(_UNIT.match(text) or _PERIOD.search(text) or text.endswith((",", ")")))
    )


def _last_row(lines: Sequence[Line], first: int) -> int:
    """Index of the last line of figures of the table that starts at `first`."""
    last = first
    for index in range(first + 1, len(lines)):
        line, above = lines[index], lines[index - 1]
        if line.y0 - above.y1 > 3.2 * line.height or line.y1 < above.y0 or line.is_years:
            break
        if line.is_data:
            last = index
        elif index - last > 5 or not _is_label(line, lines[first : last + 1]):
            break
    return last


def _is_label(line: Line, body: Sequence[Line]) -> bool:
    """Whether a line without figures may stand between rows: a heading or the start of a long label."""
    if line.values:
        return True
    left = median(row.values[0].x0 for row in body if row.is_data)
    return line.words[-1].x1 < left + 4 or (len(line.words) <= 5 and not _header_like(line, left))


def _header_like(line: Line, left: float) -> bool:
    text = " ".join(w.text for w in line.words)
    return line.words[0].x0 > left - 40 and bool(_PERIOD.search(text))


class Column(NamedTuple):
    """Where a column of figures stands, in points from the left."""

    x0: float
    x1: float
    edge: float
    """Mean right edge of the digits."""


def _columns(body: Sequence[Line]) -> list[Column]:
    """Columns by the right edges of their digits; groups that overlap, or touch and share no row, are one column."""
    data = [line for line in body if line.is_data]
    stray = _stray(data)
    figures = sorted(
        (_edge(v), v.x0, v.x1, row) for row, line in enumerate(data) for v in line.values if v is not stray
    )
    groups: list[list[tuple[float, float, float, int]]] = []
    for figure in figures:
        if groups and figure[0] - groups[-1][-1][0] <= 5.0:
            groups[-1].append(figure)
        else:
            groups.append([figure])
    merged: list[list[tuple[float, float, float, int]]] = []
    for group in groups:
        overlap = max(f[2] for f in merged[-1]) - min(f[1] for f in group) if merged else -1e9
        apart = merged and {f[3] for f in merged[-1]}.isdisjoint(f[3] for f in group)
        if overlap > (-3 if apart else 2):
            merged[-1] += group
        else:
            merged.append(group)
    return [Column(min(f[1] for f in g), max(f[2] for f in g), sum(f[0] for f in g) / len(g)) for g in merged]


def _stray(data: Sequence[Line]) -> Cell | None:
    """A figure that ends a label on a line of its own ("... of $76, and / $32 (2,186) 264"), left of all columns."""
    left = min(data, key=lambda line: line.values[0].x1)
    others = min((v.x0 for line in data for v in line.values if v is not left.values[0]), default=0.0)
    alone = left.values[0].start == left.words[0].start and left.values[0].x1 < others - 2 * left.height
    return left.values[0] if alone and len(data) > 2 else None


def _edge(value: Cell) -> float:
    """Right edge of a figure's last digit: closing marks hang over it."""
    hanging = value.text[len(value.text.rstrip(")%*]")) :]
    if not hanging:
        return value.x1
    return value.x1 - (value.x1 - value.x0) * _width(hanging) / _width(value.text)


def _width(text: str) -> float:
    """In digits of a common typeface."""
    return sum(_WIDTHS.get(character, 1.0) for character in text)


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
    if any(_figure_cells(line) for line in paragraph) or len(paragraph) > 4 or text[:1].islower():
        return False
    return len(text.split()) <= 45 if text.endswith(":") else len(text.split()) <= 30 and not text.endswith((".", ";"))


def _close(above: Line, below: Line) -> bool:
    return -2 * below.height < below.y0 - above.y1 < 2.6 * below.height


def _is_header(line: Line, left: float) -> bool:
    """Whether a line heads columns: its words stand over them, and it does not run on from the label side."""
    cells = spaced(line)
    over = [c for c in cells if c.x1 > left - 12]
    text = " ".join(c.text for c in cells)
    if not over or _figure_cells(line) > 1 or text.endswith((".", ":")):
        return False
    return not any(c.x0 < left - 60 and c.text.count(" ") > 3 for c in over)


def _figure_cells(line: Line) -> int:
    return sum(bool(_NUMBER.fullmatch(c.text)) and not _YEAR.fullmatch(c.text) for c in spaced(line))


def _is_heading(lines: Sequence[Line], top: int, row: int, left: float) -> bool:
    """Whether lines[top - 1] is a heading between the header and the first row ("Current assets:")."""
    line = lines[top - 1]
    return line.words[-1].x1 < left + 4 and len(line.words) < 14 and row - top < 4


def spaced(line: Line) -> list[Cell]:
    """A line's words joined where only a word space parts them."""
    cells: list[Cell] = []
    for word in line.words:
        if cells and word.x0 - cells[-1].x1 < _WIDE * line.height:
            last = cells[-1]
            cells[-1] = Cell(last.start, word.end, last.x0, word.x1, f"{last.text} {word.text}")
        else:
            cells.append(word)
    return cells


def _table(page: Page, lines: Sequence[Line], spans: tuple[int, int, int, int], columns: Sequence[Column]) -> Table:
    caption, top, row, last = spans
    header = [line for line in lines[top:row]]
    while header and not (header[-1].is_years or _is_header(header[-1], columns[0].x0)):
        header.pop()
    first_row = top + len(header)
    heads = _column_headers(header, columns)
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
            at = _nearest(columns, _edge(value))
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


def _nearest(columns: Sequence[Column], edge: float) -> int:
    return min(range(len(columns)), key=lambda i: abs(columns[i].edge - edge))


def _column_headers(header: Sequence[Line], columns: Sequence[Column]) -> tuple[str, ...]:
    """Text over each column, top to bottom; a cell that spans several columns is given to each."""
    parts: list[list[str]] = [[] for _ in columns]
    for line in header:
        cells = _over(line, columns)
        if line.is_years and _PERIOD.search(prefix := " ".join(w.text for w in line.label)):
            cells = [cell._replace(text=f"{prefix} {cell.text}") for cell in cells]
        for index, column in enumerate(columns):
            cell = _covering(cells, columns, index, column)
            if cell is not None:
                parts[index].append(cell.text)
    return tuple(" ".join(p) for p in parts)


def _over(line: Line, columns: Sequence[Column]) -> list[Cell]:
    """Header cells that stand over the columns; words are kept apart where each has a column of its own."""
    left = columns[0].x0 - 12
    if line.is_years:
        return list(line.values)
    cells = spaced(line)
    if len(cells) == len(columns) > 1 and cells[-1].x1 > columns[-1].x0 - 60 and cells[0].x1 > left - 48:
        return cells
    return [c for c in cells if c.x1 > left and not unit(c.text) and not _TITLE.search(c.text)]


def _covering(cells: Sequence[Cell], columns: Sequence[Column], index: int, column: Column) -> Cell | None:
    if not cells:
        return None
    middle = (column.x0 + column.x1) / 2
    if len(cells) == 1 and len(columns) > 1:
        return cells[0] if _spans_all(cells[0], columns) or _touches(cells[0], column) else None
    if len(cells) >= len(columns):
        best = min(cells, key=lambda c: abs((c.x0 + c.x1) / 2 - middle))
        return best if _nearest_middle(columns, best) == index else None
    inside = [c for c in cells if _touches(c, column)]
    if inside:
        return min(inside, key=lambda c: abs((c.x0 + c.x1) / 2 - middle))
    return _spanning(cells, columns, middle)


def _nearest_middle(columns: Sequence[Column], cell: Cell) -> int:
    middle = (cell.x0 + cell.x1) / 2
    return min(range(len(columns)), key=lambda i: abs((columns[i].x0 + columns[i].x1) / 2 - middle))


def _touches(cell: Cell, column: Column) -> bool:
    return cell.x0 - 6 <= column.x1 and column.x0 <= cell.x1 + 6


def _spans_all(cell: Cell, columns: Sequence[Column]) -> bool:
    """Whether a cell is centred over all columns together."""
    width = columns[-1].x1 - columns[0].x0
    off = abs(cell.x0 + cell.x1 - columns[0].x0 - columns[-1].x1) / 2
    return off < (0.3 if _PERIOD.search(cell.text) else 0.15) * width


def _spanning(cells: Sequence[Cell], columns: Sequence[Column], middle: float) -> Cell | None:
    """A header centred over a group of columns that reach beyond it on both sides."""
    middles = [(c.x0 + c.x1) / 2 for c in cells]
    nearest = min(range(len(cells)), key=lambda i: abs(middles[i] - middle))
    apart = min(abs(middles[nearest] - m) for i, m in enumerate(middles) if i != nearest)
    grouped = len(columns) / len(cells) >= 1.9
    return cells[nearest] if grouped and abs(middles[nearest] - middle) <= 0.62 * apart else None


def unit(text: str) -> str | None:
    """The unit that a caption or header states, as printed: "in millions, except per share data"."""
    match = _UNIT.search(text)
    return " ".join(match[1].split()).strip(" ,") if match else None
