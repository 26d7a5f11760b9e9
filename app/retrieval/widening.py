"""From what was searched to what is read: a found chunk that has a parent becomes its parent, an exact page slice."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.tools import Tools
from app.types import Chunk, Hit, Page, Question

SPARE = 2
"""Hits searched for each passage that is to be read: parts of one table become one."""
_Key = tuple[str, int]


def with_spare(question: Question) -> Question:
    """The same question, to search more hits for than passages are to be read."""
    return replace(question, k=SPARE * question.k)


async def widened(
    hits: Sequence[Hit], tools: Tools, k: int | None = None, *, read: Sequence[Hit] = ()
) -> tuple[Hit, ...]:
    """The k best passages, ranks from 1: hits with their parents' text, those without a parent as they were.

    Parents of one page that overlap are read once, in the place of the best of them, and hits further down take the
    places that this leaves; only pages of hits that are needed are read. Without `k` all hits are taken. `read` are
    passages at hand, which stand before the hits and count. A chunk that its page does not hold (any more) is left
    alone.
    """
    found, rest = list(read), list(hits)
    room = len(found) + len(rest) if k is None else k
    while rest and len(found) < room:
        taken, rest = rest[: room - len(found)], rest[room - len(found) :]
        pages = await _pages(taken, tools)
        for hit in taken:
            _add(hit, pages, found)
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(found, start=1))


async def _pages(hits: Sequence[Hit], tools: Tools) -> Mapping[_Key, Page | None]:
    keys = list(dict.fromkeys((hit.chunk.document_id, hit.chunk.page) for hit in hits if hit.chunk.parent))
    return dict(zip(keys, await tools.pages(keys), strict=True)) if keys else {}


def _add(hit: Hit, pages: Mapping[_Key, Page | None], found: list[Hit]) -> None:
    """The hit's parent to what was found, or to the passage there that it overlaps."""
    page = pages.get((hit.chunk.document_id, hit.chunk.page))
    if page is None or hit.chunk.parent is None or page.text[hit.chunk.start : hit.chunk.end] != hit.chunk.text:
        found.append(hit)
        return
    chunk = _grown(hit.chunk, page, *hit.chunk.parent)
    at = next((n for n, other in enumerate(found) if _overlap(other.chunk, chunk)), None)
    if at is None:
        found.append(replace(hit, chunk=chunk))
    else:
        start, end = min(found[at].chunk.start, chunk.start), max(found[at].chunk.end, chunk.end)
        found[at] = replace(found[at], chunk=_grown(found[at].chunk, page, start, end))


def _overlap(a: Chunk, b: Chunk) -> bool:
    return (a.document_id, a.page) == (b.document_id, b.page) and a.start < b.end and b.start < a.end


def _grown(chunk: Chunk, page: Page, start: int, end: int) -> Chunk:
    """The chunk with this slice of its page, and without the lines of context that the slice itself holds."""
    text = page.text[start:end]
    flat = " ".join(text.split())
    context = [line for line in chunk.context.split("\n") if not all(part in flat for part in line.split(" | "))]
    return replace(chunk, start=start, end=end, text=text, context="\n".join(context), parent=None)
