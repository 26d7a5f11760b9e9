"""Any file to a filing's text, by what its bytes are rather than by what it is called."""

from pathlib import Path

from app.errors import DocumentError
from ingest.formats.filing_text import FilingText
from ingest.formats.html import is_html, read_html
from ingest.formats.pdf import read_pdf
from ingest.formats.plain_text import is_text, read_text
from ingest.formats.scans import AUTO, Ocr
from ingest.formats.submission import is_submission, read_submission

HEAD_BYTES = 8192
"""Of a file's beginning, which tell what it is."""


def is_pdf(head: bytes) -> bool:
    return b"%PDF" in head[:1024]


def is_filing(head: bytes) -> bool:
    """Whether there is a reader for what begins so."""
    return is_pdf(head) or is_submission(head) or is_html(head) or is_text(head)


def read_filing(path: Path, *, max_pages: int = 2000, ocr: Ocr = AUTO) -> FilingText:
    """`ocr` concerns PDFs alone.

    Raises DocumentError: the readers' own, or with reason empty, not_pdf, unsupported or unreadable.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise DocumentError(f"{path.name} cannot be read: {error.strerror}") from error
    named_pdf = path.suffix.lower() == ".pdf"
    if not head or named_pdf or is_pdf(head):
        return read_pdf(path, max_pages=max_pages, ocr=ocr)
    if is_submission(head):
        return read_submission(path, max_pages=max_pages)
    if is_html(head):
        return read_html(path, max_pages=max_pages)
    if is_text(head):
        return read_text(path, max_pages=max_pages)
    raise DocumentError(f"{path.name} is neither PDF nor HTML nor text; convert it to one of these", "unsupported")
