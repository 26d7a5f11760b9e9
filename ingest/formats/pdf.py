"""PDF bytes to pages of readable text whose every word knows where it stands."""

import ctypes
import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pdfwords
import pikepdf
import pypdfium2.raw as pdfium

from app.errors import DocumentError
from app.raised import raised
from app.types import Page
from ingest.formats.filing_text import FilingText, OutlineEntry
from ingest.formats.layout import Token, lay_out
from ingest.formats.page_text import clean, printed_label
from ingest.formats.scans import AUTO, Ocr, read_scans

RawWord: TypeAlias = tuple[float, float, float, float, str, int, int]
"""x0, y0, x1, y1 (points, displayed page, origin top left), text, block and line number."""

MAX_WORDS_PER_PAGE = 100_000
_HEADER_BYTES = 1024
_SUPERSCRIPT = 1
"""Bit of a span's flags."""
_open: Callable[[Path | io.BytesIO], Any] = pdfwords.open


def read_pdf(path: Path, *, max_pages: int = 2000, ocr: Ocr = AUTO) -> FilingText:
    """Read the text of every page; one page is in memory at a time besides the result.

    Files encrypted with an empty user password are read like any other.
    Raises DocumentError with reason empty, not_pdf, damaged, password, no_pages or too_large.
    """
    _check_header(path)
    try:
        return _read(path, path.name, max_pages, ocr, strict=True)
    except RuntimeError:  # what both pdfwords and PDFium raise
        pass
    try:
        source, damaged = _rewrite(path)
        return _read(source, path.name, max_pages, ocr, repaired=damaged)
    except DocumentError as error:
        if error.reason != "damaged":
            raise
        try:
            return _read(path, path.name, max_pages, ocr, repaired=True)
        except RuntimeError:
            raise error from None
    except RuntimeError as error:
        raise DocumentError(f"{path.name} is damaged and could not be repaired: {error}", "damaged") from error


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError as error:
        raise DocumentError(f"{path.name} cannot be read: {error.strerror}") from error
    if not head:
        raise DocumentError(f"{path.name} is empty; check that its download or copy was complete", "empty")
    if b"%PDF" not in head:
        raise DocumentError(f"{path.name} is not a PDF: no %PDF header in its first {_HEADER_BYTES} bytes", "not_pdf")


def _rewrite(path: Path) -> tuple[io.BytesIO, bool]:
    """The file as qpdf understands it, decrypted and with a fresh cross-reference table, and whether it was damaged."""
    try:
        with pikepdf.open(path) as pdf:
            damaged = not pdf.is_encrypted or bool(pdf.get_warnings())
            if not len(pdf.pages):
                raise DocumentError(f"{path.name} has no pages", "no_pages")
            out = io.BytesIO()
            pdf.save(out)
    except pikepdf.PasswordError as error:
        raise DocumentError(f"{path.name} needs a password to open; remove it and try again", "password") from error
    except (pikepdf.PdfError, RuntimeError, ValueError) as error:
        detail = str(error).replace(str(path), path.name)
        raise DocumentError(f"{path.name} is damaged and could not be repaired: {detail}", "damaged") from error
    out.seek(0)
    return out, damaged


def _read(
    source: Path | io.BytesIO, name: str, max_pages: int, ocr: Ocr, *, repaired: bool = False, strict: bool = False
) -> FilingText:
    """Raises RuntimeError where the file, a single page (if strict) or all pages cannot be read."""
    with _open(source) as document:
        count = len(document)
        if not count:
            raise DocumentError(f"{name} has no pages", "no_pages")
        if count > max_pages:
            raise DocumentError(f"{name} has {count} pages, more than the limit of {max_pages}; split it", "too_large")
        pages: list[Page] = []
        errors: list[RuntimeError] = []
        for index in range(count):
            try:
                pages.append(_page(document, index))
            except RuntimeError as error:
                errors.append(error)
                pages.append(Page(index + 1, ""))
        if errors and (strict or len(errors) == count):
            raise errors[0]
        scans = read_scans(document, pages, ocr)
        outline, info = _outline(document, count), _info(document)
        return FilingText(scans.pages, repaired, outline, info, displayed=scans.displayed, unread=scans.unread)


def _page(document: Any, index: int) -> Page:
    page = document[index]
    try:
        raw: Sequence[RawWord] = _with_marks(page.get_text("words", rotated=True), page)
        width, height = page.rect[2], page.rect[3]
    except (RuntimeError, ValueError):
        raw, width, height = words_by_character(document._pdf[index])
    if len(raw) > MAX_WORDS_PER_PAGE:
        raise DocumentError(f"page {index + 1} has {len(raw)} words, more than {MAX_WORDS_PER_PAGE}", "too_large")
    text, words = lay_out(_fragments(raw))
    label = _declared_label(document, index) or printed_label(text)
    label = label if label != str(index + 1) else None
    return Page(index + 1, text, words, round(width, 2), round(height, 2), label)


