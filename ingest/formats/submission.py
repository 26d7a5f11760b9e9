"""EDGAR's full-submission text files: of their documents the form itself is read, and an 8-K's press releases."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from app.errors import DocumentError
from ingest.extraction.declared import from_cover_facts, from_header, joined
from ingest.formats import plain_text
from ingest.formats.encoding import decoded
from ingest.formats.filing_text import FilingText
from ingest.formats.grid import Pages
from ingest.formats.html import HtmlReader, is_html

_START = re.compile(
    rb"\s*(?:-----BEGIN PRIVACY-ENHANCED MESSAGE-----|<(?:SEC-DOCUMENT|SEC-HEADER|IMS-DOCUMENT|IMS-HEADER)>"
    rb"|<DOCUMENT>\s*<TYPE>)",
    re.I,
)
_DOCUMENT = re.compile(rb"^<DOCUMENT>[^\S\n]*$", re.M | re.I)
_DOCUMENT_END = re.compile(rb"^</DOCUMENT>", re.M | re.I)
_TYPE = re.compile(rb"<TYPE>[ \t]*([^\r\n<]+)", re.I)
_TEXT = re.compile(rb"<TEXT>", re.I)
_NOT_TEXT = re.compile(rb"\s*(?:<PDF>|begin [0-7]{3} \S|%PDF)", re.I)
_RELEASE = "EX-99"


@dataclass(frozen=True, slots=True)
class _Part:
    type: str
    body: bytes


def is_submission(head: bytes) -> bool:
    """Whether a file that begins so is one."""
    return _START.match(head) is not None


def read_submission(path: Path, *, max_pages: int = 2000) -> FilingText:
    """Raises DocumentError with reason unreadable, no_text or too_large."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{path.name} cannot be read: {error.strerror}") from error
    first = _DOCUMENT.search(data)
    header = from_header(decoded(data[: first.start() if first else None][:100_000]))
    parts = _wanted(list(_parts(data)), header.form)
    if not parts:
        raise DocumentError(f"{path.name} holds no document of text, only attachments", "no_text")
    pages = Pages(path.name, max_pages)
    reader = HtmlReader(pages)
    for part in parts:
        if is_html(part.body):
            reader.read(part.body)
        else:
            plain_text.read(decoded(part.body), pages)
        pages.break_page()
    if not pages.pages:
        raise DocumentError(f"{path.name} shows no text in its main document", "no_text")
    return FilingText(
        tuple(pages.pages),
        repaired=_DOCUMENT_END.search(data, len(data) - 5000 if len(data) > 5000 else 0) is None,
        outline=reader.outline(),
        declared=joined(from_cover_facts(reader.facts), header),
        tables=tuple(pages.tables),
        facts=reader.figures.facts(pages.pages),
    )


def _parts(data: bytes) -> Iterator[_Part]:
    """The documents that may be text; a body ends with its document or, in a file cut short, with the file."""
    starts = [match.end() for match in _DOCUMENT.finditer(data)]
    for start, limit in pairwise([*starts, len(data)]):
        named = _TYPE.search(data, start, start + 1000)
        text = _TEXT.search(data, start, start + 5000)
        if text is None:
            continue
        end = _DOCUMENT_END.search(data, text.end(), limit)
        body = data[text.end() : end.start() if end else limit]
        if not _NOT_TEXT.match(body):
            yield _Part(decoded(named[1]).strip().upper() if named else "", body)


def _wanted(parts: list[_Part], form: str | None) -> list[_Part]:
    """The first document of the submission's form, else the first of all; with an 8-K its press releases."""
    if not parts:
        return []
    main = next((part for part in parts if form and part.type.startswith(form)), parts[0])
    if not main.type.startswith("8-K"):
        return [main]
    return [main, *(part for part in parts if part.type.startswith(_RELEASE))]
