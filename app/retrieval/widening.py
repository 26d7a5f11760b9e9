"""From what was searched to what is read: a found chunk that has a parent becomes its parent, an exact page slice."""

from collections.abc import Sequence
from dataclasses import replace

from app.tools import Tools
from app.types import Chunk, Hit, Page


async def widened(hits: Sequence[Hit], tools: Tools) -> tuple[Hit, ...]:
    """The hits with their parents' text, best first, ranks from 1; hits without a parent are as they were.

    Parents of one page that overlap are read once, in the place of the best of them, so that there may be fewer hits
    than before. A chunk that its page does not hold (any more) is left alone.
    """
    keys = list(dict.fromkeys((hit.chunk.document_id, hit.chunk.page) for hit in hits if hit.chunk.parent))
    if not keys:
        return tuple(hits)
    pages = dict(zip(keys, await tools.pages(keys), strict=True))
    found: list[Hit] = []
    for hit in hits:
        page = pages.get((hit.chunk.document_id, hit.chunk.page))
        if page is None or hit.chunk.parent is None or page.text[hit.chunk.start : hit.chunk.end] != hit.chunk.text:
            found.append(hit)
            continue
        chunk = _grown(hit.chunk, page, *hit.chunk.parent)
        at = next((n for n, other in enumerate(found) if _overlap(other.chunk, chunk)), None)
        if at is None:
            found.append(replace(hit, chunk=chunk))
        else:
            start, end = min(found[at].chunk.start, chunk.start), max(found[at].chunk.end, chunk.end)
            found[at] = replace(found[at], chunk=_grown(found[at].chunk, page, start, end))
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(found, start=1))


def _overlap(a: Chunk, b: Chunk) -> bool:
    return (a.document_id, a.page) == (b.document_id, b.page) and a.start < b.end and b.start < a.end


def _grown(chunk: Chunk, page: Page, start: int, end: int) -> Chunk:
    """The chunk with this slice of its page, and without the lines of context that the slice itself holds."""
    text = page.text[start:end]
    flat = " ".join(text.split())
    context = [line for line in chunk.context.split("\n") if not all(part in flat for part in line.split(" | "))]
    return replace(chunk, start=start, end=end, text=text, context="\n".join(context), parent=None)
