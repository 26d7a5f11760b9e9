"""Answers a ratio or growth question: its lines searched for in the filings, the value computed, each operand cited."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.agent.actions import Actions
from app.computing.arithmetic import CalculationError
from app.computing.calculations import checked
from app.computing.finding import Finder, quoted
from app.computing.formulas import Formula, Term
from app.computing.operands import Operand, computed
from app.evidence.citations import cite
from app.question.reading import reporting
from app.types import Answer, Document, Question


@dataclass(frozen=True, slots=True)
class Computing:
    """One formula over one company's filings."""

    formula: Formula
    filings: tuple[Document, ...]
    """Those of the last period first: they restate the years before."""

    async def answer(self, question: Question, actions: Actions) -> Answer | None:
        """None where an operand is missing, or the operands' passages are more than k."""
        seen = await Finder(self.filings, question, actions, self.formula.name).find(self.formula.terms)
        if why := _lacking(self.formula, seen.operands):
            actions.tools.note("not_computed", formula=self.formula.name, why=why)
            return None
        passages = seen.passages(self.formula.terms, question.k)
        if passages is None:
            return None
        found = [seen.operands[term] for term in self.formula.terms]
        try:
            line = await self._calculated(found, actions)
        except CalculationError:
            return None
        cited = await cite(quoted(found, passages), passages, actions.tools)
        text = f"{cited.text}\n{line}"
        return Answer(text, cited.citations, passages, notes=cited.notes, calculations=checked(text, cited.citations))

    async def _calculated(self, found: Sequence[Operand], actions: Actions) -> str:
        async def work() -> str:
            return computed(self.formula, found)

        expression = self.formula.template.format(*(operand.written for operand in found))
        thought = f"every operand of {self.formula.name} is known"
        return await actions.take("calculate", {"expression": expression}, thought, work, lambda line: [line])


def computing(formula: Formula, filings: Sequence[Document]) -> Computing | None:
    """None where no filing of the company reports a period of the formula."""
    periods = sorted({term.period for term in formula.terms}, key=lambda p: (p.year, p.quarter or 0), reverse=True)
    chosen = {document.id: document for period in periods for document in reporting(filings, period)}
    return Computing(formula, tuple(chosen.values())) if chosen else None


def _lacking(formula: Formula, found: Mapping[Term, Operand]) -> str:
    """Why these operands will not do; "" where they will."""
    if len(found) < len(formula.terms):
        return "a line or a year of it was not found"
    several = len({operand.scale for operand in found.values()}) > 1
    return "its numbers stand in tables of different units" if several else ""
