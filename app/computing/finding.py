"""Searches the statements of a company's filings for the numbers of lines, and quotes the rows that have them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.agent.actions import Actions
from app.computing.arithmetic import CalculationError
from app.computing.calculations import checked
from app.computing.formulas import Formula, Term
from app.computing.from_figures import operands_by_sql
from app.computing.operands import Operand, computed, operands
from app.evidence.citations import cite
from app.evidence.statements import like_columns
from app.evidence.wording import worded
from app.question.lines import LINES, STATEMENTS
from app.retrieval.fusion import in_order
from app.retrieval.search import Retrieval
from app.retrieval.widening import widened
from app.tools import together
from app.types import Answer, Condition, Document, Hit, Question

_POOL = 20
"""Table passages looked through for each line."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of some terms."""

    operands: Mapping[Term, Operand]
    """Those found."""
    hits: tuple[Hit, ...]
    """The passages looked through, each once."""

    def passages(self, terms: Sequence[Term], k: int) -> tuple[Hit, ...] | None:
        """The terms' own passages first, then others; None where the k hold them not all."""
        own = [self.operands[term].hit for term in terms]
        shown = numbered([*own, *self.hits])[:k]
        return shown if {hit.chunk.id for hit in own} <= {hit.chunk.id for hit in shown} else None


@dataclass(frozen=True, slots=True)
class Finder:
    """One request's search for terms in some filings, those to believe first."""

    filings: tuple[Document, ...]
    question: Question
    actions: Actions
    purpose: str
    """What the numbers are for, as the trace tells it."""

    async def find(self, terms: Sequence[Term]) -> Found:
        """Rows of the statements that retrieval finds; a year's number that the figures' table proves goes before."""
        lines = list(dict.fromkeys(term.line for term in terms))
        several = await together([self._search(line) for line in lines])
        hits = numbered(await widened(numbered([hit for hits in several for hit in hits]), self.actions.tools))
        ids = [document.id for document in self.filings]
        by_term = await asyncio.to_thread(operands, terms, hits, ids)
        years = [term for term in terms if term.period.quarter is None and term.period.day is None]
        proven = await operands_by_sql(years, self.filings, self.question.where, self.actions.tools)
        by_term |= {term: each for term, each in proven.items() if not _same(each, by_term.get(term))}
        return Found(by_term, hits)

    async def _search(self, line: str) -> list[Hit]:
        query = f"{LINES[line].query} {STATEMENTS[LINES[line].statement]}"
        ids = tuple(document.id for document in self.filings)
        named = (Condition("document_id", "$in", ids), Condition("kind", "$eq", "table"))
        where = self.question.where.narrowed(*named)

        async def work() -> list[Hit]:
            asked = replace(self.question, text=query, k=_POOL)
            return (await Retrieval(_POOL).fused(asked, query, where, self.actions.tools))[: 2 * _POOL]

        arguments = {"query": query, "kind": "table", "documents": ids[:10]}
        thought = f"{self.purpose} needs {line}"
        return await self.actions.take(
            "search", arguments, thought, work, lambda hits: [hit.chunk.id for hit in hits[:5]]
        )


def _same(proven: Operand, found: Operand | None) -> bool:
    """A row that gives the same number is quoted with its column's heading."""
    return found is not None and (found.written, found.scale) == (proven.written, proven.scale)


def numbered(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Each passage once, ranked in the order given."""
    unique = {hit.chunk.id: hit for hit in reversed(hits)}
    order = dict.fromkeys(hit.chunk.id for hit in hits)
    return tuple(in_order(unique[key] for key in order))


def quoted(found: Sequence[Operand], passages: Sequence[Hit], *, beside: bool = False) -> str:
    """A line for each row that operands were taken from, with the columns that were, or the like ones beside, too."""
    rank = {hit.chunk.id: hit.rank for hit in passages}
    rows: dict[tuple[str, int], list[Operand]] = {}
    for operand in found:
        rows.setdefault((operand.hit.chunk.id, operand.statement.unit.start), []).append(operand)
    lines = []
    for (chunk, _), own in rows.items():
        row = replace(own[0].statement, marker=rank[chunk])
        columns = sorted({operand.column for operand in own if operand.column is not None})
        lines.append(worded(row, like_columns(row, columns) if beside else columns))
    return "\n".join(lines)


async def answered(formula: Formula, seen: Found, question: Question, actions: Actions) -> Answer | None:
    """The formula's value behind the rows that its numbers stand in; None where some are missing or do not fit."""
    if why := _lacking(formula, seen.operands):
        actions.tools.note("not_computed", formula=formula.name, why=why)
        return None
    passages = seen.passages(formula.terms, question.k)
    if passages is None:
        return None
    found = [seen.operands[term] for term in formula.terms]
    try:
        line = await _calculated(formula, found, actions)
    except CalculationError:
        return None
    cited = await cite(quoted(found, passages), passages, actions.tools)
    text = f"{cited.text}\n{line}"
    return Answer(text, cited.citations, passages, notes=cited.notes, calculations=checked(text, cited.citations))


async def _calculated(formula: Formula, found: Sequence[Operand], actions: Actions) -> str:
    async def work() -> str:
        return computed(formula, found)

    expression = formula.template.format(*(operand.written for operand in found))
    thought = f"every operand of {formula.name} is known"
    return await actions.take("calculate", {"expression": expression}, thought, work, lambda line: [line])


def _lacking(formula: Formula, found: Mapping[Term, Operand]) -> str:
    """Why these operands will not do; "" where they will."""
    if len(found) < len(formula.terms):
        return "a line or a year of it was not found"
    several = len({operand.scale for operand in found.values()}) > 1
    return "its numbers stand in tables of different units" if several else ""