def _with_marks(raw: Sequence[RawWord], page: Any) -> Sequence[RawWord]:
    """The words, raised marks in raised characters: 78 with a raised 2 would read 782."""
    marked: dict[tuple[int, int], list[str]] = {}
    for at, block in enumerate(page.get_text("dict", rotated=True)["blocks"]):
        for number, line in enumerate(block.get("lines", ())):
            if any(span["flags"] & _SUPERSCRIPT for span in line["spans"]):
                marked[at, number] = "".join(map(_shown, line["spans"])).split()
    of_line = Counter((word[5], word[6]) for word in raw) if marked else {}
    left = {place: iter(words) for place, words in marked.items() if len(words) == of_line[place]}
    return [(*w[:4], next(left[w[5], w[6]]), *w[5:7]) if (w[5], w[6]) in left else w for w in raw]


def _shown(span: Mapping[str, Any]) -> str:
    text: str = span["text"]
    return re.sub(r"\S+", lambda word: raised(word[0]) or word[0], text) if span["flags"] & _SUPERSCRIPT else text


def _fragments(raw: Sequence[RawWord]) -> list[list[Token]]:
    """Cleaned words in content order, grouped into the runs that the PDF drew as one line."""
    fragments: list[list[Token]] = []
    previous: tuple[int, int] | None = None
    for x0, y0, x1, y1, text, block, line, *_ in raw:
        text = text if text.isascii() and text.isprintable() else clean(text)
        if not text:
            continue
        if (block, line) != previous:
            fragments.append([])
            previous = (block, line)
        fragments[-1].append(Token(x0, y0, x1, y1, text))
    return fragments


def words_by_character(page: Any) -> tuple[list[RawWord], float, float]:
    """Words from PDFium's own characters and boxes: slower and plainer than pdfwords, for pages it refuses."""
    text_page = page.get_textpage()
    width, height = page.get_size()
    place = _Placing(page)
    words: list[RawWord] = []
    line, letters, box = 0, "", (0.0, 0.0, 0.0, 0.0)
    for index in range(text_page.count_chars() + 1):
        code = pdfium.FPDFText_GetUnicode(text_page.raw, index) if index < text_page.count_chars() else 32
        character = chr(code)
        if character.isspace():
            if letters:
                words.append((*box, letters, 0, line))
            line, letters = line + (character == "\n"), ""
            continue
        where = place(text_page.get_charbox(index))
        box = (
            (min(box[0], where[0]), min(box[1], where[1]), max(box[2], where[2]), max(box[3], where[3]))
            if letters
            else where
        )
        letters += character
    return words, width, height


class _Placing:
    """PDF user space (origin bottom left) to the displayed page (origin top left)."""

    def __init__(self, page: Any) -> None:
        self.left, self.bottom, self.right, self.top = page.get_cropbox()
        self.rotation = page.get_rotation() % 360

    def __call__(self, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        x0, y0 = box[0] - self.left, self.top - box[3]
        x1, y1 = box[2] - self.left, self.top - box[1]
        width, height = self.right - self.left, self.top - self.bottom
        if self.rotation == 90:
            return height - y1, x0, height - y0, x1
        if self.rotation == 180:
            return width - x1, height - y1, width - x0, height - y0
        if self.rotation == 270:
            return y0, width - x1, y1, width - x0
        return x0, y0, x1, y1


def _declared_label(document: Any, index: int) -> str | None:
    """The page number that the PDF's own numbering declares."""
    raw = document._pdf.raw
    size = pdfium.FPDF_GetPageLabel(raw, index, None, 0)
    if not 2 < size <= 128:
        return None
    buffer = ctypes.create_string_buffer(size)
    pdfium.FPDF_GetPageLabel(raw, index, buffer, size)
    return clean(buffer.raw.decode("utf-16-le", "ignore")) or None


def _outline(document: Any, pages: int) -> tuple[OutlineEntry, ...]:
    try:
        toc = document.get_toc()
    except (RuntimeError, ValueError):
        return ()
    return tuple(
        OutlineEntry(title, int(page), int(level))
        for level, raw_title, page in toc
        if (title := _sentence(raw_title)) and page and 1 <= page <= pages
    )


def _info(document: Any) -> dict[str, str]:
    raw: Mapping[str, str] = document._pdf.get_metadata_dict(skip_empty=True)
    return {key: value for key, text in raw.items() if (value := _sentence(text)[:1000])}


def _sentence(text: str) -> str:
    return " ".join(filter(None, map(clean, text.split())))
