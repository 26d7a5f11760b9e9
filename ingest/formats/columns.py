"""Columns of a borderless table: where its figures stand one above the other, and what is printed over them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ingest.formats.page_lines import PERIOD, Cell, Line, spaced, unit

_TITLE = re.compile(
    r"statements?\b|balance sheets?\b|schedule\b"
    r"|^(?:table of contents|part [ivx]+\b|items? \d|notes? \d|form (?:10|20|8)-?[kqf]\b)",
    re.I,
)
"""Of a page or of what stands on it, and no column's."""
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_MOST_YEARS = 3
"""Under one period: more are years to come, of which the first may be a part ("Six Months Ended December 31,")."""
_WIDTHS = {"(": 0.6, ")": 0.6, "%": 1.6, ",": 0.5, ".": 0.5, " ": 0.5, "*": 0.7, "—": 1.8}


class Column(NamedTuple):
    """Where a column of figures stands, in points from the left."""

    x0: float
    x1: float
    edge: float
    """Mean right edge of the digits."""


def columns_of(body: Sequence[Line]) -> list[Column]:
    """Columns by the right edges of their digits; groups that overlap, or touch and share no row, are one column."""
    data = [line for line in body if line.is_data]
    stray = _stray(data)
    figures = sorted(
        (edge_of(v), v.x0, v.x1, row) for row, line in enumerate(data) for v in line.values if v is not stray
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


def edge_of(value: Cell) -> float:
    """Right edge of a figure's last digit: closing marks hang over it."""
    hanging = value.text[len(value.text.rstrip(")%*]")) :]
    if not hanging:
        return value.x1
    return value.x1 - (value.x1 - value.x0) * _width(hanging) / _width(value.text)


def _width(text: str) -> float:
    """In digits of a common typeface."""
    return sum(_WIDTHS.get(character, 1.0) for character in text)


def nearest(columns: Sequence[Column], edge: float) -> int:
    return min(range(len(columns)), key=lambda i: abs(columns[i].edge - edge))


def column_headers(header: Sequence[Line], columns: Sequence[Column]) -> tuple[str, ...]:
    """Text over each column, top to bottom; a cell that spans several columns is given to each."""
    parts: list[list[str]] = [[] for _ in columns]
    rows = _below_title(header, [_over(line, columns) for line in header])
    groups = _year_groups([cell for cells in rows for cell in cells], columns)
    for line, cells in zip(header, rows, strict=True):
        if line.is_years and PERIOD.search(prefix := " ".join(w.text for w in line.label)):
            cells = [cell._replace(text=f"{prefix} {cell.text}") for cell in cells]
        for index, column in enumerate(columns):
            cell = _shared(cells, columns, groups[index]) or _covering(cells, columns, index, column)
            if cell is not None:
                parts[index].append(cell.text)
    return tuple(" ".join(p) for p in parts)


def _below_title(header: Sequence[Line], rows: Sequence[list[Cell]]) -> list[list[Cell]]:
    """Without the table's title: what stands alone above a line of the unit, "Summary of results" "(in millions)"."""
    whole = [[cell.text for cell in spaced(line)] for line in header[:-1]]
    below = max((i for i, cells in enumerate(whole) if len(cells) == 1 and unit(cells[0])), default=0)
    titles = [i < below and len(cells) == 1 and not PERIOD.search(cells[0].text) for i, cells in enumerate(rows)]
    return [[] if title else cells for title, cells in zip(titles, rows, strict=True)]


def _year_groups(cells: Sequence[Cell], columns: Sequence[Column]) -> list[tuple[int, int]]:
    """Of each column the first and last of those beside it whose headings are years on end, itself if there is none."""
    years = {_nearest_middle(columns, cell): int(cell.text) for cell in cells if _YEAR.fullmatch(cell.text)}
    groups: list[tuple[int, int]] = []
    for index in range(len(columns)):
        first = groups[-1][0] if groups else 0
        step = years.get(index, 0) - years.get(index - 1, 0)
        even = index - first < 2 or step == years[index - 1] - years[index - 2]
        if groups and {index - 1, index} <= years.keys() and abs(step) == 1 and even:
            groups[first:] = [(first, index)] * (index - first + 1)
        else:
            groups.append((index, index))
    return groups


def _shared(cells: Sequence[Cell], columns: Sequence[Column], group: tuple[int, int]) -> Cell | None:
    """A period without its year that is printed once over several years, wherever over them it stands."""
    first, last = group
    over = [c for c in cells if first <= _nearest_middle(columns, c) <= last] if 0 < last - first < _MOST_YEARS else []
    if len(over) != 1 or not PERIOD.search(over[0].text) or _YEAR.search(over[0].text):
        return None
    return over[0]


def _over(line: Line, columns: Sequence[Column]) -> list[Cell]:
    """Header cells that stand over the columns; words are kept apart where each has a column of its own."""
    left = columns[0].x0 - 12
    if line.is_years:
        return list(line.values)
    cells = spaced(line)
    if len(cells) == len(columns) > 1 and cells[-1].x1 > columns[-1].x0 - 60 and cells[0].x1 > left - 48:
        return cells
    if len(cells) == 1 and _is_title(cells[0].text):
        return []
    return [c for c in cells if c.x1 > left and not unit(c.text) and not _TITLE.search(c.text)]


def _is_title(text: str) -> bool:
    """In capitals, as sections are headed: "SEGMENT RESULTS OF OPERATIONS"."""
    return text.isupper() and text.count(" ") > 1 and not PERIOD.search(text)


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
    return off < (0.3 if PERIOD.search(cell.text) else 0.15) * width


def _spanning(cells: Sequence[Cell], columns: Sequence[Column], middle: float) -> Cell | None:
    """A header centred over a group of columns that reach beyond it on both sides."""
    middles = [(c.x0 + c.x1) / 2 for c in cells]
    nearest = min(range(len(cells)), key=lambda i: abs(middles[i] - middle))
    apart = min(abs(middles[nearest] - m) for i, m in enumerate(middles) if i != nearest)
    grouped = len(columns) / len(cells) >= 1.9
    return cells[nearest] if grouped and abs(middles[nearest] - middle) <= 0.62 * apart else None
