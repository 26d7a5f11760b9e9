"""What a reader makes of a file, whatever its format: its pages, its outline and what it declares about itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from app.types import Page
from ingest.formats.tables import Table


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark of a PDF, or a line of a contents table that links to its place."""

    title: str
    page: int
    """First is 1."""
    level: int
    """Depth, outermost is 1."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a filing states as data, in iXBRL cover facts or an EDGAR header; it outranks what prose seems to say."""

    company: str | None = None
    conformed_name: str | None = None
    """As EDGAR files it, in capitals; the cover spells it better."""
    cik: str | None = None
    ticker: str | None = None
    form: str | None = None
    """Without the mark of an amendment."""
    amended: bool = False
    fiscal_year: int | None = None
    fiscal_period: str | None = None
    period_end: date | None = None
    year_end: tuple[int, int] | None = None
    """Month and day on which the fiscal year ends."""
    filed: date | None = None
    sic: str | None = None
    """Standard Industrial Classification, four digits."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A number that inline XBRL marks, where it is shown."""

    concept: str
    """us-gaap:Revenues"""
    page: int
    """First is 1."""
    start: int
    end: int
    """Slice of the page's text: digits, without sign and currency."""
    scale: int
    """Power of ten; 0 for percent, whose number is the one shown."""
    negative: bool
    """The concept's sign, which need not be the printed one."""
    unit: str | None
    period_end: str | None
    period_months: int | None
    """0 is an instant."""
    dimensions: str | None


@dataclass(frozen=True, slots=True)
class FilingText:
    """What a file says."""

    pages: tuple[Page, ...]
    """All pages in order; those without a text layer have empty text."""
    repaired: bool = False
    """The file is damaged or its end is missing; text may be missing."""
    outline: tuple[OutlineEntry, ...] = ()
    info: Mapping[str, str] = field(default_factory=dict)
    """The file's own document information (Title, Subject, ...), without empty entries."""
    declared: Declared = Declared()
    tables: tuple[tuple[Table, ...], ...] | None = None
    """Of each page, where the reader knows them; None where the places of the pages' words tell them."""
    facts: tuple[Fact, ...] = ()
    """Of inline XBRL, in reading order."""
    displayed: Mapping[int, Page] = field(default_factory=dict)
    """By number, pages that were recognised in pictures: the same text, its words where the file as it is shows them.

    `pages` has such a page upright and straight, whichever way it lay on the scanner.
    """
    unread: tuple[int, ...] = ()
    """Numbers of the pages that are pictures of text and could not be read."""
