"""One sentence or table row to search for, its neighbours to read (sentence window retrieval)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ingest.chunking.chunker import Chunker, Piece
from ingest.chunking.layout import PageLayout, Unit
from ingest.chunking.structure import tokens_of

_LEAST = 8
"""Tokens below which a sentence or a heading joins the next: alone it says nothing."""


@dataclass(frozen=True, slots=True)
class SentenceChunker(Chunker):
    """Each sentence a chunk; where one is found, `window` sentences on either side of it are read as well."""

    kind: ClassVar[str] = "sentence"

    window: int = 3

    def pieces(self, layout: PageLayout) -> Iterator[Piece]:
        groups = list(_groups(layout))
        for n, units in enumerate(groups):
            first, last = n, n
            while n - first < self.window and first and _together(layout, groups[first - 1], groups[first]):
                first -= 1
            while (
                last - n < self.window and last + 1 < len(groups) and _together(layout, groups[last], groups[last + 1])
            ):
                last += 1
            yield Piece(units, (groups[first][0].start, groups[last][-1].end) if first < last else None)


def _groups(layout: PageLayout) -> Iterator[list[Unit]]:
    held: list[Unit] = []
    for unit in layout.units(sentences=True):
        slight = bool(held) and (held[-1].heading or tokens_of(held) < _LEAST) and held[-1].table == unit.table
        if held and not (slight and not layout.runs_between(held[-1], unit)):
            yield held
            held = []
        held.append(unit)
    if held:
        yield held


def _together(layout: PageLayout, before: Sequence[Unit], after: Sequence[Unit]) -> bool:
    """Whether one is read with the other: of one section, one table or prose, with no running line between."""
    a, b = before[-1], after[0]
    return (a.section, a.table) == (b.section, b.table) and not layout.runs_between(a, b)
