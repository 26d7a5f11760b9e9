"""How a statement stands in an answer that no model writes: a sentence as it is, a row with its scale and period."""

import re
from collections.abc import Sequence

from app.evidence.statements import Statement, plain

_SCALE = re.compile(r"\b(thousand|million|billion)s?\b", re.IGNORECASE)
_OF_SHARES = re.compile(r"\W*shares in\b", re.IGNORECASE)
_EXCEPT = re.compile(r"\b(?:except|unless|other than|excluding)\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{4,}")
_SAID_OF_ALL = frozenset(
    "data amount amounts where otherwise noted indicated stated thousands millions billions".split()
)
"""Words of `except per share data` that name nothing."""
_PER_SHARE = re.compile(r"\b(?:per|a) share\b|\b(?:basic|diluted)\b", re.IGNORECASE)
_COUNTED = re.compile(
    r"%|\b(?:percent(?:age)?|rates?|ratio|margin|yield|times|multiple|price|days?|years?|number of|employees|headcount"
    r"|full-time|stores?|locations|restaurants|countries|customers|subscribers|members|units sold)\b",
    re.IGNORECASE,
)
"""Labels of rows that may stand under `in millions` without being of that scale."""


def worded(statement: Statement, columns: Sequence[int]) -> str:
    """The statement with its marker; of a row, the values of the columns in words' scale, then their headings.

    `Total assets: $5,094 million [1], for December 31, 2024 [1].` Where the table excepts such rows from its scale, or
    that cannot be told, the scale is said as the table prints it. A bracketed number in the source would read as a
    marker, so it is put in parentheses.
    """
    marker = f"[{statement.marker}]"
    if statement.row is None or not columns:
        return f"{plain(statement.unit.text)} {marker}"
    headers = "; ".join(statement.chunk.columns[i] for i in columns)
    group = statement.group if not any(ch.isdigit() for ch in statement.group) else ""
    above = f"{group.rstrip(':')}: " if group else ""
    label = plain(f"{above}{statement.row.label}").rstrip(":")
    scale = scale_of(label, statement.chunk.unit or "")
    shown = [statement.row.values[i] for i in columns]
    values = ", ".join(scaled(value, scale) for value in shown)
    unit = _printed(label, statement.chunk.unit or "") if not scale and any(map(_is_amount, shown)) else ""
    return f"{label}: {plain(values)} {marker}, for {plain(headers)}{unit} {marker}."


def scale_of(label: str, unit: str) -> str:
    """`million` of a row of money under `(In millions, except per share data)`; "" where that cannot be told."""
    everything, *excepted = _EXCEPT.split(unit, maxsplit=1)
    found = _SCALE.search(everything)
    if found is None or _COUNTED.search(label) or (_OF_SHARES.match(everything) and "share" not in label.lower()):
        return ""
    words = {word.removesuffix("s") for word in _WORD.findall(" ".join(excepted).lower())} - _SAID_OF_ALL
    of_share = excepted and ("share" in label.lower() or _PER_SHARE.search(label))
    if of_share or words & {word.removesuffix("s") for word in _WORD.findall(label.lower())}:
        return ""
    return found[1].lower()


def scaled(value: str, scale: str) -> str:
    """`$912 million`; a percentage and a dash as they are."""
    return f"{value} {scale}" if scale and _is_amount(value) else value


def _is_amount(value: str) -> bool:
    """Not a percentage, and not a dash."""
    return any(map(str.isdigit, value)) and "%" not in value


def _printed(label: str, unit: str) -> str:
    """`, in millions`, as printed; "" where the row is per share and the unit excepts those."""
    unit = unit.partition("(")[0].strip(" ,")
    if not unit or ("per share" in label.lower() and "per share" in unit):
        return ""
    return f", in {unit.lower()}" if unit.lower() in ("thousands", "millions", "billions") else f", {unit}"
