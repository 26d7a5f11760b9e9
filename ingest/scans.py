"""Pages whose text is a picture: which they are, and what is read from the picture in place of a text layer."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean, median
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from app.types import Box, OcrMode, Page
from ingest.layout import Token, lay_out
from ingest.ocr import Engine, OcrFailed, Read, find_engine
from ingest.page_text import clean, printed_label, text_quality

_DPI = 200
_MOST_PIXELS = 16_000_000
"""A larger page is read at fewer dots per inch."""
_GARBLED = 0.5
"""Quality of a text layer below which it is read anew."""
_JUDGED = 40
"""Characters from which a text layer's quality is judged."""
_ROWS, _COLUMNS = 32, 24
"""Cells in which a page is looked at; about 25 points each."""
_PREVIEW_PIXELS = 400_000
_CONTRAST = 60
"""Of 255 grey levels, by which ink differs from paper."""
_SPECKS = 3
"""Pixels of ink that a blank cell may show."""
_PICTURED = 0.04
"""Share of a page's cells that show a picture and no word, from which the picture is read."""
_LEAST_WORD, _LEAST_LINE = 30.0, 55.0
"""Confidence below which a word, or a line on average, is noise."""
_SURE_TURN = 10.0
"""Confidence from which a page's orientation is believed unread."""
_UPRIGHT = 30
"""Words of a text layer from which a page is taken to be upright."""
_RULES = frozenset("|¦_~—-=\\/[]{}‘’'`.,:;")
"""What rules and specks are taken for."""
_LEAST_SKEW = 0.004
"""Radians."""


@dataclass(frozen=True, slots=True)
class Ocr:
    """Which pages of a file are read as pictures, and who is told how many of them are done, of how many."""

    mode: OcrMode = "auto"
    progress: Callable[[int, int], None] = lambda done, of: None


AUTO = Ocr()


@dataclass(frozen=True, slots=True)
class Scans:
    """The pages of a file after its pictures of text have been read."""

    pages: tuple[Page, ...]
    """Upright and straight, as a reader would turn them."""
    displayed: dict[int, Page]
    """By number, the pages that were read: the same text, its words where the file as it is shows them."""
    unread: tuple[int, ...]
    """Numbers of the pages that should have been read and were not: no engine, or it failed."""


def read_scans(document: Any, pages: Sequence[Page], ocr: Ocr) -> Scans:
    """`document` is pdfwords', `pages` what its text layers gave."""
    wanted = [page for page in pages if _wanted(document[page.number - 1], page, ocr.mode)]
    engine = find_engine() if wanted else None
    if engine is None:
        return Scans(tuple(pages), {}, tuple(page.number for page in wanted))
    read, displayed, unread = list(pages), {}, []
    for done, page in enumerate(wanted):
        ocr.progress(done, len(wanted))
        try:
            found = _read(document._pdf[page.number - 1], page, engine, replaces=ocr.mode == "force" or _garbled(page))
        except (RuntimeError, OcrFailed):
            unread.append(page.number)
            continue
        if found:
            read[page.number - 1], displayed[page.number] = found
    if wanted:
        ocr.progress(len(wanted), len(wanted))
    return Scans(tuple(read), displayed, tuple(unread))


def _wanted(pdf_page: Any, page: Page, mode: OcrMode) -> bool:
    if mode == "off":
        return False
    if mode == "force" or _garbled(page):
        return True
    try:
        blank = ~_cells([word.box for word in page.words], page)
        pictured = _cells([picture["bbox"] for picture in pdf_page.get_images(rotated=True)], page) & blank
        if page.words and pictured.mean() < _PICTURED:
            return False
        inked = _inked(pdf_page.parent._pdf[page.number - 1])
    except (RuntimeError, ValueError):
        return False
    return bool((pictured & inked).mean() >= _PICTURED if page.words else inked.any())


def _garbled(page: Page) -> bool:
    return len(page.text) >= _JUDGED and text_quality(page.text) < _GARBLED


