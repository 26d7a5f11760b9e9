"""Passages of a retrieval set's long documents, and BM25 over them in memory."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from app.adapters.bm25 import Bm25Encoder, tokens
from app.types import FloatArray

PASSAGE_CHARS = 900
"""What a cross-encoder of 256 tokens can read beside the question, tables full of digits included."""


def passages_of(text: str, size: int = PASSAGE_CHARS) -> list[str]:
    """Whole lines up to `size` characters each; a longer line is cut at its words. Never empty."""
    passages: list[str] = []
    held = ""
    for piece in (piece for line in text.splitlines() for piece in _cut(line, size)):
        if held and len(held) + 1 + len(piece) > size:
            passages.append(held)
            held = ""
        held = f"{held}\n{piece}" if held else piece
    return [*passages, held] if held or not passages else passages


def _cut(line: str, size: int) -> Iterable[str]:
    while len(line) > size:
        end = line.rfind(" ", 1, size + 1)
        end = size if end < 0 else end
        yield line[:end]
        line = line[end:].lstrip()
    if line.strip():
        yield line


class Bm25Index:
    """The service's BM25, its mean length and IDF taken from these texts."""

    def __init__(self, texts: Sequence[str], encoder: Bm25Encoder | None = None) -> None:
        lengths = [len(tokens(text)) for text in texts]
        mean = sum(lengths) / max(len(lengths), 1)
        self._encoder = replace(encoder or Bm25Encoder(), average_length=max(mean, 1.0))
        self._n = len(texts)
        postings: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for position, vector in enumerate(self._encoder.passages(texts)):
            for index, value in zip(vector.indices, vector.values, strict=True):
                postings[index].append((position, value))
        self._postings = {
            index: (np.array([p for p, _ in found]), np.array([v for _, v in found], np.float32))
            for index, found in postings.items()
        }

    def scores(self, query: str) -> FloatArray:
        """One score per text, in the texts' order."""
        scores = np.zeros(self._n, np.float32)
        [vector] = self._encoder.queries([query])
        for index, count in zip(vector.indices, vector.values, strict=True):
            if index in self._postings:
                positions, values = self._postings[index]
                idf = np.log((self._n - len(positions) + 0.5) / (len(positions) + 0.5) + 1)
                scores[positions] += np.float32(count * idf) * values
        return scores
