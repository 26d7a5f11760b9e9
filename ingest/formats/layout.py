"""Words in content order to lines in reading order: one table row, one line."""

import re
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from app.raised import MARKS
from app.types import Word

_CLOSING = re.compile(r"[)%\]]{1,2}")
_NUMBER_END = re.compile(rf".*[\d{MARKS}]")
_DOTS = ".․·…_"
_LEADER = re.compile(rf"[{_DOTS}]{{4,}}")
_CELL = re.compile(rf"[$€£¥()\d,.%—–\-*/:+{MARKS}]+|n/?[am]|NM|x", re.I)
_CELL_WORDS = 5
_PARAGRAPH_GAP = 0.5
"""Blank space above a line, in line heights, from which a paragraph starts."""


class Token(NamedTuple):
    """A word before it has a place in the page's text; points, origin top left."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str


class _Line:
    """Runs of words that share a baseline."""

    __slots__ = ("runs", "x0", "x1", "y0", "y1")

    def __init__(self, run: list[Token]) -> None:
        self.runs = [run]
        self.x0, self.y0, self.x1, self.y1 = _bounds(run)

    def add(self, run: list[Token]) -> None:
        x0, y0, x1, y1 = _bounds(run)
        self.runs.append(run)
        if y1 - y0 > 0.7 * (self.y1 - self.y0):
            self.y0, self.y1 = min(self.y0, y0), max(self.y1, y1)
        self.x0, self.x1 = min(self.x0, x0), max(self.x1, x1)

    @property
    def short(self) -> bool:
        """No run is as long as a line of prose."""
        return all(len(run) <= _CELL_WORDS for run in self.runs)

    def overlap(self, y0: float, y1: float) -> float:
        """Shared height, as a share of the lower of the two."""
        return (min(self.y1, y1) - max(self.y0, y0)) / max(min(self.y1 - self.y0, y1 - y0), 0.1)

    def free(self, x0: float, x1: float) -> bool:
        return all(x0 >= run[-1].x1 - 1 or x1 <= run[0].x0 + 1 for run in self.runs)


def lay_out(fragments: Sequence[list[Token]]) -> tuple[str, tuple[Word, ...]]:
    """Text of a page and its words; lines end in a newline, paragraphs in two, none at the end.

    `fragments` are runs of words in the order in which the PDF draws them, which is reading order across columns. Only
    runs of one visual line that follow one another, or cells of a table, are put on one line, so columns of prose stay
    apart.
    """
    fragments = [run for run in map(_without_leaders, fragments) if run]
    lines = _in_order(_lines(fragments))
    pieces: list[str] = []
    words: list[Word] = []
    length = 0
    for index, line in enumerate(lines):
        if index:
            gap = "\n\n" if _paragraph(lines[index - 1], line) else "\n"
            pieces.append(gap)
            length += len(gap)
        for position, token in enumerate(_joined(line)):
            if position:
                pieces.append(" ")
                length += 1
            box = (round(token.x0, 1), round(token.y0, 1), round(token.x1, 1), round(token.y1, 1))
            words.append(Word(length, length + len(token.text), box))
            pieces.append(token.text)
            length += len(token.text)
    return "".join(pieces), tuple(words)


def _lines(fragments: Sequence[list[Token]]) -> list[_Line]:
    lines: list[_Line] = []
    cellish = [_cellish(run) for run in fragments]
    short = [len(run) <= _CELL_WORDS for run in fragments]
    for index, run in enumerate(fragments):
        x0, y0, x1, y1 = _bounds(run)
        upright = y1 - y0 < 3 * max(x1 - x0, 8) or len(run) == 1
        if not upright or not lines:
            lines.append(_Line(run))
            continue
        last = lines[-1]
        if x0 >= last.x1 - 2 and last.overlap(y0, y1) >= 0.3:
            last.add(run)
            continue
        near = short[max(index - 1, 0) : index + 2]
        joins = cellish[index] and any(cellish[max(index - 1, 0) : index] + cellish[index + 1 : index + 2])
        joins = joins or all(near)
        home = _home(lines, run, need_short=not cellish[index]) if joins else None
        if home is None:
            lines.append(_Line(run))
        else:
            home.add(run)
    return lines


def _home(lines: Sequence[_Line], run: list[Token], *, need_short: bool) -> _Line | None:
    """The earlier line on whose baseline a table cell stands, if there is room for it."""
    x0, y0, x1, y1 = _bounds(run)
    best, most = None, 0.5
    for line in lines[:-121:-1]:
        overlap = line.overlap(y0, y1)
        if overlap > most and line.free(x0, x1) and not (need_short and not line.short):
            best, most = line, overlap
    return best


def _in_order(lines: list[_Line]) -> list[_Line]:
    """Undo small upward jumps, as where a table's header is drawn cell by cell; jumps to a next column stay."""
    for index in range(1, len(lines)):
        at, line = index, lines[index]
        reach = 6 if line.short else 2
        while at and 0 <= lines[at - 1].y0 + 2 - line.y1 < reach * (line.y1 - line.y0):
            if not (line.short or lines[at - 1].short):
                break
            lines[at] = lines[at - 1]
            at -= 1
        lines[at] = line
    return lines


def _paragraph(above: _Line, below: _Line) -> bool:
    height = max(min(above.y1 - above.y0, below.y1 - below.y0), 1.0)
    return below.y0 - above.y1 > _PARAGRAPH_GAP * height


def _joined(line: _Line) -> list[Token]:
    """A line's words from left to right, closing marks glued to the number they belong to."""
    tokens: list[Token] = []
    for run in sorted(line.runs, key=lambda run: run[0].x0):
        for token in run:
            if tokens and _belongs(tokens[-1], token):
                last = tokens[-1]
                tokens[-1] = Token(
                    last.x0,
                    min(last.y0, token.y0),
                    max(last.x1, token.x1),
                    max(last.y1, token.y1),
                    last.text + token.text,
                )
            else:
                tokens.append(token)
    return tokens


def _belongs(last: Token, token: Token) -> bool:
    gap = token.x0 - last.x1
    if _CLOSING.fullmatch(token.text):
        return gap < 12 and _NUMBER_END.fullmatch(last.text) is not None
    return last.text in ("(", "$(") and gap < 12 and token.text[0].isdigit()


def _without_leaders(run: list[Token]) -> list[Token]:
    """A run without the dots that lead from a label to its value."""
    if not any(token.text[-1] in _DOTS or _LEADER.search(token.text) for token in run):
        return run
    leads = sum(not token.text.strip(_DOTS) for token in run) >= 3
    return [piece for token in run for piece in _pieces(token) if not leads or piece.text.strip(_DOTS)]


def _pieces(token: Token) -> Iterator[Token]:
    """A token's texts before and after a leader, each with its share of the box."""
    width = (token.x1 - token.x0) / len(token.text)
    position = 0
    for text in _LEADER.split(token.text):
        start = token.text.index(text, position)
        position = start + len(text)
        if text:
            yield token._replace(text=text, x0=token.x0 + start * width, x1=token.x0 + position * width)


def _bounds(run: Sequence[Token]) -> tuple[float, float, float, float]:
    if len(run) == 1:
        return run[0][:4]
    return (
        min(t.x0 for t in run),
        median(t.y0 for t in run),
        max(t.x1 for t in run),
        median(t.y1 for t in run),
    )


def _cellish(run: Sequence[Token]) -> bool:
    return len(run) <= _CELL_WORDS and all(_CELL.fullmatch(token.text) for token in run)