def _cells(boxes: Sequence[Box], page: Page) -> npt.NDArray[np.bool_]:
    """Shape (_ROWS, _COLUMNS): which cells of the page the boxes touch."""
    cells = np.zeros((_ROWS, _COLUMNS), bool)
    across, down = _COLUMNS / max(page.width, 1.0), _ROWS / max(page.height, 1.0)
    for x0, y0, x1, y1 in boxes:
        rows = slice(max(0, math.floor(y0 * down)), max(0, math.ceil(y1 * down)))
        cells[rows, max(0, math.floor(x0 * across)) : max(0, math.ceil(x1 * across))] = True
    return cells


def _inked(pdf_page: Any) -> npt.NDArray[np.bool_]:
    """Shape (_ROWS, _COLUMNS): which cells show anything but paper. Raises RuntimeError."""
    grey = np.asarray(_picture(pdf_page, _PREVIEW_PIXELS)[0], np.int16)
    paper = np.bincount(grey.ravel()).argmax()
    y, x = np.nonzero(np.abs(grey - paper) > _CONTRAST)
    cells = y * _ROWS // grey.shape[0] * _COLUMNS + x * _COLUMNS // grey.shape[1]
    return np.bincount(cells, minlength=_ROWS * _COLUMNS).reshape(_ROWS, _COLUMNS) > _SPECKS


def _picture(pdf_page: Any, most_pixels: int) -> tuple[Image.Image, float]:
    """The page as displayed, in grey, and its pixels per point. Raises RuntimeError."""
    width, height = pdf_page.get_size()
    scale = min(_DPI / 72, (most_pixels / max(width * height, 1.0)) ** 0.5)
    picture: Image.Image = pdf_page.render(scale=scale, grayscale=True).to_pil()
    return picture.convert("L"), scale


def _read(pdf_page: Any, page: Page, engine: Engine, *, replaces: bool) -> tuple[Page, Page] | None:
    """The page upright and as displayed; None where nothing was read that is worth keeping.

    What a sound text layer holds is blanked out of the picture first, so that only the rest is read, and kept.
    Raises RuntimeError and OcrFailed.
    """
    picture, scale = _picture(pdf_page, _MOST_PIXELS)
    kept = [] if replaces else _lines_of(page)
    draw = ImageDraw.Draw(picture)
    for token in (token for line in kept for token in line):
        draw.rectangle([each * scale for each in token[:4]], fill=255)
    upright = sum(map(len, kept)) >= _UPRIGHT
    turn, lines = _lines(picture, engine, round(scale * 72), upright)
    if not lines:
        return None
    view = _View(page.width, page.height, turn, _skew(lines, picture.width))
    read = [[view.straight(_scaled(word, scale)) for word in line] for line in lines]
    top = min(token.y0 for token in read[0])
    laid = [[view.straight(view.turned(token)) for token in line] for line in kept]
    text, words = lay_out(
        [*(line for line in laid if line[0].y0 < top), *read, *(line for line in laid if line[0].y0 >= top)],
        view.size[0],
    )
    if replaces and page.text and text_quality(text) < text_quality(page.text):
        return None
    label = page.label or printed_label(text)
    label = label if label != str(page.number) else None
    read_page = Page(page.number, text, words, *view.size, label, ocr=True)
    shown = tuple(replace(word, box=view.displayed(word.box)) for word in words)
    return read_page, replace(read_page, words=shown, width=page.width, height=page.height)


def _lines_of(page: Page) -> list[list[Token]]:
    """A text layer's words by the lines of its text."""
    lines: list[list[Token]] = []
    end = -1
    for word in page.words:
        if end < 0 or "\n" in page.text[end : word.start]:
            lines.append([])
        lines[-1].append(Token(*word.box, page.text[word.start : word.end]))
        end = word.end
    return lines


def _lines(picture: Image.Image, engine: Engine, dpi: int, upright: bool) -> tuple[int, list[list[Read]]]:
    """How the picture was turned, and its lines in reading order; of doubtful orientations, the one that reads best."""
    turn, sure = (0, 0.0) if upright else engine.turn(picture)
    best: tuple[int, list[list[Read]]] = (0, [])
    for each in (turn,) if not turn or sure >= _SURE_TURN else (turn, 0):
        words = engine.words(picture.rotate(each, expand=True) if each else picture, dpi)
        lines = [line for _, group in groupby(words, lambda word: word.line) if (line := _without_noise([*group]))]
        if _worth(lines) > _worth(best[1]):
            best = each, lines
    return best


