"""The numbers that inline XBRL marks in an HTML filing: what each declares, and where on its pages it is shown."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import accumulate

from app.types import Page
from ingest.extraction.metadata import parse_date
from ingest.formats.filing_text import Fact

_FARTHEST = 400
"""Visible characters from where a fact is expected to where it may be found."""
_DIGITS = re.compile(r"(?:\d[\d,]*)?\.?\d+")
Use = Callable[[str], None]


@dataclass(slots=True)
class _Context:
    start: date | None = None
    end: date | None = None
    members: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A fact as it stands in the file."""

    attributes: Mapping[str, str]
    text: str
    shown: int
    """Visible characters before it."""


class FactReader:
    """Takes the tags of a filing; contexts and units may come before or after the facts that refer to them."""

    def __init__(self) -> None:
        self._contexts: dict[str, _Context] = {}
        self._units: dict[str, list[str]] = {}
        self._marks: list[_Mark] = []
        self._context = _Context()
        self._unit: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str], shown: int, *, hidden: bool) -> Use | None:
        """What the element's text is to be given to, if anything."""
        if tag == "ix:nonfraction":
            return None if hidden else lambda text: self._marks.append(_Mark(dict(attributes), text, shown))
        name = tag.rpartition(":")[2]
        if name == "context":
            self._context = self._contexts.setdefault(attributes.get("id", ""), _Context())
        elif name == "unit":
            self._unit = self._units.setdefault(attributes.get("id", ""), [])
        elif name == "measure":
            return self._unit.append
        elif name == "startdate":
            return self._starts
        elif name in ("enddate", "instant"):
            return self._ends
        elif name == "explicitmember":
            axis, members = attributes.get("dimension", ""), self._context.members
            return lambda text: members.append(f"{axis}={text}")
        return None

    def _starts(self, text: str) -> None:
        self._context.start = parse_date(text[:10])

    def _ends(self, text: str) -> None:
        self._context.end = parse_date(text[:10])

    def facts(self, pages: Sequence[Page]) -> tuple[Fact, ...]:
        """Those that are shown as a number, in reading order."""
        return tuple(self._facts(_Shown(pages)))

    def _facts(self, shown: "_Shown") -> Iterator[Fact]:
        for mark in self._marks:
            attributes = mark.attributes
            if not _DIGITS.fullmatch(mark.text) or "comma" in attributes.get("format", "").lower():
                continue
            if (place := shown.find(mark.text, mark.shown)) is None:
                continue
            context = self._contexts.get(attributes.get("contextref", ""), _Context())
            measures = self._units.get(attributes.get("unitref", ""), [])
            scale = _integer(attributes.get("scale", "0"))
            unit, scale = ("percent", 0) if measures == ["xbrli:pure"] and scale == -2 else (_unit(measures), scale)
            yield Fact(
                concept=attributes.get("name", ""),
                page=place[0],
                start=place[1],
                end=place[1] + len(mark.text),
                scale=scale,
                negative=attributes.get("sign") == "-",
                unit=unit,
                period_end=context.end.isoformat() if context.end else None,
                period_months=_months(context),
                dimensions="; ".join(sorted(context.members)) or None,
            )


class _Shown:
    """Finds numbers on pages by how many visible characters stand before them.

    Pages keep the order of what they show but not every blank and mark, so a number is looked for near where the count
    says, corrected by how far the last one was off, and never before it.
    """

    def __init__(self, pages: Sequence[Page]) -> None:
        self._pages = pages
        self._places = [[i for i, ch in enumerate(page.text) if not ch.isspace()] for page in pages]
        self._first = [0, *accumulate(map(len, self._places))]
        self._off = 0
        self._last = 0

    def find(self, printed: str, expected: int) -> tuple[int, int] | None:
        """Page number and offset in its text."""
        expected += self._off
        pattern = re.compile(rf"(?<![\w.,]){re.escape(printed)}(?![\d]|[.,]\d)")
        found: list[tuple[int, int, int, int]] = []
        first = max(bisect_right(self._first, max(expected - _FARTHEST, 0)) - 1, 0)
        for index in range(first, len(self._pages)):
            if self._first[index] > expected + _FARTHEST:
                break
            for match in pattern.finditer(self._pages[index].text):
                at = self._first[index] + bisect_left(self._places[index], match.start())
                if at >= self._last and abs(at - expected) <= _FARTHEST:
                    found.append((abs(at - expected), at, index + 1, match.start()))
        if not found:
            return None
        _, at, page, start = min(found)
        self._off += at - expected
        self._last = at
        return page, start


def _integer(text: str) -> int:
    return int(text) if re.fullmatch(r"[+-]?\d{1,2}", text) else 0


def _unit(measures: Sequence[str]) -> str | None:
    """USD, shares, USD/share."""
    names = [measure.rpartition(":")[2] for measure in measures]
    if names == ["pure"] or not names:
        return None
    return names[0] if len(names) == 1 else f"{names[0]}/{names[1].removesuffix('s')}"


def _months(context: _Context) -> int | None:
    if context.end is None:
        return None
    if context.start is None:
        return 0
    return round((context.end - context.start).days / 30.4) or None
