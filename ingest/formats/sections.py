"""Where the Items, statements and notes of a filing begin, and which lines are only running headers and footers."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.types import Page
from ingest.formats.filing_text import OutlineEntry


@dataclass(frozen=True, slots=True)
class Section:
    """A place from which a section runs until the next."""

    title: str
    """"Item 1A. Risk Factors", "Part II, Item 1. Legal Proceedings", "Item 8. Financial Statements > Note 5. Debt"."""
    page: int
    """First is 1."""
    start: int
    """Offset in that page's text."""


@dataclass(frozen=True, slots=True)
class _Line:
    page: int
    start: int
    text: str
    opens: bool
    """Stands at the top of the page or after a blank line."""
    below: str
    """The line under it, "" where a blank line or the page's end follows."""


_ITEM = re.compile(
    r"(?:part\s+(?P<part>i{1,3}|iv)\b[\s,.:—–-]*)?item\s*(?P<number>\d{1,2}\s?[a-c]?(?:\.\d\d)?)\b[\s.:)—–-]*(?P<title>.*)",
    re.I,
)
_PART = re.compile(r"part\s+(i{1,3}|iv)\b[\s.,:—–-]*(?:$|(?:other|financial)\s+information.*)", re.I)
_NOTE = re.compile(r"note\s*(?P<number>\d{1,2})\s*(?:[.:)—–-]|(?=\s[A-Z]))[\s.:)—–-]*(?P<title>[A-Z(].*)", re.I)
_NUMBERED = re.compile(r"\(?(?P<number>\d{1,2})[.)]\s*[—–-]?\s*(?P<title>[A-Z].*)")
_STATEMENT = re.compile(
    r"(?:(?:un)?audited|interim|condensed|consolidated|combined|supplemental)*"
    r"(?:balancesheets?|(?:comprehensive)?incomestatements?|cashflows?statements?|(?:stock|share)holders[’']?equitystatements?"
    r"|statements?of(?:(?:other)?comprehensive(?:income|loss|earnings)|operations|income|earnings|loss(?:es)?"
    r"|financial(?:position|condition)|cashflows?|profit(?:or|and)loss"
    r"|(?:changesin)?(?:total)?(?:(?:stock|share|unit)(?:holders|owners)[’']?|partners[’']?|owners[’']?)?"
    r"(?:equity|deficit|capital)|retainedearnings)"
    r"(?:(?:and|\()(?:other)?(?:comprehensive)?(?:income|loss|earnings|deficit)\)?)*)"
    r"(?:\((?:loss|deficit|un-?audited|continued)\)|[—–-]?continued)*",
    re.I,
)
"""Matched against a line without its spaces: some PDFs scatter blanks inside words."""
_FIGURES = re.compile(r"\d[\d,.]*\)?%?\s+(?:[$€£]\s?)?\(?\d[\d,.]*\)?%?$", re.M)
_PAGE_NUMBER_END = re.compile(r"[\s.]+(?:[A-Z]-)?\d{1,3}(?:\s*[-–]\s*\d{1,3})?$")
_CONTINUED = re.compile(r"\(?\bcontinued\b\)?", re.I)
_KNOWN = (
    "Business", "Risk Factors", "Unresolved Staff Comments", "Cybersecurity", "Properties", "Legal Proceedings",
    "Mine Safety Disclosures", "Selected Financial Data", "Quantitative and Qualitative Disclosures About Market Risk",
    "Management’s Discussion and Analysis of Financial Condition and Results of Operations", "Controls and Procedures",
    "Financial Statements and Supplementary Data", "Financial Statements", "Other Information", "Exhibits",
    "Directors, Executive Officers and Corporate Governance", "Executive Compensation", "Form 10-K Summary",
    "Principal Accountant Fees and Services", "Exhibits, Financial Statement Schedules",
    "Defaults Upon Senior Securities",
)  # fmt: skip
_KNOWN_BY_KEY = {re.sub(r"\W", "", title).casefold(): title for title in _KNOWN}
_SMALL = frozenset("a an and as at by for from in of on or the to with".split())
_MAX_TITLE = 110


