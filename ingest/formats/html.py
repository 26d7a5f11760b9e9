"""HTML and inline XBRL filings to pages of readable text, as a stream of tags: no tree, so that none is too deep."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lxml import etree

from app.errors import DocumentError
from app.raised import raised
from ingest.extraction.declared import from_cover_facts
from ingest.extraction.xbrl import FactReader
from ingest.formats import html_tables, plain_text
from ingest.formats.encoding import decoded
from ingest.formats.filing_text import FilingText, OutlineEntry
from ingest.formats.grid import MARK, Block, Pages
from ingest.formats.html_tables import BREAK, PARAGRAPH, Rows

_FEED = 1 << 16
_NESTED = 8
"""Elements inside one another whose text is collected on its own."""
_ROWS_AT_ONCE = 2_000
"""Of a table, which longer ones are cut into."""

_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dir div dl dt fieldset figcaption figure footer"
    " form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol p page pre section summary table tbody tfoot"
    " thead ul".split()
)
_UNSHOWN = frozenset(
    "applet audio canvas datalist embed iframe ix:header ix:hidden noframes object script select style svg"
    " template textarea title video".split()
)
_HIDDEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_INLINE = re.compile(r"display\s*:\s*inline(?:-block)?\s*(?:;|$)", re.I)
_RAISED = re.compile(r"vertical-align\s*:\s*(?:super|text-top)|(?<![\w-])top\s*:\s*-[\d.]*[1-9]", re.I)
_BREAK = re.compile(r"(?:page-)?break-(before|after)\s*:\s*(?:always|page|left|right)", re.I)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|div|font|br|td|tr|span|script|h[1-6])[\s>/]", re.I)
_PARAGRAPHS = re.compile(rb"<(?:p|b|i|a|ul|table)[\s>]", re.I)
_TYPED = re.compile(rb"<(?:page|s|caption)>", re.I)
_SNIFFED = 1 << 16
_ORDINAL = re.compile(r"\s*(?:st|nd|rd|th|®|™|SM|TM)\s*")
_DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]*\[.*?\]\s*>", re.I | re.S)
_BEFORE_POINT = re.compile(rf"({MARK}\S*) (?=[.,;:)])")
_PAGE_NUMBER = re.compile(r"(?:[A-Z]-)?\d{1,4}|[ivxl]+", re.I)

_CONTROLS = {code: bytes([code]).decode("cp1252", "ignore") or None for code in range(0x80, 0xA0)}
_INVISIBLE = [0xAD, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2065), 0xFEFF, 0xFFFE, 0xFFFF]
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl"}
_SYMBOLS = {0xB7: "•", 0xA7: "▪", 0xA8: "☐", 0x6F: "☐", 0xFD: "☒", 0xFE: "☒", 0x78: "☒"}
"""What Wingdings shows for these characters."""
_CLEANED: Mapping[int, str | int | None] = (
    dict.fromkeys(range(0xE000, 0xF900))
    | {code: " " for code in range(0x20)}
    | _CONTROLS
    | dict.fromkeys(_INVISIBLE)
    | {ord(one): letters for one, letters in _LIGATURES.items()}
    | {0x2010: "-", 0x2011: "-"}
    | {0xF000 + code: shown for code, shown in _SYMBOLS.items()}
)


def read_html(path: Path, *, max_pages: int = 2000) -> FilingText:
    """Raises DocumentError with reason unreadable, no_text or too_large."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{path.name} cannot be read: {error.strerror}") from error
    pages = Pages(path.name, max_pages)
    reader = HtmlReader(pages)
    reader.read(data)
    pages.break_page()
    if not pages.pages:
        raise DocumentError(f"{path.name} shows no text: no words outside scripts and hidden parts", "no_text")
    return FilingText(
        tuple(pages.pages),
        repaired=cut_short(data),
        outline=reader.outline(),
        info={"Title": reader.title} if reader.title else {},
        declared=from_cover_facts(reader.facts),
        tables=tuple(pages.tables),
        facts=reader.figures.facts(pages.pages),
    )


def is_html(data: bytes) -> bool:
    """Whether a file that begins so is HTML; text filings have some tags of their own, <PAGE>, <TABLE> and <S> <C>."""
    head = decoded(data[:_SNIFFED]).encode("utf-8", "replace")
    return bool(_HTML.search(head) or (_PARAGRAPHS.search(head) and not _TYPED.search(head)))


