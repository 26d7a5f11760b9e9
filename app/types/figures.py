"""Numbers of the filings, and what a query over them gives."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a filing, in a table's cell or an inline XBRL fact, and what it says."""

    document_id: str
    page: int
    """First is 1."""
    chunk_id: str | None
    """The chunk that holds it; None for a fact outside every chunk."""
    start: int
    end: int
    """The number as printed is the page's text[start:end]."""
    label: str
    """Of its row, behind the heading it stands under ("Earnings per share: Basic"); or a fact's concept in words."""
    statement: str | None
    """Title of the table, statement or note it stands in."""
    value: Decimal
    """With sign (parentheses are negative) and before `scale`."""
    scale: int
    """Power of ten that the table's unit line gives: 6 for "in millions"; 0 where none applies."""
    unit: str | None
    """USD, shares, USD/share, percent, year, ...; None where unknown."""
    column: str | None = None
    """Header of its column, as printed."""
    period_end: str | None = None
    """ISO date."""
    period_months: int | None = None
    """Length of the period; 0 is an instant; None where unknown."""
    concept: str | None = None
    """XBRL name (us-gaap:Revenues), of facts alone."""
    dimensions: str | None = None
    """XBRL members that qualify the fact; None is the whole company."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query over the figures gave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False
    """More rows matched than were asked for."""