def sections(pages: Sequence[Page], outline: Sequence[OutlineEntry] = ()) -> list[Section]:
    """Sections in reading order.

    Items are taken from the PDF's outline where it lists them, else from lines that look like headings; lines of a
    table of contents, cross-references and running headers are not sections. Inside the financial statements each
    statement and each note is one. A filing with none of these gets the outline's own entries, if any.
    """
    lines = list(_heading_lines(pages))
    items = _outline_items(pages, outline) or _items(lines)
    found = sorted([*items, *_parts_of_statements(pages, lines, items)], key=lambda s: (s.page, s.start))
    return found or [Section(e.title[:_MAX_TITLE], e.page, _find(pages[e.page - 1].text, e.title)) for e in outline]


def _heading_lines(pages: Sequence[Page]) -> Iterator[_Line]:
    """Short lines that are neither running headers nor on a contents page."""
    for page, running in zip(pages, running_lines(pages), strict=True):
        texts = page.text.split("\n")
        listed = [bool(_PAGE_NUMBER_END.search(t)) for t in texts if _ITEM.match(t) or _NOTE.match(t)]
        contents = sum(listed) >= 3
        if contents and sum(bool(_ITEM.match(t) and _PAGE_NUMBER_END.search(t)) for t in texts) >= 3:
            continue
        skip = {start for start, _ in running}
        position, opens = 0, True
        for index, text in enumerate(texts):
            if text and position not in skip:
                if len(text) < 250 and not (contents and _PAGE_NUMBER_END.search(text)):
                    below = texts[index + 1] if index + 1 < len(texts) else ""
                    yield _Line(page.number, position, text, opens, below)
                opens = bool(_ITEM.match(text) or _PART.match(text))
            else:
                opens = True
            position += len(text) + 1


def _items(lines: Sequence[_Line]) -> list[Section]:
    found: list[tuple[str | None, str, str, _Line]] = []
    part: str | None = None
    for line in lines:
        if alone := _PART.fullmatch(line.text):
            part = alone[1].upper()
            continue
        match = _ITEM.fullmatch(line.text)
        if match is None or not (line.opens or _is_capitals(line.text)):
            continue
        title = _title(match["title"], line)
        if title is None:
            continue
        part = match["part"].upper() if match["part"] else part
        found.append((part, match["number"].upper().replace(" ", ""), title, line))
    found = _last_of_each(found)
    repeated = {n for n, count in Counter(number for _, number, _, _ in found).items() if count > 1}
    return [
        Section(_item_name(p if repeated else None, number, title), line.page, line.start)
        for p, number, title, line in found
    ]


def _last_of_each(found: Sequence[tuple[str | None, str, str, _Line]]) -> list[tuple[str | None, str, str, _Line]]:
    """One heading per Item of each part: a contents list without page numbers comes before the real headings."""
    last = {(part, number): index for index, (part, number, _, _) in enumerate(found)}
    titled = {(part, number): index for index, (part, number, title, _) in enumerate(found) if title}
    return [found[index] for index in sorted({**last, **titled}.values())]


def _item_name(part: str | None, number: str, title: str) -> str:
    name = f"Item {number}. {title}" if title else f"Item {number}"
    return f"Part {part}, {name}" if part else name


def _title(raw: str, line: _Line) -> str | None:
    """A heading's text, joined with its next line where it runs on; None where the line is prose or a reference."""
    raw = raw.strip()
    if _CONTINUED.search(raw):
        return None
    if not raw:
        raw = line.below if line.below and len(line.below) < _MAX_TITLE else ""
    elif line.below and _runs_on(raw, line.below):
        raw = f"{raw.removesuffix('-') if raw[-2:-1].isalpha() and raw.endswith('-') else raw + ' '}{line.below}"
    first = raw.lstrip("“\"'")[:1]
    if raw and (
        not (first.isupper() or first == "[")
        or raw[0] in '“"'
        or re.search(r"[,;:]$|[a-z]\.\s+[A-Z]|”|\bof (?:this|our|the) ", raw)
    ):
        return None
    return headline(raw)


