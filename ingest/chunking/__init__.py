"""Chunk strategies: how a filing's pages become what is searched and what is read. One is chosen per collection."""

from dataclasses import fields
from typing import Any, get_args, get_type_hints

from app.errors import InvalidOptions
from ingest.chunking.chunker import Chunker
from ingest.chunking.cohesion import CohesionChunker
from ingest.chunking.fixed import FixedChunker
from ingest.chunking.layout import estimate_tokens
from ingest.chunking.parents import ParentChunker
from ingest.chunking.sentence import SentenceChunker
from ingest.chunking.structure import StructureChunker

__all__ = ["CHUNKERS", "Chunker", "StructureChunker", "estimate_tokens", "read_chunker"]

CHUNKERS: dict[str, type[Chunker]] = {
    chunker.kind: chunker
    for chunker in (StructureChunker, FixedChunker, SentenceChunker, ParentChunker, CohesionChunker)
}
_LEAST_TOKENS = 16


def read_chunker(text: str) -> Chunker:
    """`structure`, `structure:max_tokens=256:header=none`. Raises InvalidOptions saying what there is."""
    kind, *pairs = text.strip().split(":")
    chunker = CHUNKERS.get(kind)
    if chunker is None:
        raise InvalidOptions(f"no chunker {kind!r}; there are {', '.join(CHUNKERS)}")
    hints = get_type_hints(chunker)
    known = {each.name: hints[each.name] for each in fields(chunker)}
    given: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name not in known:
            raise InvalidOptions(f"chunker {kind!r} has no parameter {name!r}; it has {', '.join(known)}")
        given[name] = _value(name, value, get_args(known[name]))
    return chunker(**given)


def _value(name: str, text: str, choices: tuple[str, ...]) -> str | int:
    if choices:
        if text not in choices:
            raise InvalidOptions(f"{name}={text!r}: it is one of {', '.join(choices)}")
        return text
    least = _LEAST_TOKENS if name == "max_tokens" else 0
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise InvalidOptions(f"{name}={text!r}: a whole number from {least} is wanted")
    return int(text)
