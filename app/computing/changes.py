"""The change of what is no line of a statement: a table's row, or a sentence's amounts by year, that words describe."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.adapters.bm25 import query_tokens
from app.agent.actions import Actions
from app.computing.finding import Found, answered, numbered
from app.computing.formulas import Formula, Term, asked_formula
from app.computing.operands import Operand, columns_for, scale_in, written
from app.evidence.rows import read_series
from app.evidence.statements import Statement, core_question, heading_terms, statements
from app.question.companies import without_names
from app.question.lines import named_lines
from app.question.periods import Period, named_periods, without_periods
from app.question.reading import reporting
from app.retrieval.search import Retrieval
from app.retrieval.widening import widened
from app.types import Answer, Condition, Document, Hit, Question

_POOL = 20
"""Passages looked through."""
_ASIDE = frozenset(
    query_tokens(
        "what was is the by how much many percent percentage rate growth grow grew change changed increase increased"
        " decrease decreased decline declined difference net total amount balance value year over from to in of between"
        " during annual report fiscal compared yoy reported company did does rise rose fall fell higher lower more less"
        " following times larger greater ended end million thousand billion dollars"
    )
)
"""Terms that ask for a change, and do not say of what."""
_LEAST = 2
"""Terms that a description needs: one word fits rows of every table."""


@dataclass(frozen=True, slots=True)
class Change:
    """One formula over one row, described by its terms."""

    formula: Formula
    described: frozenset[str]
    filings: tuple[Document, ...]
    """Those of the last year first."""

    async def answer(self, question: Question, actions: Actions) -> Answer | None:
        """None where no row or sentence holds every term of the description and a number for every year."""
        hits = await self._search(question, actions)
        found = await asyncio.to_thread(self._best, hits)
        return await answered(self.formula, Found(found, hits), question, actions) if found else None

    async def _search(self, question: Question, actions: Actions) -> tuple[Hit, ...]:
        ids = tuple(document.id for document in self.filings)
        where = question.where.narrowed(Condition("document_id", "$in", ids))
        query = self.formula.terms[0].line

        async def work() -> list[Hit]:
            asked = replace(question, text=query, k=_POOL)
            return (await Retrieval(_POOL).fused(asked, query, where, actions.tools))[:_POOL]

        arguments = {"query": query, "documents": ids[:10]}
        hits = await actions.take(
            "search", arguments, f"{self.formula.name} needs its row", work, lambda hits: [h.chunk.id for h in hits[:5]]
        )
        return numbered(await widened(hits, actions.tools))

    def _best(self, hits: Sequence[Hit]) -> dict[Term, Operand]:
        """Of the hits' rows that fit, the one whose label says least else."""
        fitting = [one for one in statements(hits) if self._fits(one)]
        for row in sorted(fitting, key=lambda one: (len(one.terms - self.described), one.marker)):
            own = [operand for term in self.formula.terms if (operand := _operand(term, row, hits[row.marker - 1]))]
            if len(own) == len(self.formula.terms):
                return {operand.term: operand for operand in own}
        return {}

    def _fits(self, one: Statement) -> bool:
        """More than half of the description in its own words, all of it with its heading's."""
        own = self.described & one.terms
        return 2 * len(own) > len(self.described) and self.described <= own | heading_terms(one.chunk)


def asked_change(question: str, companies: Sequence[str], catalogue: Sequence[Document]) -> Change | None:
    """None where the question names a line of a statement, asks for no change, or describes too little."""
    core = without_names(core_question(question), companies)
    if named_lines(core):
        return None
    words = _described(core)
    terms = frozenset(query_tokens(words))
    formula = asked_formula(core, described=words) if len(terms) >= _LEAST else None
    if formula is None:
        return None
    own = [document for document in catalogue if document.meta.company in companies]
    years = sorted({term.period.year for term in formula.terms}, reverse=True)
    filings = {document.id: document for year in years for document in reporting(own, Period(year), whole=True)}
    return Change(formula, terms, tuple(filings.values())) if filings else None


def _described(core: str) -> str:
    """The words of a question that say whose change is asked for, in its order."""
    left = without_periods(core.rpartition(": ")[2], named_periods(core))
    return " ".join(word for word in re.findall(r"[\w&-]+", left) if set(query_tokens(word)) - _ASIDE)


def _operand(term: Term, row: Statement, hit: Hit) -> Operand | None:
    """A row's value in the year's column, or a sentence's amount for the year, which is quoted whole."""
    if row.row is not None:
        columns = columns_for(row, term.period)
        number = written(row.row.values[columns[0]]) if columns else None
        return Operand(term, hit, row, columns[0], number, scale_in(row.chunk.unit)) if number else None
    series = read_series(row.unit.text)
    if series is None or str(term.period.year) not in series[1]:
        return None
    value = series[0].values[series[1].index(str(term.period.year))]
    number = written(value)
    return Operand(term, hit, row, None, number, scale_in(f"{value}s")) if number else None
