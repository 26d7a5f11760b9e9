"""Small chunks to search, the section's part of the page or the page to read (parent-child retrieval)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Literal

from ingest.chunking.chunker import Chunker, Piece
from ingest.chunking.layout import PageLayout
from ingest.chunking.structure import packed


@dataclass(frozen=True, slots=True)
class ParentChunker(Chunker):
    """Children as the structure gives them, but small; those of one parent are read once, as the parent."""

    kind: ClassVar[str] = "parent"

    max_tokens: int = 80
    parent: Literal["section", "page"] = "section"

    def pieces(self, layout: PageLayout) -> Iterator[Piece]:
        children = list(packed(layout, layout.units()))
        for _, family in groupby(children, key=lambda units: units[-1].section if self.parent == "section" else 0):
            members = list(family)
            span = (members[0][0].start, members[-1][-1].end)
            for units in members:
                yield Piece(units, span if len(members) > 1 else None)
