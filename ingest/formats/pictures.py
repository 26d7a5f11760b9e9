"""Charts and photographs of a PDF: where they stand on their pages, and each as an image of its own."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pdfwords

from app.errors import DocumentError
from app.types import Box

_LEAST, _MOST = 0.05, 0.85
"""Share of its page that a picture covers: less is a logo, more a scan or a background."""
_CELL = 12.0
"""Points: what touches or shares a cell of this size belongs together."""
_RULE = 2.0
"""Points; a thinner shape is a rule, or an edge of a frame."""
_BARS = 3
"""Lengths of bars that begin on one line; the shaded cells of a table's row have all the same."""
_SLANTS = 8
"""Slanted lines and curves from which a drawing is a chart; a table has none."""
_WORDS = 0.25
"""Share of a drawn chart's area that words cover at most; of a table they cover more."""
_MARGIN = 14.0
"""Points around a picture that hold its legend and the labels of its axes."""
_DPI = 150
_MOST_PIXELS = 2_000_000
_MOST_SHAPES = 20_000
_open: Callable[[Path], Any] = pdfwords.open


@dataclass(frozen=True, slots=True)
class Request:
    """What a worker process is told about one file."""

    path: Path
    most: int
    """Pictures wanted at most; the first are taken."""


@dataclass(frozen=True, slots=True)
class Picture:
    page: int
    """First is 1."""
    box: Box
    png: bytes


@dataclass(frozen=True, slots=True)
class _Shape:
    box: Box
    image: bool = False
    slants: int = 0
    """Lines that are neither level nor upright, and curves."""


def pictures(request: Request) -> list[Picture]:
    """In the order of pages, and on each from top to bottom. Raises DocumentError where the file is no sound PDF."""
    try:
        with _open(request.path) as document:
            return list(_of_document(document, request.most))
    except (RuntimeError, ValueError, OSError) as error:
        raise DocumentError(f"no pictures can be read: {error}", "damaged") from error


def _of_document(document: Any, most: int) -> Iterator[Picture]:
    found = 0
    for index in range(len(document)):
        try:
            page = document[index]
            boxes = find(_shapes(page), page.rect[2], page.rect[3], [word[:4] for word in _words(page)])
            for box in boxes[: most - found]:
                scale = min(_DPI / 72, (_MOST_PIXELS / _area(box)) ** 0.5)
                yield Picture(index + 1, box, page.render(scale=scale, clip=box, rotated=True, output="png"))
                found += 1
        except (RuntimeError, ValueError):
            continue
        if found >= most:
            return


def _words(page: Any) -> Sequence[Any]:
    words: Sequence[Any] = page.get_text("words", rotated=True)
    return words


def _shapes(page: Any) -> list[_Shape]:
    shapes = [_Shape(tuple(image["bbox"]), image=True) for image in page.get_images(rotated=True)]
    for drawing in page.get_drawings(rotated=True)[:_MOST_SHAPES]:
        shapes += [_Shape(tuple(item[1])) for item in drawing["items"] if item[0] == "re"]
        if slants := sum(map(_is_slant, drawing["items"])):
            shapes.append(_Shape(tuple(drawing["rect"]), slants=slants))
    return shapes


def _is_slant(item: Sequence[Any]) -> bool:
    if item[0] == "l":
        (x0, y0), (x1, y1) = item[1:3]
        return bool(abs(x1 - x0) > _RULE / 2 and abs(y1 - y0) > _RULE / 2)
    return bool(item[0] == "c")


def find(shapes: Sequence[_Shape], width: float, height: float, words: Sequence[Box]) -> list[Box]:
    """Where pictures stand on a page, from top to bottom, with a margin; sizes and boxes in points."""
    page = width * height
    kept = [shape for shape in shapes if _thickness(shape.box) >= _RULE and _area(shape.box) <= _MOST * page]
    found: list[Box] = []
    for group in _groups(kept, width, height):
        box = _bounds([shape.box for shape in group])
        if _LEAST * page <= _area(box) <= _MOST * page and (_photographed(group, box) or _drawn(group, box, words)):
            x0, y0, x1, y1 = box
            widened = (x0 - _MARGIN, y0 - _MARGIN, x1 + _MARGIN, y1 + _MARGIN)
            found.append(_clipped(widened, width, height))
    return sorted(found, key=lambda box: (box[1], box[0]))


def _groups(shapes: Sequence[_Shape], width: float, height: float) -> list[list[_Shape]]:
    """Shapes by the connected area of cells that they touch."""
    rows, columns = math.ceil(height / _CELL), math.ceil(width / _CELL)
    touched = np.zeros((rows + 1, columns + 1), bool)
    cells = [_cells(_clipped(shape.box, width, height)) for shape in shapes]
    for y0, y1, x0, x1 in cells:
        touched[y0 : y1 + 1, x0 : x1 + 1] = True
    area = np.zeros(touched.shape, int)
    count = 0
    for start in zip(*np.nonzero(touched), strict=True):
        if not area[start]:
            count += 1
            _fill(touched, area, start, count)
    groups: list[list[_Shape]] = [[] for _ in range(count)]
    for shape, (y0, _, x0, _) in zip(shapes, cells, strict=True):
        groups[area[y0, x0] - 1].append(shape)
    return groups


def _fill(touched: Any, area: Any, start: tuple[int, int], number: int) -> None:
    waiting = [start]
    area[start] = number
    while waiting:
        y, x = waiting.pop()
        for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            inside = 0 <= near[0] < touched.shape[0] and 0 <= near[1] < touched.shape[1]
            if inside and touched[near] and not area[near]:
                area[near] = number
                waiting.append(near)


def _cells(box: Box) -> tuple[int, int, int, int]:
    x0, y0, x1, y1 = box
    return int(y0 // _CELL), int(y1 // _CELL), int(x0 // _CELL), int(x1 // _CELL)


def _photographed(group: Sequence[_Shape], box: Box) -> bool:
    return sum(_area(shape.box) for shape in group if shape.image) >= _area(box) / 2


def _drawn(group: Sequence[_Shape], box: Box, words: Sequence[Box]) -> bool:
    inside = [word for word in words if _holds(box, word)]
    if sum(map(_area, inside)) > _WORDS * _area(box):
        return False
    if sum(shape.slants for shape in group) >= _SLANTS:
        return True
    rectangles = [shape.box for shape in group if not shape.image and not shape.slants]
    upright: defaultdict[int, set[int]] = defaultdict(set)
    level: defaultdict[int, set[int]] = defaultdict(set)
    for x0, y0, x1, y1 in rectangles:
        upright[round(y1)].add(round(y1 - y0))
        if not any(_holds((x0, y0, x1, y1), word) for word in inside):  # a table's labels begin on one line, too
            level[round(x0)].add(round(x1 - x0))
    return any(len(lengths) >= _BARS for lengths in (*upright.values(), *level.values()))


def _holds(box: Box, word: Box) -> bool:
    """Whether the word's middle is in the box."""
    x, y = (word[0] + word[2]) / 2, (word[1] + word[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _bounds(boxes: Sequence[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def _clipped(box: Box, width: float, height: float) -> Box:
    x0, x1 = (round(min(max(x, 0.0), width), 1) for x in (box[0], box[2]))
    y0, y1 = (round(min(max(y, 0.0), height), 1) for y in (box[1], box[3]))
    return x0, y0, x1, y1


def _thickness(box: Box) -> float:
    return min(box[2] - box[0], box[3] - box[1])


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])
