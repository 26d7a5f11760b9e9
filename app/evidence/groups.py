"""Where a table's group of rows ends: at the row that totals it, or at one reckoned from more than the group."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from app.adapters.bm25 import tokens
from app.evidence.rows import Row

_Figures = tuple[Decimal, ...]
_MOST = 100
"""Rows of a group, and as many above it, that are added up: no statement has more."""


class Group:
    """The heading that a table's rows stand under, while they are read from top to bottom."""

    def __init__(self) -> None:
        self._heading = ""
        self._members: list[_Figures] = []
        self._above: list[_Figures] = []

    def begin(self, heading: str) -> None:
        """Of the rows that follow; "" is no group."""
        self._above += self._members
        self._heading, self._members = heading, []

    def of(self, row: Row) -> str:
        """The heading that the row belongs under; "" for a result beyond the group, and a total that names it itself.

        The row ends the group where it is either. Of amounts that are not printed, as in a table cut in two, only a
        label tells.
        """
        figures, heading = _figures(row), self._heading
        beyond = bool(heading and figures) and figures in self._beyond(len(figures))
        total = row.label.lower().startswith("total") or (
            len(self._members) > 1 and bool(figures) and _sum(self._members, len(figures)) == figures
        )
        self._members.append(figures)
        if beyond or total:
            self.begin("")
        return "" if beyond or (total and set(tokens(heading)) & set(tokens(row.label))) else heading

    def _beyond(self, width: int) -> Iterator[_Figures]:
        """What the group comes to with the rows above it: added to any run of them, or taken from the last."""
        own = _sum(self._members, width)
        if own is None or not any(own):
            return
        if self._above and len(last := self._above[-1]) == width and any(last):
            yield tuple(a - b for a, b in zip(last, own, strict=True))
        for above in reversed(self._above[-_MOST:]):
            if len(above) != width:
                return
            own = tuple(a + b for a, b in zip(own, above, strict=True))
            if any(above):
                yield own


def _sum(rows: Sequence[_Figures], width: int) -> _Figures | None:
    """None of no rows, of too many, or of rows with other columns."""
    if not 0 < len(rows) <= _MOST or any(len(row) != width for row in rows):
        return None
    return tuple(sum(column, Decimal()) for column in zip(*rows, strict=True))


def _figures(row: Row) -> _Figures:
    """Its amounts, less where in parentheses; a dash is nothing, and shares in percent are left out."""
    return tuple(_figure(value) for value in row.values if "%" not in value)


def _figure(value: str) -> Decimal:
    digits = "".join(ch for ch in value if ch.isdigit() or ch == ".")
    amount = Decimal(digits) if any(map(str.isdigit, digits)) else Decimal(0)
    return -amount if value.lstrip("$€£¥").startswith(("(", "-", "−", "–")) and amount else amount
