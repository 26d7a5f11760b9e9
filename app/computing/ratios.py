"""Answers a ratio or growth question: its lines searched for in the filings, the value computed, each operand cited."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.agent.actions import Actions
from app.computing.arithmetic import CalculationError
from app.computing.calculations import checked
from app.computing.formulas import LINES, STATEMENTS, Formula, Term
from app.computing.from_figures import operands_by_sql
from app.computing.operands import Operand, computed, operands
from app.evidence.citations import cite
from app.evidence.statements import worded
from app.question.periods import Period
from app.question.reading import reporting
from app.retrieval.fusion import in_order
from app.retrieval.search import Retrieval
from app.retrieval.widening import widened
from app.tools import together
from app.types import Answer, Condition, Document, Filter, Hit, Question

_POOL = 20
"""Table passages looked through for each line."""


@dataclass(frozen=True, slots=True)
class Computing:
    """One formula over one company's filings."""

    formula: Formula
    filings: tuple[Document, ...]
    """Those of the last period first: they restate the years before."""

    @property
    def _ids(self) -> tuple[str, ...]:
        return tuple(document.id for document in self.filings)

    async def answer(self, question: Question, actions: Actions) -> Answer | None:
        """None where an operand is missing, or the operands' passages are more than k."""
        lines = list(dict.fromkeys(term.line for term in self.formula.terms))
        several = await together([self._search(line, question, actions) for line in lines])
        hits = await widened(_numbered([hit for hits in several for hit in hits]), actions.tools)
        by_term = operands(self.formula, hits, self._ids)
        proven = await operands_by_sql(self.formula.terms, self.filings, question.where, actions.tools)
        by_term |= {term: each for term, each in proven.items() if not _same(each, by_term.get(term))}
        if why := _lacking(self.formula, by_term):
            actions.tools.note("not_computed", formula=self.formula.name, why=why)
            return None
        found = [by_term[term] for term in self.formula.terms]
        passages = _numbered([*(operand.hit for operand in found), *hits])[: question.k]
        if not {operand.hit.chunk.id for operand in found} <= {hit.chunk.id for hit in passages}:
            return None
        try:
            line = await self._calculated(found, actions)
        except CalculationError:
            return None
        cited = await cite(_quoted(found, passages), passages, actions.tools)
        text = f"{cited.text}\n{line}"
        return Answer(text, cited.citations, passages, notes=cited.notes, calculations=checked(text, cited.citations))

    async def _search(self, line: str, question: Question, actions: Actions) -> list[Hit]:
        query = f"{LINES[line].query} {STATEMENTS[LINES[line].statement]}"
        where = Filter(
            (
                *question.where.conditions,
                Condition("document_id", "$in", self._ids),
                Condition("kind", "$eq", "table"),
            ),
            question.where.access,
        )

        async def work() -> list[Hit]:
            asked = replace(question, text=query, k=_POOL)
            return (await Retrieval(_POOL).fused(asked, query, where, actions.tools))[: 2 * _POOL]

        arguments = {"query": query, "kind": "table", "documents": self._ids[:10]}
        thought = f"{self.formula.name} needs {line}"
        return await actions.take("search", arguments, thought, work, lambda hits: [hit.chunk.id for hit in hits[:5]])

    async def _calculated(self, found: Sequence[Operand], actions: Actions) -> str:
        async def work() -> str:
            return computed(self.formula, found)

        expression = self.formula.template.format(*(operand.written for operand in found))
        thought = f"every operand of {self.formula.name} is known"
        return await actions.take("calculate", {"expression": expression}, thought, work, lambda line: [line])


def computing(formula: Formula, filings: Sequence[Document]) -> Computing | None:
    """None where no filing of the company reports a year of the formula."""
    years = sorted({term.period.year for term in formula.terms}, reverse=True)
    chosen = {document.id: document for year in years for document in reporting(filings, Period(year))}
    return Computing(formula, tuple(chosen.values())) if chosen else None


def _same(proven: Operand, found: Operand | None) -> bool:
    """A row that gives the same number is quoted with its column's heading."""
    return found is not None and (found.written, found.scale) == (proven.written, proven.scale)


def _lacking(formula: Formula, found: Mapping[Term, Operand]) -> str:
    """Why these operands will not do; "" where they will."""
    if len(found) < len(formula.terms):
        return "a line or a year of it was not found"
    several = len({operand.scale for operand in found.values()}) > 1
    return "its numbers stand in tables of different units" if several else ""


def _numbered(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Each passage once, ranked in the order given."""
    unique = {hit.chunk.id: hit for hit in reversed(hits)}
    order = dict.fromkeys(hit.chunk.id for hit in hits)
    return tuple(in_order(unique[key] for key in order))


def _quoted(found: Sequence[Operand], passages: Sequence[Hit]) -> str:
    """A line for each row that operands were taken from, with the columns that were."""
    rank = {hit.chunk.id: hit.rank for hit in passages}
    rows: dict[tuple[str, int], list[Operand]] = {}
    for operand in found:
        rows.setdefault((operand.hit.chunk.id, operand.statement.unit.start), []).append(operand)
    return "\n".join(
        worded(
            replace(own[0].statement, marker=rank[chunk]),
            sorted({operand.column for operand in own if operand.column is not None}),
        )
        for (chunk, _), own in rows.items()
    )
