"""Answers a ratio or growth question: its lines searched for in the filings, the value computed, each operand cited."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.agent.actions import Actions
from app.computing.finding import Finder, answered
from app.computing.formulas import Formula
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
        return await answered(self.formula, seen, question, actions)


def computing(formula: Formula, filings: Sequence[Document]) -> Computing | None:
    """None where no filing of the company reports a period of the formula."""
    periods = sorted({term.period for term in formula.terms}, key=lambda p: (p.year, p.quarter or 0), reverse=True)
    chosen = {document.id: document for period in periods for document in reporting(filings, period, whole=True)}
    return Computing(formula, tuple(chosen.values())) if chosen else None
