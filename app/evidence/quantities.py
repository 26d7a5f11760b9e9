"""Numbers as a person means them: with unit, scale and rounding, so that $8.7 billion is 8,738 in millions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from app.raised import unmarked

Unit = Literal["%", "money", ""]

_SCALES = {
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
    "k": 3,
    "m": 6,
    "mn": 6,
    "b": 9,
    "bn": 9,
    "tn": 12,
}
_SHIFTS = (0, 3, -3, 6, -6, 9, -9)
"""Powers of ten by which two numbers may differ where a scale is unsaid."""
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_QUANTITY = re.compile(
    r"""
    (?<![\w.,-])                                        # not the 3 of Q3, of 1.2.3, of COVID-19
    (?P<money>(?:US\s?)?[$€£]\s?)?
    [(−–-]?\s?(?P<inner>[$€£]\s?)?
    (?P<digits>(?>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))
    (?!\d|-[A-Za-z])                                    # not the 10 of 10-K
    [)\s]{0,3}
    (?P<percent>%|percent\b|per\s?cent\b|percentage\s+points?\b)?
    (?:(?<=[\d)])(?P<letter>[kKmMbB])\b|-?(?P<scale>thousands?|millions?|billions?|trillions?|[mbt]n)\b)?
    (?:\s?(?P<currency>dollars|USD)\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LABELLED = re.compile(rf"\b(?:{_MONTHS}|item|note|page|part)\.?\s*$", re.IGNORECASE)
_MONTH = re.compile(rf"\s+(?:{_MONTHS.title()})\b")
_HINT = re.compile(r"\b(?:in|of)\s+(?:US\s?D?\$?\s*)?(?P<scale>thousand|million|billion|trillion)s?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A magnitude: signs are left out, as filings write a decrease as (27), as -27 or as "decreased by 27"."""

    value: Decimal
    """As written, without the scale."""
    half: Decimal
    """Half a unit of the last significant place: what rounding may have moved it by."""
    unit: Unit = ""
    scale: int | None = None
    """Power of ten; None where the text gives none, as in a table whose heading says `in millions`."""


def quantities(text: str, hint: str = "") -> list[Quantity]:
    """In order, without dates, years, item and form numbers.

    A scale that `hint` names (a question's "in USD millions") holds for numbers that have none and are no percentage.
    """
    return [quantity for _, quantity in located(text, hint)]


def located(text: str, hint: str = "") -> list[tuple[int, Quantity]]:
    """The same, each with where its first digit stands."""
    named = _HINT.search(hint)
    default = _SCALES[named["scale"].lower()] if named else None
    text = unmarked(text)
    found = (match for match in _QUANTITY.finditer(text) if not _is_label(text, match))
    return [(match.start("digits"), _quantity(match, default)) for match in found]


def _is_label(text: str, match: re.Match[str]) -> bool:
    money = match["money"] or match["inner"] or match["currency"]
    if text[match.end("digits") :][:1].isalpha():
        return not (money or match["scale"])
    if money or match["percent"] or match["scale"]:
        return False
    year = re.fullmatch(r"(?:19|20)\d\d", match["digits"]) is not None
    year = year or _MONTH.match(text, match.end("digits")) is not None
    return year or _LABELLED.search(text, max(0, match.start() - 12), match.start()) is not None


def _quantity(match: re.Match[str], default: int | None) -> Quantity:
    digits = match["digits"].replace(",", "")
    places = len(digits.partition(".")[2].rstrip("0"))
    unit: Unit = "%" if match["percent"] else "money" if match["money"] or match["inner"] or match["currency"] else ""
    named = (match["scale"] or match["letter"] or "").lower()
    scale = _SCALES[named if named in _SCALES else named.removesuffix("s")] if named else None
    return Quantity(
        Decimal(digits), Decimal(1).scaleb(-places) / 2, unit, default if scale is None and unit != "%" else scale
    )


def matched(wanted: Quantity, found: Iterable[Quantity]) -> bool:
    """Whether any of `found` says the same."""
    return any(same(wanted, one) for one in found)


def same(a: Quantity, b: Quantity) -> bool:
    """Equal when rounded as the coarser of the two is. Units and scales must agree where both are said."""
    if a.unit and b.unit and a.unit != b.unit:
        return False
    if "%" in (a.unit, b.unit):
        return _close(a, b, 0)
    if a.scale is not None and b.scale is not None:
        return _close(a, b, b.scale - a.scale)
    return any(_close(a, b, shift) for shift in _SHIFTS)


def _close(a: Quantity, b: Quantity, shift: int) -> bool:
    value, coarser = b.value.scaleb(shift), max(a.half, b.half.scaleb(shift))
    if a.value == value:
        return True
    # Rounding to one digit would make 2 of 1.6, and 0 of anything small.
    return coarser <= a.value / 20 and abs(a.value - value) <= coarser
