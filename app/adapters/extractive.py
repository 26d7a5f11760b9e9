"""The generator without a model: the best supported sentences and table rows of the passages, quoted as they stand."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import numpy as np
from rank_bm25 import BM25Okapi

from app.adapters.bm25 import query_tokens, tokens
from app.ports import Embedder
from app.quotes import Unit, units
from app.rows import Row, read_row
from app.types import Chunk, Generation, Hit, Prompt

_YEAR = re.compile(r"\b(?:FY\s?'?)?((?:19|20)\d\d)\b", re.IGNORECASE)
_BRACKETED = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)*)\]")
_SHORTEST = 20
"""Characters below which a unit without figures is a heading, not a statement."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit of a passage, and what speaks for it."""

    marker: int
    chunk: Chunk
    unit: Unit
    row: Row | None
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExtractiveGenerator:
    """Scores units lexically (BM25 over the small pool) and by embedding, quotes the best, writes nothing of its own.

    score = lexical/max(lexical) + cosine + prior/rank + period, each term in about [0, 1].
    """

    embedder: Embedder
    shortlist: int = 32
    """Units that are embedded, the lexically best."""
    statements: int = 3
    """Most units quoted."""
    prior: float = 0.2
    """Weight of the passage's rank."""
    period: float = 0.2
    """Weight of a table that has a column of the year asked for."""
    keep: float = 0.85
    """Share of the best score that a further statement needs."""

    @property
    def name(self) -> str:
        return "extractive"

    @property
    def purposes(self) -> frozenset[str]:
        return frozenset({"answer"})

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Generation]:
        generation = await self.generate(prompt)
        for line in generation.text.splitlines(keepends=True):
            yield line
        yield generation

    async def generate(self, prompt: Prompt) -> Generation:
        pool = _candidates(prompt.passages)
        if not pool:
            return Generation("", abstained="not_supported")
        lexical = _lexical(prompt.question, pool)
        best = np.argsort(-(lexical + self.prior * _priors(pool)), kind="stable")[: self.shortlist]
        short = [pool[i] for i in best]
        [query] = await self.embedder.queries([prompt.question])
        cosine = await self.embedder.passages([_described(c) for c in short]) @ query
        years = frozenset(_YEAR.findall(prompt.question))
        periods = np.array([bool(_columns_of(c, years)) for c in short], dtype=float)
        scores = lexical[best] + cosine + self.prior * _priors(short) + self.period * periods
        order = np.argsort(-scores, kind="stable")
        ranked = [(short[i], float(scores[i])) for i in order]
        text = "\n".join(_statement(c, years) for c in self._chosen(ranked))
        return Generation(text, ops={"sparse": len(pool), "dense": len(short)})

    def _chosen(self, ranked: Sequence[tuple[Candidate, float]]) -> list[Candidate]:
        """The best and those near it that say something else."""
        chosen: list[Candidate] = []
        for candidate, score in ranked:
            if len(chosen) == self.statements or score < self.keep * ranked[0][1]:
                break
            if all(_overlap(candidate, other) < 0.6 for other in chosen):
                chosen.append(candidate)
        return chosen


def _candidates(passages: Sequence[Hit]) -> list[Candidate]:
    pool = []
    for marker, hit in enumerate(passages, start=1):
        for unit in units(hit.chunk):
            row = read_row(unit.text)
            if row is None and (len(unit.text) < _SHORTEST or hit.chunk.kind == "table"):
                continue
            pool.append(Candidate(marker, hit.chunk, unit, row, tuple(tokens(unit.text))))
    return pool


def _lexical(question: str, pool: Sequence[Candidate]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """BM25 over the pool, each unit with its section's words, scaled so that the best is 1."""
    documents = [list(c.terms) + tokens(c.chunk.section or "") for c in pool]
    if not any(documents):
        return np.zeros(len(pool))
    scores = np.maximum(BM25Okapi(documents).get_scores(query_tokens(question)), 0.0)
    return np.asarray(scores / (scores.max() or 1.0))


def _priors(pool: Sequence[Candidate]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([1.0 / c.marker for c in pool])


def _described(candidate: Candidate) -> str:
    section = candidate.chunk.section
    return f"{section}: {candidate.unit.text}" if section else candidate.unit.text


def _columns_of(candidate: Candidate, years: frozenset[str]) -> list[int]:
    """Positions of the row's values whose column is headed by a year asked for; empty where that cannot be told."""
    columns, row = candidate.chunk.columns, candidate.row
    if row is None or len(columns) != len(row.values):
        return []
    return [i for i, header in enumerate(columns) if years & set(_YEAR.findall(header))]


def _statement(candidate: Candidate, years: frozenset[str]) -> str:
    """The unit and its marker; of a row, the value of the year asked for, then its column and unit as a sentence.

    A bracketed number in the source would read as a marker, so it is put in parentheses.
    """
    marker = f"[{candidate.marker}]"
    columns = _columns_of(candidate, years)
    if candidate.row is None or not columns:
        return f"{_plain(candidate.unit.text)} {marker}"
    values = ", ".join(candidate.row.values[i] for i in columns)
    headers = "; ".join(candidate.chunk.columns[i] for i in columns)
    said = f"{_plain(candidate.row.label)}: {_plain(values)} {marker}."
    unit = f", {candidate.chunk.unit}" if candidate.chunk.unit else ""
    return f"{said} Column as headed: {_plain(headers)}{unit} {marker}."


def _plain(text: str) -> str:
    return _BRACKETED.sub(r"(\1)", " ".join(text.split()))


def _overlap(a: Candidate, b: Candidate) -> float:
    left, right = set(a.terms), set(b.terms)
    return len(left & right) / (min(len(left), len(right)) or 1)