def _without_noise(line: Sequence[Read]) -> list[Read]:
    words = [word._replace(text=text) for word in line if (text := clean(word.text)) and not _is_noise(word)]
    return words if words and fmean(word.confidence for word in words) >= _LEAST_LINE else []


def _is_noise(word: Read) -> bool:
    return word.confidence < _LEAST_WORD or (word.confidence < 90 and _RULES.issuperset(word.text))


def _worth(lines: Sequence[Sequence[Read]]) -> float:
    return sum(word.confidence * len(word.text) for line in lines for word in line)


def _skew(lines: Sequence[Sequence[Read]], width: int) -> float:
    """Angle of the lines in radians, clockwise; 0 where it is too small to matter."""
    slopes = [
        (last.y0 + last.y1 - first.y0 - first.y1) / (last.x0 + last.x1 - first.x0 - first.x1)
        for first, *_, last in (line for line in lines if len(line) > 1)
        if last.x0 - first.x1 > 0.1 * width
    ]
    skew = math.atan(median(slopes)) if slopes else 0.0
    return skew if abs(skew) >= _LEAST_SKEW else 0.0


def _scaled(word: Read, scale: float) -> Token:
    return Token(word.x0 / scale, word.y0 / scale, word.x1 / scale, word.y1 / scale, word.text)


@dataclass(frozen=True, slots=True)
class _View:
    """How a page as displayed becomes upright (turned by quarters) and straight (turned by its skew); points."""

    width: float
    height: float
    """Of the page as displayed."""
    turn: int
    """Degrees counterclockwise: 0, 90, 180 or 270."""
    skew: float
    """Radians clockwise."""

    @property
    def size(self) -> tuple[float, float]:
        return (self.width, self.height) if self.turn % 180 == 0 else (self.height, self.width)

    def turned(self, token: Token) -> Token:
        x0, y0, x1, y1, text = token
        if self.turn == 90:
            return Token(y0, self.width - x1, y1, self.width - x0, text)
        if self.turn == 180:
            return Token(self.width - x1, self.height - y1, self.width - x0, self.height - y0, text)
        if self.turn == 270:
            return Token(self.height - y1, x0, self.height - y0, x1, text)
        return token

    def straight(self, token: Token) -> Token:
        """An upright word, straight: of a slanted word's box what is due to the slant is taken off."""
        if not self.skew:
            return token
        x, y, width, height = self._rotated(token[:4], -self.skew)
        sin, cos = abs(math.sin(self.skew)), math.cos(self.skew)
        flat = max((height * cos - width * sin) / (cos * cos - sin * sin), 0.4 * height)
        return Token(x - width / 2, y - flat / 2, x + width / 2, y + flat / 2, token.text)

    def displayed(self, box: Box) -> Box:
        """Where the page as displayed shows what is upright and straight."""
        if self.skew:
            x, y, width, height = self._rotated(box, self.skew)
            high = height + width * abs(math.sin(self.skew))
            box = (x - width / 2, y - high / 2, x + width / 2, y + high / 2)
        back = _View(*self.size, (360 - self.turn) % 360, 0.0)
        x0, y0, x1, y1, _ = back.turned(Token(*box, ""))
        x0, x1 = max(0.0, x0), min(self.width, x1)
        y0, y1 = max(0.0, y0), min(self.height, y1)
        return round(x0, 1), round(y0, 1), round(x1, 1), round(y1, 1)

    def _rotated(self, box: Sequence[float], angle: float) -> tuple[float, float, float, float]:
        """Centre after a clockwise rotation about the upright page's centre, and the box's width and height."""
        x0, y0, x1, y1 = box
        middle, centre = self.size[0] / 2, self.size[1] / 2
        dx, dy = (x0 + x1) / 2 - middle, (y0 + y1) / 2 - centre
        sin, cos = math.sin(angle), math.cos(angle)
        return middle + dx * cos - dy * sin, centre + dx * sin + dy * cos, x1 - x0, y1 - y0
