"""What a model says of a filing's pictures, in the filing's text: marked as the model's words, at the picture's place.

A caption stands behind all that a page prints, so that quotes of it are slices of the stored text as any other quote
is, and what is printed keeps its offsets. Figures, tables and the graph are read from what is printed alone.
"""

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.types import Box, Chunk, DocumentMeta, Page, Word

_MOST_CHARACTERS = 800
"""That fit an embedding window of 256 word pieces together with their context."""
_SPLIT = re.compile(r"\n\n(?=\[Caption by [^\n]*\]\Z)|\A(?=\[Caption by [^\n]*\]\Z)")
_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True)
class Caption:
    """A picture in words."""

    page: int
    """First is 1."""
    box: Box
    """Of the picture, on the page as displayed."""
    text: str
    model: str

    @property
    def block(self) -> str:
        """One line: what a page's text holds."""
        said = " ".join("".join(c if c.isprintable() else " " for c in self.text).translate(_BRACKETS).split())
        if len(said) > _MOST_CHARACTERS:
            said = said[:_MOST_CHARACTERS].rpartition(" ")[0] + " …"
        return f"[Caption by {' '.join(self.model.translate(_BRACKETS).split())}: {said}]"


def captioned(page: Page, captions: Sequence[Caption]) -> Page:
    """The page with its captions behind its text; each is one word, as large as its picture."""
    for caption in captions:
        if caption.page == page.number:
            gap = "\n\n" if page.text else ""
            start = len(page.text) + len(gap)
            word = Word(start, start + len(caption.block), caption.box)
            page = replace(page, text=f"{page.text}{gap}{caption.block}", words=(*page.words, word))
    return page


def printed(page: Page) -> Page:
    """The page without captions."""
    text = page.text
    while match := _SPLIT.search(text):
        text = text[: match.start()]
    return replace(page, text=text, words=tuple(word for word in page.words if word.end <= len(text)))


def figure_chunks(
    captions: Sequence[Caption], pages: Sequence[Page], chunks: Sequence[Chunk], document_id: str, meta: DocumentMeta
) -> Iterator[Chunk]:
    """One for each caption, after the document's other chunks; `pages` as `captioned` makes them."""
    for ordinal, caption in enumerate((c for c in captions if c.page <= len(pages)), start=len(chunks)):
        page = pages[caption.page - 1]
        start = page.text.rindex(caption.block)
        yield Chunk(
            id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{document_id}/caption/{ordinal}")),
            document_id=document_id,
            ordinal=ordinal,
            page=caption.page,
            start=start,
            end=start + len(caption.block),
            text=caption.block,
            context=f"{meta.title}\nPicture on page {caption.page}, in the words of a model, not of the filing",
            kind="figure",
            section=next((chunk.section for chunk in reversed(chunks) if chunk.page <= caption.page), None),
            meta=meta,
        )
