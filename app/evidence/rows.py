"""A table row's label and values, read from its line."""

import re
from dataclasses import dataclass

from app.raised import RAISED

_CURRENCY = frozenset("$€£¥")
_VALUE = re.compile(
    r"[$€£¥]?\(?[$€£¥]?[-−–]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?\)?%?\)?|[—–-]+%?|n/?[am]|NM", re.IGNORECASE
)
_TAIL = re.compile(r"[)%]+|pts?\.?|bps\.?")
_DATELINE = re.compile(
    r"\W*(?:(?:for|the|as|of|at|and|or|in|fiscal|years?|quarters?|months?|weeks?|days?|periods?|ended|ending|three|six|nine"
    r"|twelve|note|page|item|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|in|except|per|share|amounts?|data|dollars?|thousands|millions|billions)\b\W*|\d+\W*)+",
    re.IGNORECASE,
)
"""A heading of dates or page references, whose numbers are no values."""


@dataclass(frozen=True, slots=True)
class Row:
    label: str
    values: tuple[str, ...]
    """As printed but for raised marks, `$` and `%` glued on: `("$5,363", "(1,577)", "—")`."""

    @property
    def figures(self) -> int:
        return sum(any(ch.isdigit() for ch in value) for value in self.values)


def read_row(line: str) -> Row | None:
    """`Purchases of PP&E $ (1,577) $ (1,373)` -> label and two values; None where the line ends in no value."""
    words = RAISED.sub("", line).split()
    values: list[str] = []
    while words:
        word = words[-1]
        if _TAIL.fullmatch(word) and len(words) > 1:
            words[-2:] = [words[-2] + word]
        elif word in _CURRENCY and values:
            values[-1] = words.pop() + values[-1]
        elif _VALUE.fullmatch(word):
            values.append(words.pop())
        else:
            break
    label = " ".join(words).strip(" .:…")
    if not values or not label or _DATELINE.fullmatch(label):
        return None
    row = Row(label, tuple(reversed(values)))
    return row if row.figures else None


_YEAR = r"(?:(?:fiscal )?(?:years? )?)?(?:19|20)\d\d"
_YEARS = re.compile(rf"(?<!Q\d )\b{_YEAR}(?:, {_YEAR})*,? and {_YEAR}\b")
_AMOUNT = r"[$€£¥]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:%| (?:thousand|million|billion)\b)?"
_AMOUNTS = re.compile(rf"(?<![\w$.,]){_AMOUNT}(?:, {_AMOUNT})*,? and {_AMOUNT}(?![\w,.]*\d)")


def read_series(sentence: str) -> tuple[Row, tuple[str, ...]] | None:
    """`Rent was $7.4 million and $9.3 million in 2009 and 2008, respectively.` -> a row and the years of its values.

    None unless there is one list of years and one of as many amounts.
    """
    if "respectively" not in sentence:
        return None
    flat = " ".join(sentence.split())
    years = list(_YEARS.finditer(flat))
    amounts = [match for match in _AMOUNTS.finditer(flat) if not _YEARS.fullmatch(match[0])]
    if len(years) != 1 or len(amounts) != 1:
        return None
    heads = tuple(re.findall(r"(?:19|20)\d\d", years[0][0]))
    values = tuple(re.findall(_AMOUNT, amounts[0][0]))
    label = flat[: amounts[0].start()] + flat[amounts[0].end() :]
    return (Row(label, values), heads) if len(heads) == len(values) else None
