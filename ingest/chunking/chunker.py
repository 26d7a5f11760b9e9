"""What every chunk strategy does alike: pages in, exact slices with their context out."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar, Literal, NamedTuple

from app.types import Chunk, DocumentMeta, Page
from ingest.chunking.layout import Header, PageLayout, Unit, estimate_tokens
from ingest.formats.sections import Section, running_lines
from ingest.formats.tables import Table, tables

_SENTENCE_TOKENS = 50
"""Word pieces of a model's sentence of thirty words."""
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "chunks.sextant")


class Piece(NamedTuple):
    """Consecutive units that become one chunk."""

    units: Sequence[Unit]
    parent: tuple[int, int] | None = None
    """What is read where the chunk is found, a slice of its page's text; None is the chunk alone."""


@dataclass(frozen=True, slots=True)
class Chunker(ABC):
    """A strategy with its parameters. No chunk crosses a page; a table is cut between its rows alone.

    `max_tokens` bounds a chunk's text by `estimate_tokens`; the text is bounded further where its context is long, so
    that both fit an embedding window of 256 word pieces.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    max_tokens: int = 180
    header: Header = "section"
    situate: Literal["none", "model"] = "none"
    """Whether a model writes a sentence on where each chunk stands, which is searched with it (ingest.situating)."""

    @property
    def name(self) -> str:
        """Name, version and parameters: part of the index stamp and of every chunk's id.

        A parameter other than `max_tokens` is named where it is not the default: an index that was built before a
        parameter came to be stays valid.
        """
        changed = [
            f",{each.name}={value}"
            for each in fields(self)[1:]
            if each.default is not MISSING and (value := getattr(self, each.name)) != each.default
        ]
        counted = f"max_tokens={self.max_tokens},count={estimate_tokens.__name__}"
        return f"{self.kind}-{self.version}({counted}{''.join(changed)})"

    @abstractmethod
    def pieces(self, layout: PageLayout) -> Iterator[Piece]:
        """One page's, in order: every unit is in at least one."""

    def chunks(
        self,
        document_id: str,
        meta: DocumentMeta,
        pages: Sequence[Page],
        sections: Sequence[Section],
        found_tables: Sequence[Sequence[Table]] | None = None,
    ) -> list[Chunk]:
        """The document's chunks in reading order.

        Every chunk's text is exactly page.text[start:end]; only white space and running headers and footers are in no
        chunk. `context` names the document and the section and repeats the header of a table cut across chunks.
        `found_tables` are those of each page; None finds them from the places of its words.
        """
        found: list[Chunk] = []
        above: tuple[str, int] | None = None
        kept_free = _SENTENCE_TOKENS if self.situate == "model" else 0
        of_pages = map(tables, pages) if found_tables is None else found_tables
        for page, running, on_page in zip(pages, running_lines(pages), of_pages, strict=True):
            if not page.text.strip():
                continue
            layout = PageLayout(self.max_tokens, self.header, meta, page, on_page, running, sections, above, kept_free)
            found += [
                self._chunk(piece, layout, document_id, len(found) + n) for n, piece in enumerate(self.pieces(layout))
            ]
            above = layout.last_header()
        return found

    def _chunk(self, piece: Piece, layout: PageLayout, document_id: str, ordinal: int) -> Chunk:
        first, last = piece.units[0], piece.units[-1]
        table = layout.table_of(piece.units)
        return Chunk(
            id=str(uuid.uuid5(_NAMESPACE, f"{document_id}/{self.name}/{ordinal}")),
            document_id=document_id,
            ordinal=ordinal,
            page=layout.page.number,
            start=first.start,
            end=last.end,
            text=layout.page.text[first.start : last.end],
            context=layout.context(first, last.section),
            kind="table" if table else "text",
            section=layout.sections[last.section].title if last.section >= 0 else None,
            meta=layout.meta,
            columns=table.columns if table else (),
            unit=table.unit if table else None,
            parent=piece.parent,
        )
