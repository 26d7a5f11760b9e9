"""Text in a fixed-width typeface, as filings were written before HTML, to blocks on a grid."""

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from app.errors import DocumentError
from ingest.formats.encoding import decoded, is_marked
from ingest.formats.filing_text import FilingText
from ingest.formats.grid import Block, Pages

_PAGE = re.compile(r"^[ \t]*<PAGE>.*$|\f", re.I | re.M)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x19\x7f]")
_LINE_END = re.compile("\r\n?|[\x0b\x85\u2028\u2029]")
_UNSEEN: Mapping[int, str | None] = {
    **{code: " " for code in (*range(0x09), *range(0x0E, 0x20), *range(0x7F, 0xA0))},
    **dict.fromkeys((0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF, 0xFFFE)),
}
"""Control characters, which are blanks, and what has no width."""
_TAG = re.compile(r"</?(?:TABLE|CAPTION|S|C|FN|F\d{1,2}|PAGE|TEXT|PRE|B|I|U|R|CENTER)>", re.I)
_RULE = re.compile(r"[\s\-=_*~]*")
_LEADER = re.compile(r"(?:[.·…]\s?){4,}|_{3,}|(?<!\S)[-=]{4,}(?!\S)")


def is_text(head: bytes) -> bool:
    """Whether a file that begins so is text: no byte that no text has."""
    return is_marked(head) or not _BINARY.search(head)


def read_text(path: Path, *, max_pages: int = 2000) -> FilingText:
    """Raises DocumentError with reason unreadable, no_text or too_large."""
    try:
        text = decoded(path.read_bytes())
    except OSError as error:
        raise DocumentError(f"{path.name} cannot be read: {error.strerror}") from error
    pages = Pages(path.name, max_pages)
    read(text, pages)
    if not pages.pages:
        raise DocumentError(f"{path.name} holds only blanks", "no_text")
    return FilingText(tuple(pages.pages), tables=tuple(pages.tables))


def read(text: str, pages: Pages) -> None:
    """Give the text to `pages`, each of its own a page there."""
    for part in _PAGE.split(_LINE_END.sub("\n", text).translate(_UNSEEN)):
        for block in blocks(part):
            pages.add(block)
        pages.break_page()


def blocks(text: str) -> Iterator[Block]:
    """Runs of lines without a blank line between them; every character keeps its column."""
    held: list[str] = []
    for raw in text.split("\n"):
        line = _clean(raw)
        if line is None:
            continue
        if line:
            held.append(line)
        elif held:
            yield _block(held)
            held = []
    if held:
        yield _block(held)


def _block(lines: list[str]) -> Block:
    return Block([[(0, line)] for line in lines])


def _clean(raw: str) -> str | None:
    """The line without tags, rules and leaders, all replaced by as many blanks; None where nothing else was on it."""
    line = raw.expandtabs(8).rstrip()
    if not line:
        return ""
    if "<" in line:
        line = _TAG.sub(lambda m: " " * len(m[0]), line)
    if "&" in line:
        line = html.unescape(line)
    if _RULE.fullmatch(line):
        return None
    return _LEADER.sub(lambda m: " " * len(m[0]), line).rstrip() or None
