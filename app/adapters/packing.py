"""Chooses the best sentences and table rows of passages within a budget of tokens, for a model that reads slowly."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from app.adapters.extractive import Draft, ExtractiveGenerator, of_kind, of_period
from app.evidence.statements import Statement, shown_columns, statements, subject_of
from app.evidence.wording import scale_of, scaled
from app.prompts import brief_source
from app.types import Excerpt, Hit, OpKind, Packed

_FRAME = 30
"""Tokens of a passage's tags and number, at most."""
_SHORT = 400
"""Characters of a passage without statements that are shown."""

CountTokens = Callable[[Sequence[str]], Awaitable[list[int]]]


async def rough_count(texts: Sequence[str]) -> list[int]:
    """Of a tokenizer that is not at hand: three characters a token, as filings are full of figures."""
    return [len(text) // 3 + 1 for text in texts]


@dataclass(frozen=True, slots=True)
class StatementPacker:
    """Takes what the extractive generator would quote, then by its score the next best, as long as they fit."""

    scorer: ExtractiveGenerator
    budget: int
    """Tokens of all excerpts, sources and tags included."""
    count: CountTokens = rough_count

    async def pack(self, question: str, passages: Sequence[Hit]) -> Packed:
        draft = await asyncio.to_thread(self._draft, question, passages)
        if draft is None:
            return Packed(tuple(Excerpt(n, hit.chunk.text[:_SHORT]) for n, hit in enumerate(passages[:2], start=1)))
        quoted, short = await self.scorer.ranked(question, draft)
        ranked = list(dict.fromkeys((*quoted, *short)))
        lines = {s: told(s, shown_columns(s, question, draft.subject.periods)) for s in ranked}
        chosen = await self._fitting(ranked, lines)
        spent: dict[OpKind, int] = {"sparse": len(draft.pool), "dense": len(draft.short)}
        return Packed(_excerpts(chosen, lines), spent)

    def _draft(self, question: str, passages: Sequence[Hit]) -> Draft | None:
        """Statements that tell of the period asked for, or all where none does; None where there are none at all."""
        subject = subject_of(question, passages)
        every = statements(passages)
        pool = of_period(subject, every) or every
        pool = of_kind(question, subject, pool) or pool
        return self.scorer.draft(question, subject, pool) if pool and subject.weights else None

    async def _fitting(self, ranked: Sequence[Statement], lines: dict[Statement, str]) -> list[Statement]:
        sources = {s.marker: brief_source(s.chunk) for s in ranked}
        counts = await self.count([*lines.values(), *sources.values()])
        of_line, of_source = (
            dict(zip(lines, counts, strict=False)),
            dict(zip(sources, counts[len(lines) :], strict=True)),
        )
        left, chosen, sentences = self.budget, list[Statement](), set[str]()
        for statement in ranked:
            if statement.row is None and lines[statement] in sentences:
                continue  # filings of successive years repeat whole paragraphs
            begun = any(other.marker == statement.marker for other in chosen)
            need = of_line[statement] + (0 if begun else of_source[statement.marker] + _FRAME)
            if need <= left:
                left -= need
                chosen.append(statement)
                sentences.add(lines[statement])
        return chosen


def told(statement: Statement, columns: Sequence[int]) -> str:
    """A sentence as it stands; a row with its section's name and each value's heading, the given columns alone."""
    row, chunk = statement.row, statement.chunk
    text = " ".join(statement.unit.text.split())
    if row is None:
        return text
    unit = (chunk.unit or "").strip(" (").partition(",")[0].rstrip(" )")
    if len(chunk.columns) != len(row.values):
        headings = f" [columns: {'; '.join(chunk.columns)}]" if any(chunk.columns) else ""
        return f"{statement.group} {text}{headings}{unit and f' ({unit})'}".strip()
    label = f"{statement.group} {row.label}".strip()
    scale = scale_of(label, chunk.unit or "")
    shown = [(scaled(row.values[i], scale), chunk.columns[i]) for i in columns or range(len(row.values))]
    values = "; ".join(f"{value} ({heading})" if heading else value for value, heading in shown)
    return f"{label}: {values}" if scale_of("", unit) or not unit else f"{label}: {values} ({unit})"


def _excerpts(chosen: Sequence[Statement], lines: dict[Statement, str]) -> tuple[Excerpt, ...]:
    """In the order of their best statements, each excerpt's own in the order of the passage."""
    by_passage: dict[int, list[Statement]] = {}
    for statement in chosen:
        by_passage.setdefault(statement.marker, []).append(statement)
    return tuple(
        Excerpt(n, "\n".join(dict.fromkeys(lines[s] for s in sorted(own, key=lambda s: s.unit.start))))
        for n, own in by_passage.items()
    )
