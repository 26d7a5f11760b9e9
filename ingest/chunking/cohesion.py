"""Chunks that end where the words change: semantic breakpoints by lexical cohesion (TextTiling; Hearst, 1997).

Breakpoints by embedding would need the model where a file is parsed, in a process of its own that has little memory
and no model, so that a hostile file reaches nothing else.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, pstdev
from typing import ClassVar

from app.adapters.bm25 import tokens
from ingest.chunking.chunker import Chunker, Piece
from ingest.chunking.layout import PageLayout, Unit
from ingest.chunking.structure import packed

_LEAST = 30
"""Tokens before a breakpoint counts: a topic takes more than a short sentence."""


@dataclass(frozen=True, slots=True)
class CohesionChunker(Chunker):
    """Sentences joined until the words before and after have least in common; tables as the structure has them."""

    kind: ClassVar[str] = "cohesion"

    block: int = 3
    """Sentences compared on either side."""

    def pieces(self, layout: PageLayout) -> Iterator[Piece]:
        units = list(layout.units(sentences=True))
        breaks = _spaced(units, self._breaks(layout, units))
        for group in packed(layout, iter(units), breaks):
            yield Piece(group)

    def _breaks(self, layout: PageLayout, units: Sequence[Unit]) -> set[int]:
        """Starts of the prose units before which cohesion has a valley, deeper than mean less half a deviation."""
        prose = [unit for unit in units if unit.table < 0]
        words = [Counter(tokens(layout.page.text[unit.start : unit.end])) for unit in prose]
        gaps = [
            _cosine(sum(words[max(0, n - self.block) : n], Counter()), sum(words[n : n + self.block], Counter()))
            for n in range(1, len(words))
        ]
        depths = [_depth(gaps, n) for n in range(len(gaps))]
        if not depths:
            return set()
        least = max(fmean(depths) - pstdev(depths) / 2, 1e-9)
        return {prose[n + 1].start for n, depth in enumerate(depths) if depth >= least and _lowest(gaps, n)}


def _spaced(units: Sequence[Unit], breaks: set[int]) -> set[int]:
    """The breakpoints that leave enough tokens before them."""
    kept, since = set(), 0
    for unit in units:
        if unit.start in breaks and since >= _LEAST:
            kept.add(unit.start)
            since = 0
        since += unit.tokens
    return kept


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    norms = sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(n * b[word] for word, n in a.items()) / norms if norms else 0.0


def _depth(gaps: Sequence[float], at: int) -> float:
    """How far the gap lies below the peaks on its left and right, both together."""
    return _peak(gaps[at::-1]) + _peak(gaps[at:]) - 2 * gaps[at]


def _peak(values: Sequence[float]) -> float:
    """The height that the values climb to before they first fall."""
    height = values[0]
    for value in values[1:]:
        if value < height:
            break
        height = value
    return height


def _lowest(gaps: Sequence[float], at: int) -> bool:
    """Whether neither neighbour is lower; of equals the first."""
    return (at == 0 or gaps[at] < gaps[at - 1]) and (at + 1 == len(gaps) or gaps[at] <= gaps[at + 1])
