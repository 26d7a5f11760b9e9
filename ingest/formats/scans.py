"""Pages whose text is a picture: which they are, and what is read from the picture in place of a text layer."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from app.types import Box, OcrMode, Page
from ingest.formats.layout import Token, lay_out
from ingest.formats.ocr import Engine, OcrFailed, Read, find_engine
from ingest.formats.page_text import clean, printed_label, text_quality

_DPI = 300
_MOST_PIXELS = 16_000_000
"""A larger page is read at fewer dots per inch."""
_GARBLED = 0.5
"""Quality of a text layer below which it is read anew."""
_JUDGED = 40
"""Characters from which a text layer's quality is judged."""
_ROWS, _COLUMNS = 32, 24
"""Cells in which a page is looked at; about 25 points each."""
_PREVIEW_PIXELS = 400_000
_PREVIEW_SIDE = 1000
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
_LEAST_SKEW, _MOST_SKEW = 0.3, 6.0
"""Degrees that are put straight."""
_SHARPER = 1.1
"""Than the picture as it is, from which it is put straight."""


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


@dataclass(frozen=True, slots=True)
class _View:
    """How a page as displayed becomes upright (turned by quarters) and straight (turned by its skew); points."""

    width: float
    height: float
    """Of the page as displayed."""
    turn: int = 0
    """Degrees counterclockwise: 0, 90, 180 or 270."""
    skew: float = 0.0
    """Degrees counterclockwise, after the turn and about the middle; the page stays as large as it is."""

    @property
    def size(self) -> tuple[float, float]:
        return (self.width, self.height) if self.turn % 180 == 0 else (self.height, self.width)

    def straight(self, token: Token) -> Token:
        """Where a word of the page as displayed comes to stand."""
        return Token(*self._skewed(self._turned(token[:4]), self.skew), token.text)

    def displayed(self, box: Box) -> Box:
        """Where the page as displayed shows what is upright and straight."""
        back = _View(*self.size, (360 - self.turn) % 360)
        x0, y0, x1, y1 = back._turned(self._skewed(box, -self.skew))
        x0, x1 = max(0.0, x0), min(self.width, x1)
        y0, y1 = max(0.0, y0), min(self.height, y1)
        return round(x0, 1), round(y0, 1), round(x1, 1), round(y1, 1)

    def _turned(self, box: Box) -> Box:
        x0, y0, x1, y1 = box
        if self.turn == 90:
            return y0, self.width - x1, y1, self.width - x0
        if self.turn == 180:
            return self.width - x1, self.height - y1, self.width - x0, self.height - y0
        if self.turn == 270:
            return self.height - y1, x0, self.height - y0, x1
        return box

    def _skewed(self, box: Box, degrees: float) -> Box:
        """The box around the upright page's `box` after it was turned counterclockwise about the middle."""
        if not degrees:
            return box
        x0, y0, x1, y1 = box
        middle, centre = self.size[0] / 2, self.size[1] / 2
        sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
        dx, dy = (x0 + x1) / 2 - middle, (y0 + y1) / 2 - centre
        x, y = middle + dx * cos + dy * sin, centre - dx * sin + dy * cos
        across = ((x1 - x0) * cos + (y1 - y0) * abs(sin)) / 2
        down = ((x1 - x0) * abs(sin) + (y1 - y0) * cos) / 2
        return x - across, y - down, x + across, y + down


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
    y, x = np.nonzero(_ink(grey))
    cells = y * _ROWS // grey.shape[0] * _COLUMNS + x * _COLUMNS // grey.shape[1]
    return np.bincount(cells, minlength=_ROWS * _COLUMNS).reshape(_ROWS, _COLUMNS) > _SPECKS


def _ink(grey: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """What differs from the commonest grey, which is the paper's."""
    paper = np.bincount(grey.ravel()).argmax()
    inked: npt.NDArray[np.bool_] = np.abs(grey - paper) > _CONTRAST
    return inked


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
    view, lines = _lines(picture, engine, scale, _View(page.width, page.height), len(page.words) >= _UPRIGHT)
    if not lines:
        return None
    top = min(token.y0 for token in lines[0])
    laid = [[view.straight(token) for token in line] for line in kept]
    above, below = ([line for line in laid if (line[0].y0 < top) is first] for first in (True, False))
    text, words = lay_out([*above, *lines, *below])
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


def _lines(
    picture: Image.Image, engine: Engine, scale: float, view: _View, upright: bool
) -> tuple[_View, list[list[Token]]]:
    """The lines in reading order, and the view in which they are; of doubtful orientations, the one that reads best."""
    turn, sure = (0, 0.0) if upright else engine.turn(picture)
    best: tuple[_View, list[list[Read]]] = (view, [])
    for each in (turn,) if not turn or sure >= _SURE_TURN else (turn, 0):
        turned = picture.rotate(each, expand=True) if each else picture
        skew = _skew(turned)
        if skew:
            turned = turned.rotate(skew, Image.Resampling.BICUBIC, fillcolor=255)
        lines = _grouped(engine.words(turned, round(scale * 72)))
        if _worth(lines) > _worth(best[1]):
            best = replace(view, turn=each, skew=skew), lines
    return best[0], [[_scaled(word, scale) for word in line] for line in best[1]]


def _grouped(words: Sequence[Read]) -> list[list[Read]]:
    groups = (list(group) for _, group in groupby(words, lambda word: word.line))
    return [line for group in groups if (line := _without_noise(group))]


def _without_noise(line: Sequence[Read]) -> list[Read]:
    words = [word._replace(text=text) for word in line if (text := clean(word.text)) and not _is_noise(word)]
    return words if words and fmean(word.confidence for word in words) >= _LEAST_LINE else []


def _is_noise(word: Read) -> bool:
    return word.confidence < _LEAST_WORD or (word.confidence < 90 and _RULES.issuperset(word.text))


def _worth(lines: Sequence[Sequence[Read]]) -> float:
    return sum(word.confidence * len(word.text) for line in lines for word in line)


def _skew(picture: Image.Image) -> float:
    """Degrees by which the lines of an upright picture fall to the right; 0 where it is too little to matter.

    The angle at which rows of ink stand out sharpest from the rows between them (Postl, 1986: the sum of squared
    differences between neighbouring rows of the projection profile).
    """
    small = picture.copy()
    small.thumbnail((_PREVIEW_SIDE, _PREVIEW_SIDE))
    y, x = np.nonzero(_ink(np.asarray(small, np.int16)))

    def sharpness(degrees: float) -> float:
        rows = np.round(y - x * math.tan(math.radians(degrees))).astype(np.int64)
        profile = np.bincount(rows - rows.min()) if len(rows) else np.zeros(1)
        return float((np.diff(profile) ** 2).sum())

    coarse = max(np.arange(-_MOST_SKEW, _MOST_SKEW + 0.1, 0.5), key=sharpness)
    skew = float(max(np.arange(coarse - 0.4, coarse + 0.5, 0.1), key=sharpness))
    return skew if abs(skew) >= _LEAST_SKEW and sharpness(skew) > _SHARPER * sharpness(0.0) else 0.0


def _scaled(word: Read, scale: float) -> Token:
    return Token(word.x0 / scale, word.y0 / scale, word.x1 / scale, word.y1 / scale, word.text)
