"""Chunks along a filing's structure: a table with its header, prose in whole sentences, sections apart."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, Literal

from ingest.chunking.chunker import Chunker, Piece
from ingest.chunking.layout import PageLayout, Unit

_SMALL = 32
"""Tokens up to which a paragraph joins the table it introduces or explains."""
_SLIGHT = 18
"""Tokens up to which a heading or a section joins the section after it."""


@dataclass(frozen=True, slots=True)
class StructureChunker(Chunker):
    """A chunk never crosses a section that holds more than a line; a table small enough is one chunk."""

    kind: ClassVar[str] = "structure"
    version: ClassVar[int] = 3

    tables: Literal["parts", "whole"] = "whole"
    """What is read where a part of a table that was cut is found: the part, or the table as far as its page goes."""

    def pieces(self, layout: PageLayout) -> Iterator[Piece]:
        for units in packed(layout, layout.units()):
            yield Piece(units, self._parent(layout, units))

    def _parent(self, layout: PageLayout, units: Sequence[Unit]) -> tuple[int, int] | None:
        table = layout.table_of(units)
        if self.tables == "parts" or table is None:
            return None
        start, end = min(units[0].start, layout.opens(table)), max(units[-1].end, table.rows[-1].end)
        return (start, end) if (start, end) != (units[0].start, units[-1].end) else None


def packed(layout: PageLayout, units: Iterator[Unit], breaks: Set[int] = frozenset()) -> Iterator[list[Unit]]:
    """Units joined up to the limit, in order, and parted before those that begin at one of `breaks`."""
    held: list[Unit] = []
    for unit in units:
        forced = bool(held) and (unit.start in breaks or _must_break(layout, held, unit))
        if forced:
            yield held
            held = []
        elif held and tokens_of(held) + unit.tokens > layout.limit(held[0]):
            done, held = _cut(held)
            yield done
            if held and tokens_of(held) + unit.tokens > layout.limit(held[0]):
                yield held
                held = []
        held.append(unit)
    if held:
        yield held


def tokens_of(units: Sequence[Unit]) -> int:
    return sum(unit.tokens for unit in units)


def _must_break(layout: PageLayout, held: Sequence[Unit], unit: Unit) -> bool:
    if layout.runs_between(held[-1], unit):
        return True
    if unit.section != held[-1].section and not _joins(layout, held):
        return True
    if unit.table == held[-1].table:
        return False
    if unit.table >= 0 and held[0].table < 0:
        return tokens_of(held) > _SMALL
    return unit.table >= 0 or unit.tokens > _SMALL


def _joins(layout: PageLayout, held: Sequence[Unit]) -> bool:
    """Whether what is held goes with the next section: a heading, or a section of a line ("Item 6. [Reserved]").

    Alone it would be a chunk that says nothing and, for its context, comes up for every short question.
    """
    if tokens_of(held) > _SLIGHT:
        return False
    text = layout.page.text
    whole = any(cut <= held[0].start and not text[cut : held[0].start].strip() for cut in layout.cuts)
    return whole or all(unit.heading for unit in held)


def _cut(held: list[Unit]) -> tuple[list[Unit], list[Unit]]:
    """What is full and what waits for more: headings wait, and a paragraph that began late does."""
    at = len(held)
    while at > 1 and held[at - 1].heading:
        at -= 1
    if held[0].table < 0 and at == len(held):
        late = next((i for i in range(len(held) - 1, 0, -1) if held[i].opens), 0)
        if late and tokens_of(held[:late]) >= 0.6 * tokens_of(held):
            at = late
            while at > 1 and held[at - 1].heading:
                at -= 1
    return held[:at], held[at:]