def _runs_on(text: str, below: str) -> bool:
    unfinished = text.split()[-1].lower() in _SMALL or text.endswith(("-", ","))
    if _is_capitals(text):
        return (unfinished or len(text) > 60) and below.isupper() and not _ITEM.match(below) and not _PART.match(below)
    return unfinished and len(below) < _MAX_TITLE


def _is_capitals(text: str) -> bool:
    return sum(c.isupper() for c in text) > 0.6 * sum(c.isalpha() for c in text)


def headline(text: str) -> str:
    """A title in sensible case without its closing full stop, at most 110 characters."""
    text = " ".join(text.split()).strip(" .—–-:|")
    known = _KNOWN_BY_KEY.get(re.sub(r"\W", "", text).casefold())
    if known:
        return known
    if _is_capitals(text) and len(text) > 3:
        text = " ".join(w.lower() if w.lower() in _SMALL else _capitalised(w) for w in text.split())
        text = text[:1].upper() + text[1:]
    text = re.sub(r"(?<=[a-z]) ([b-z])$", r"\1", text)
    return text if len(text) <= _MAX_TITLE else text[:_MAX_TITLE].rsplit(" ", 1)[0]


def _capitalised(word: str) -> str:
    return (
        re.sub(r"[^\W\d_]+(?:[’'][^\W\d_]+)?", lambda m: m[0].capitalize(), word)
        if len(word.strip("(),.")) > 1
        else word
    )


def _outline_items(pages: Sequence[Page], outline: Sequence[OutlineEntry]) -> list[Section]:
    found: list[tuple[str | None, str, str, OutlineEntry]] = []
    part: str | None = None
    for entry in outline:
        if alone := _PART.match(entry.title):
            part = alone[1].upper()
        if match := _ITEM.fullmatch(entry.title):
            found.append((part, match["number"].upper().replace(" ", ""), headline(match["title"]), entry))
    if len(found) < 5:
        return []
    repeated = len({number for _, number, _, _ in found}) < len(found)
    return [
        Section(
            _item_name(p if repeated else None, number, title), e.page, _find(pages[e.page - 1].text, f"Item {number}")
        )
        for p, number, title, e in found
    ]


def _find(text: str, title: str) -> int:
    """Start of the line that begins with `title`, whatever its case and spacing; 0 where there is none."""
    words = r"\s*".join(re.escape(word) for word in title.split()[:8])
    match = re.search(rf"^{words}", text, re.I | re.M)
    return match.start() if match else 0


def _parts_of_statements(pages: Sequence[Page], lines: Sequence[_Line], items: Sequence[Section]) -> list[Section]:
    """Statements and notes, each under the Item that holds the financial statements."""
    found: list[Section] = []
    starts = [(item.page, item.start) for item in items]
    with_figures = {page.number for page in pages if len(_FIGURES.findall(page.text)) >= 3}
    note, current, began = 0, -1, False
    for line in lines:
        while current + 1 < len(items) and starts[current + 1] <= (line.page, line.start):
            current += 1
        parent = _parent(items, current)
        if parent is None:
            continue
        title = None
        if line.page in with_figures and _is_statement(line):
            title, began = headline(_AFTER_TITLE.sub("", line.text)), True
        elif match := _note(line, began=began):
            number, text = int(match["number"]), _title(match["title"], line)
            if text and (number == note + 1 or (_NOTE.match(line.text) and note < number <= note + 3)):
                note, title = number, f"Note {number}. {text}"
        if title and not (found and found[-1].title.endswith(title)):
            found.append(Section(f"{parent} > {title}", line.page, line.start))
    return found


_AFTER_TITLE = re.compile(r"\s*(?:\((?:un-?audited|continued)\)|[—–-]\s*continued)\s*", re.I)


