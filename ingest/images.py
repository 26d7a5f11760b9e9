"""Pages of original files as PNG with boxes marked, drawn in a process of their own: PDFium is not thread-safe."""

import asyncio
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pikepdf
import pypdfium2
from PIL import Image, ImageChops

from app.errors import Conflict, DocumentError, NotFound
from app.types import Box, Document
from ingest.executors import ProcessPool
from ingest.formats.reading import HEAD_BYTES, is_pdf
from ingest.sources import hash_file

_WITHIN_S = 30.0
_MEMORY_BYTES = 2 << 30
_MOST_PIXELS = 24_000_000
"""A larger page is drawn at fewer dots per inch."""
_MARK = (255, 222, 89)
"""Red, green and blue of a marker pen: the page is multiplied by it, so that black stays black."""
_MARGIN = 1.5
"""Points marked around a box."""


@dataclass(frozen=True, slots=True)
class View:
    """What a worker process is told to draw."""

    path: Path
    number: int
    """Of the page; first is 1."""
    boxes: tuple[Box, ...]
    dpi: int


def draw(view: View) -> bytes:
    """PNG. Raises DocumentError where the file cannot be opened or has no such page."""
    with _opened(view.path) as pdf:
        if view.number > len(pdf):
            raise DocumentError(f"the file has no page {view.number}", "no_pages")
        page = pdf[view.number - 1]
        width, height = page.get_size()
        scale = min(view.dpi / 72, (_MOST_PIXELS / max(width * height, 1.0)) ** 0.5)
        image: Image.Image = page.render(scale=scale, rev_byteorder=True).to_pil().convert("RGB")
    for box in view.boxes:
        _mark(image, box, scale)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file as PDFium reads it, else as qpdf repairs it."""
    try:
        pdf = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError:
        repaired = io.BytesIO()
        try:
            with pikepdf.open(path) as damaged:
                damaged.save(repaired)
            pdf = pypdfium2.PdfDocument(repaired.getvalue())
        except (pikepdf.PdfError, pypdfium2.PdfiumError) as error:
            raise DocumentError("the file is damaged and cannot be drawn", "damaged") from error
    try:
        yield pdf
    finally:
        pdf.close()


def _mark(image: Image.Image, box: Box, scale: float) -> None:
    x0, y0, x1, y1 = box
    left, top = max(0, int((x0 - _MARGIN) * scale)), max(0, int((y0 - _MARGIN) * scale))
    right, bottom = min(image.width, int((x1 + _MARGIN) * scale)), min(image.height, int((y1 + _MARGIN) * scale))
    if left < right and top < bottom:
        part = image.crop((left, top, right, bottom))
        image.paste(ImageChops.multiply(part, Image.new("RGB", part.size, _MARK)), (left, top))


class OriginalImages:
    """An app.ports.PageImages from the files that documents were ingested from, where they are on this machine."""

    def __init__(self, originals: Path) -> None:
        self._originals = originals
        self._pool: ProcessPool[View, bytes] = ProcessPool(draw, 1, memory_bytes=_MEMORY_BYTES)
        self._hashes: dict[tuple[Path, int, int], str] = {}
        """By path, time of the last change (ns) and size."""

    async def png(self, document: Document, number: int, boxes: Sequence[Box], dpi: int) -> bytes:
        path = await asyncio.to_thread(self._original, document)
        return await self._pool.run(View(path, number, tuple(boxes), dpi), _WITHIN_S)

    def _original(self, document: Document) -> Path:
        path = self._originals / document.id
        if not path.exists():
            source = urlsplit(document.meta.source)
            if source.scheme != "file":
                raise NotFound("there is no picture of this page: its file was fetched from elsewhere and not kept")
            path = Path(url2pathname(source.path))
        try:
            status = path.stat()
            key = (path, status.st_mtime_ns, status.st_size)
            if key not in self._hashes:
                self._hashes[key] = hash_file(path)
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
        except OSError:
            raise NotFound("there is no picture of this page: the file it was read from is gone") from None
        if self._hashes[key] != document.sha256:
            raise Conflict("the file that this page was read from has changed since; ingest it again")
        if not is_pdf(head):
            raise NotFound("there is no picture of this page: HTML and text filings have no pages to draw")
        return path

    def close(self) -> None:
        self._pool.close()
