"""Chunks of a fixed number of tokens that overlap, whatever the text's structure: the baseline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ingest.chunking.chunker import Chunker, Piece
from ingest.chunking.layout import PageLayout, Unit
from ingest.chunking.structure import tokens_of


@dataclass(frozen=True, slots=True)
class FixedChunker(Chunker):
    """Words until the limit, sentences and sections cut where it falls; of tables whole rows."""

    kind: ClassVar[str] = "fixed"

    overlap: int = 30
    """Most tokens that a chunk repeats of the one before."""

    def pieces(self, layout: PageLayout) -> Iterator[Piece]:
        held: list[Unit] = []
        tokens = most = 0
        for unit in layout.units(words=True):
            parted = bool(held) and layout.runs_between(held[-1], unit)
            if not parted and tokens + unit.tokens <= most:
                held.append(unit)
                tokens += unit.tokens
                continue
            if held:
                yield Piece(held)
            held = [*([] if parted else self._repeated(held, unit, layout)), unit]
            tokens, most = tokens_of(held), layout.limit(held[0])
        if held:
            yield Piece(held)

    def _repeated(self, held: Sequence[Unit], unit: Unit, layout: PageLayout) -> list[Unit]:
        """The end of a chunk that the next begins with: never all of it, and with room for what follows."""
        tail: list[Unit] = []
        for before in reversed(held[1:]):
            if tokens_of(tail) + before.tokens > self.overlap:
                break
            tail.insert(0, before)
        return tail if tail and tokens_of(tail) + unit.tokens <= layout.limit(tail[0]) else []
