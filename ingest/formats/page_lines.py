"""Lines of a page with the figures that stand at their ends, by the places of its words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
PERIOD = re.compile(
    rf"(?:{_MONTHS})\.?\s+\d|\b(?:19|20)\d\d\b|\b(?:months?|weeks?|quarters?|years?|fiscal)\b.*\bended\b|^Q[1-4]\b",
    re.I,
)
"""What heads a column: a date, a year or a span that ended."""
_DAY_ALONE = re.compile(rf"(?:{_MONTHS})\.?\s+\d{{1,2}},?(?!\s*(?:19|20)\d\d)", re.I)
_UNIT = re.compile(
    r"\(?[^().;:\n]*?\b((?:(?:u\.?s\.? )?(?:dollars?|amounts?|shares|tabular \w+|\$)[\w $]*? )?(?:in )?"
    r"(?:thousands|millions|billions)(?:[^)\n]*?(?:except|unless)[^)\n]*)?)",
    re.I,
)
_WIDE = 0.65
"""Blank space between two columns, in line heights, from which it is more than a word space."""


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
    return not text or (len(label) <= 8 and bool(_UNIT.match(text) or PERIOD.search(text) or text.endswith((",", ")"))))


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


def figure_cells(line: Line) -> int:
    return sum(bool(_NUMBER.fullmatch(c.text)) and not _YEAR.fullmatch(c.text) for c in spaced(line))


def unit(text: str) -> str | None:
    """The unit that a caption or header states, as printed: "in millions, except per share data"."""
    match = _UNIT.search(text)
    return " ".join(match[1].split()).strip(" ,") if match else None