def cut_short(data: bytes) -> bool:
    """Whether an HTML file's end is missing."""
    return b"<html" in data[:5000].lower() and b"</html" not in data[-5000:].lower()


class HtmlReader:
    """Takes a parser's events; what is shown goes to `pages` block by block."""

    def __init__(self, pages: Pages) -> None:
        self.facts: dict[str, str] = {}
        """The iXBRL cover facts (dei), by name; the first of each."""
        self.figures = FactReader()
        self.title = ""
        self._pages = pages
        self._ends: list[tuple[Callable[[], None], ...]] = []
        """For each open element, what its end does."""
        self._text: list[str] = []
        self._tables: list[Rows] = []
        self._cells: list[tuple[int, int] | None] = []
        """Of each open table: column and row span of its open cell."""
        self._hidden = self._preformatted = self._symbols = 0
        self._shown = 0
        """Characters given so far that are not blank."""
        self._captured: list[list[str]] = []
        self._raised: list[int] = []
        self._links: list[tuple[str, str]] = []
        """Anchor and text."""

    def read(self, data: bytes) -> None:
        """One document; may be called again for those that follow."""
        text = decoded(data).replace("\0", " ")
        text = _DOCTYPE.sub("", text[:_FEED], count=1) + text[_FEED:]
        parser = etree.HTMLParser(target=self, encoding="utf-8", recover=True, no_network=True)
        for start in range(0, len(text), _FEED):
            parser.feed(text[start : start + _FEED].encode("utf-8", "replace"))
        if text:
            parser.close()
        while self._ends:
            self.end("")
        self._flush()

    def outline(self) -> tuple[OutlineEntry, ...]:
        """The entries of contents tables, joined from the links of each to its place."""
        titles: dict[str, list[str]] = {}
        anchors = self._pages.anchors
        for target, text in self._links:
            if target in anchors and text and not _PAGE_NUMBER.fullmatch(text):
                titles.setdefault(target, []).append(text)
        return tuple(
            OutlineEntry(" ".join(dict.fromkeys(parts)), anchors[target], 1) for target, parts in titles.items()
        )

    # The parser's events.

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        ends: list[Callable[[], None]] = []
        if self._hidden or tag in _UNSHOWN or _hides(attributes):
            self._hidden += 1
            ends.append(self._show)
        else:
            self._open(tag, attributes, ends)
            for key in ("id", "name"):
                if name := attributes.get(key):
                    self._pages.mark(name)
        if tag == "title" and not self.title:
            ends.append(self._capture(self._set_title))
        elif tag.startswith("ix:non") and attributes.get("name", "").startswith("dei:"):
            ends.append(self._capture(self._fact(attributes)))
        elif ":" in tag and (use := self.figures.start(tag, attributes, self._shown, hidden=self._hidden > 0)):
            ends.append(self._capture(use))
        self._ends.append(tuple(ends))

    def data(self, text: str) -> None:
        for captured in self._captured:
            captured.append(text)
        if self._hidden:
            return
        self._shown += len("".join(text.translate(_CLEANED).split()))
        if self._tables and self._cells[-1] is None:
            if text.isspace():
                return
            self._cells[-1] = (1, 1)
        self._text.append(text.translate(_SYMBOLS) if self._symbols and len(text.strip()) == 1 else text)

    def end(self, tag: str) -> None:
        for end in reversed(self._ends.pop()):
            end()

    def close(self) -> None:
        """The parser's end of input."""

    # What elements do.

    def _open(self, tag: str, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        style = attributes.get("style", "")
        if "break" in style and (found := _BREAK.search(style)):
            if found[1].lower() == "before":
                self._break_page()
            else:
                ends.append(self._break_page)
        if tag in _BLOCKS and not (style and _INLINE.search(style)):
            self._boundary()
            ends.append(self._boundary)
        if action := _ACTIONS.get(tag):
            action(self, attributes, ends)
        elif style and _RAISED.search(style):
            self._raise(attributes, ends)
        if "wingdings" in style.lower() or "wingdings" in attributes.get("face", "").lower():
            self._symbols += 1
            ends.append(self._end_symbols)

    def _page(self, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        self._break_page()

    def _line_break(self, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        self._text.append("\n" if self._preformatted else BREAK)

    def _pre(self, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        self._preformatted += 1
        ends.insert(0, self._end_pre)

    def _end_pre(self) -> None:
        self._preformatted -= 1

    def _table(self, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        self._flush()
        self._tables.append(Rows())
        self._cells.append(None)
        ends.append(self._end_table)

    def _end_table(self) -> None:
        self._flush()
        self._tables.pop()
        self._cells.pop()

    def _row(self, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        if self._tables:
            self._end_cell()
            if len(self._tables[-1].rows) >= _ROWS_AT_ONCE:
                self._flush()
            self._tables[-1].open_row()

    def _cell(self, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        if self._tables:
            self._end_cell()
            self._cells[-1] = _span(attributes, "colspan"), min(_span(attributes, "rowspan"), html_tables.MAX_ROWS)
            ends.append(self._end_cell)

    def _end_cell(self) -> None:
        if self._tables and (spans := self._cells[-1]):
            self._tables[-1].add(self._take(), *spans)
            self._cells[-1] = None

    def _raise(self, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        self._raised.append(len(self._text))
        ends.append(self._lower)

    def _lower(self) -> None:
        """A mark in raised characters; another text set apart from the word before it, unless an ordinal's ending."""
        start = self._raised.pop()
        text = "".join(self._text[start:]).replace(MARK, "")
        if mark := raised(text):
            self._text[start:] = [mark]
        elif text.strip() and not _ORDINAL.fullmatch(text):
            self._text[start:] = [f" {MARK}{text.strip()} "]

    def _link(self, attributes: Mapping[str, str], ends: list[Callable[[], None]]) -> None:
        target = attributes.get("href", "")
        if target.startswith("#") and len(target) > 1:
            ends.append(self._capture(lambda text: self._links.append((target[1:], text))))

    def _show(self) -> None:
        self._hidden -= 1

    def _end_symbols(self) -> None:
        self._symbols -= 1

    def _capture(self, use: Callable[[str], None]) -> Callable[[], None]:
        """Collects the text of an element, shown or not; the returned function ends that and passes it on."""
        pieces: list[str] = []
        if len(self._captured) < _NESTED:
            self._captured.append(pieces)

        def end() -> None:
            if self._captured and self._captured[-1] is pieces:
                self._captured.pop()
                use(" ".join("".join(pieces).translate(_CLEANED).split()))

        return end

    def _set_title(self, text: str) -> None:
        self.title = text[:1000]

    def _fact(self, attributes: Mapping[str, str]) -> Callable[[str], None]:
        name, form = attributes["name"].removeprefix("dei:"), attributes.get("format", "").lower()
        fixed = next((value for value in ("true", "false") if form.endswith(value)), None)

        def use(text: str) -> None:
            if value := fixed or text:
                self.facts.setdefault(name, value)

        return use

    # From text to blocks.

    def _boundary(self) -> None:
        """A block begins or ends."""
        if not self._tables:
            self._flush()
        elif self._cells[-1]:
            self._text.append(PARAGRAPH)

    def _break_page(self) -> None:
        self._flush()
        self._pages.break_page()

    def _take(self) -> str:
        text = "".join(self._text).translate(_CLEANED)
        self._text = []
        self._raised = [0] * len(self._raised)
        return _BEFORE_POINT.sub(r"\1", text) if MARK in text else text

    def _flush(self) -> None:
        """Give the pages what has been read; an open table and its open cell go on as new ones."""
        for block in self._blocks():
            self._pages.add(block)

    def _blocks(self) -> Iterator[Block]:
        if self._tables:
            spans = self._cells[-1]
            self._end_cell()
            yield from html_tables.blocks(self._tables[-1].take())
            self._cells[-1] = spans
        elif self._preformatted:
            text, self._text = "".join(self._text), []
            yield from plain_text.blocks(text)
        else:
            yield from html_tables.paragraphs(self._take())


_ACTIONS: Mapping[str, Callable[[HtmlReader, Mapping[str, str], list[Callable[[], None]]], None]] = {
    "a": HtmlReader._link,
    "br": HtmlReader._line_break,
    "page": HtmlReader._page,
    "pre": HtmlReader._pre,
    "sup": HtmlReader._raise,
    "table": HtmlReader._table,
    "td": HtmlReader._cell,
    "th": HtmlReader._cell,
    "tr": HtmlReader._row,
}


def _hides(attributes: Mapping[str, str]) -> bool:
    if not attributes:
        return False
    style = attributes.get("style")
    return "hidden" in attributes or (style is not None and _HIDDEN.search(style) is not None)


def _span(attributes: Mapping[str, str], name: str) -> int:
    digits = re.match(r"\s*(\d{1,7})", attributes.get(name, ""))
    return max(int(digits[1]), 1) if digits else 1