def _is_statement(line: _Line) -> bool:
    """A statement's title: at the top of its page, or further down if it says that it is consolidated or condensed."""
    if not _STATEMENT.fullmatch(re.sub(r"\s", "", line.text)):
        return False
    return line.start < 350 or (line.opens and re.search(r"consolidated|condensed", line.text, re.I) is not None)


def _note(line: _Line, *, began: bool) -> re.Match[str] | None:
    """A note's heading: "Note 5. Debt", or "5. Debt" once the statements have begun."""
    if not (line.opens or _is_capitals(line.text)):
        return None
    match = _NOTE.fullmatch(line.text)
    if match is None and began and len(line.text) < 100:
        match = _NUMBERED.fullmatch(line.text)
        words = [w for w in match["title"].split() if len(w) > 3] if match else []
        if sum(w[0].isupper() or not w[0].isalpha() for w in words) < 0.6 * len(words):
            return None
    return None if match is None or re.search(r"\bnote \d", match["title"], re.I) else match


def _parent(items: Sequence[Section], current: int) -> str | None:
    """Title of the Item under which a statement or note stands; None where none can stand."""
    if current < 0:
        return None if items else "Financial Statements"
    title = items[current].title
    if re.match(
        r"Item 8\b|(?:Part I, )?Item 1\. (?:condensed |consolidated |unaudited |interim )*financial", title, re.I
    ):
        return title
    if re.match(r"Item (?:1[5-9])\b|Item 9\.01", title):
        return "Financial Statements"
    return None


_MARGIN = 3
"""Lines from a page's top and bottom among which running headers and footers stand."""
_NOT_RUNNING = re.compile(r"\bended\b|\bmonths\b|\bweeks\b|millions|thousands|as of\b|\btotal\b", re.I)
_PAGE_NUMBER = re.compile(
    r"[-–—\s]*(?:page\s*)?(?:[A-Z]{1,2}[-–])?(?:\d{1,4}|[ivxl]+)(?:\s*(?:of|/)\s*\d+)?[-–—\s]*", re.I
)


def running_lines(pages: Sequence[Page]) -> list[tuple[tuple[int, int], ...]]:
    """For each page the spans of its running headers and footers, page numbers included, in order.

    A running line stands among the first or last three lines of at least three pages and a tenth of them, the same but
    but for a number that grows with the pages; what may head a table never counts. Where nothing else stands on any
    page, nothing is running.
    """
    margins = [[(start, text, _keys(text, page.number)) for start, text in _margin_lines(page.text)] for page in pages]
    counts = Counter(key for lines in margins for key in {key for *_, keys in lines for key in keys})
    least = max(3, 0.1 * len(pages))
    running = [
        tuple(
            (start, start + len(text))
            for start, text, keys in lines
            if _may_run(text) and max(counts[key] for key in keys) >= (3 if _PAGE_NUMBER.fullmatch(text) else least)
        )
        for lines in margins
    ]
    alone = all(sum(map(bool, page.text.split("\n"))) == len(found) for page, found in zip(pages, running, strict=True))
    return [() for _ in pages] if alone else running


def _may_run(text: str) -> bool:
    if _PAGE_NUMBER.fullmatch(text):
        return True
    return len(text) < 120 and sum(c.isalpha() for c in text) >= 4 and not _NOT_RUNNING.search(text)


def _keys(text: str, page: int) -> tuple[str, ...]:
    """The line itself, and without its first or last number if that is so many pages from the page's own."""
    line = text.casefold()
    numbers = list(re.finditer(r"\d{1,4}", line))
    return line, *(f"{line[: n.start()]}{int(n[0]) - page:+}#{line[n.end() :]}" for n in (*numbers[:1], *numbers[-1:]))


def _margin_lines(text: str) -> Iterator[tuple[int, str]]:
    """Start and text of the first and last lines that are not blank."""
    lines: list[tuple[int, str]] = []
    position = 0
    for line in text.split("\n"):
        if line.strip():
            lines.append((position, line))
        position += len(line) + 1
    yield from lines[:_MARGIN]
    yield from lines[max(_MARGIN, len(lines) - _MARGIN) :]
