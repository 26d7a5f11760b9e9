"""Knowledge strips: passages taken apart into a few sentences or table rows each, and put together again in order."""

from collections.abc import Sequence
from dataclasses import replace

from app.evidence.quotes import units
from app.types import Hit

_SENTENCES = 3
_ROWS = 8


def decomposed(hit: Hit) -> list[Hit]:
    """The passage's strips in its order, each an exact slice of it; itself where there is but one."""
    found = units(hit.chunk)
    size = _ROWS if hit.chunk.kind == "table" else _SENTENCES
    groups = [found[i : i + size] for i in range(0, len(found), size)]
    if len(groups) < 2:
        return [hit]
    return [slice_of(hit, group[0].start, group[-1].end) for group in groups]


def recomposed(hit: Hit, strips: Sequence[Hit], kept: Sequence[bool]) -> Hit:
    """The passage from the first of its strips that is kept to the last: one slice, so that it stays one passage."""
    spans = [strip.chunk for strip, keep in zip(strips, kept, strict=True) if keep] or [hit.chunk]
    return slice_of(hit, spans[0].start - hit.chunk.start, spans[-1].end - hit.chunk.start)


def slice_of(hit: Hit, start: int, end: int) -> Hit:
    """The hit with its chunk narrowed to `text[start:end]`; offsets into the page go along, a parent does not."""
    chunk = hit.chunk
    if (start, end) == (0, len(chunk.text)):
        return hit
    narrowed = replace(chunk, start=chunk.start + start, end=chunk.start + end, text=chunk.text[start:end], parent=None)
    return replace(hit, chunk=narrowed)
