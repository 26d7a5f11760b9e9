"""Agentic: parts of a question searched one by one, and a second hop where the evidence names who is meant."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from app.actions import Actions
from app.answering import abstain, answer_from
from app.architectures.hybrid import Hybrid
from app.citations import cite
from app.decomposition import SubQuestion, decompose
from app.errors import LimitExceeded, Timeout
from app.findings import Finding, joined
from app.hops import Lead, leads, points_beyond, residual, resolved
from app.reading import named_companies, read, without_names
from app.statements import plain
from app.tools import Tools, together
from app.types import Answer, Condition, Document, Filter, Hit, Question

_STOPPED = (LimitExceeded, Timeout)
_SHOWN = 20
"""Most ids put into a trace."""


@dataclass(frozen=True, slots=True)
class Agentic:
    """Plan, act and judge over search, pages, figures and arithmetic, within limits (Yao et al., 2023)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False

    max_actions: Annotated[int, Field(ge=1, le=100, description="Tool calls; at the limit the answer is partial.")] = 12
    max_parts: Annotated[int, Field(ge=1, le=20, description="Companies or filings compared; 1 never splits.")] = 5
    max_hops: Annotated[int, Field(ge=0, le=5, description="Companies followed that only the evidence names.")] = 1
    question_signal: Annotated[
        bool, Field(description="Hop only where the question describes someone it does not name.")
    ] = True
    least_lead: Annotated[
        float, Field(ge=0, le=2, description="Least share of the question's terms near the name of who is followed.")
    ] = 0.2
    residual: Annotated[
        float, Field(ge=0, le=1, description="Least norm of d - <d,q>q for which a passage opens a new direction.")
    ] = 0.5
    tool_timeout_s: Annotated[float, Field(gt=0, le=600, description="Most seconds of one tool call.")] = 30.0

    async def answer(self, question: Question, tools: Tools) -> Answer:
        actions = Actions(tools, self.max_actions, self.tool_timeout_s)
        catalogue = await tools.catalogue()
        parts = decompose(question.text, catalogue, most=self.max_parts) if self.max_parts > 1 else []
        tools.note("plan", parts=[part.about for part in parts], points_beyond=points_beyond(question.text))
        if parts:
            return await self._compared(question, parts, actions)
        return await self._followed(question, catalogue, actions)

    async def _compared(self, question: Question, parts: Sequence[SubQuestion], actions: Actions) -> Answer:
        """Each part searched and answered from its own passages, all at once."""
        rooms = [question.k // len(parts) + (n < question.k % len(parts)) for n in range(len(parts))]
        found = await together(
            [self._part(question, part, room, actions) for part, room in zip(parts, rooms, strict=True) if room]
        )
        return joined(found, question.k)

    async def _part(self, question: Question, part: SubQuestion, room: int, actions: Actions) -> Finding:
        hits: list[Hit] = []
        try:
            hits = await self._searched(question, part, room, actions)
            asked = replace(question, text=part.text, k=room)
            return Finding(part.about, await answer_from(asked, hits, actions.tools))
        except _STOPPED as error:
            return Finding(part.about, abstain("limit", hits, str(error)))

    async def _searched(self, question: Question, part: SubQuestion, room: int, actions: Actions) -> list[Hit]:
        named = Condition("document_id", "$in", part.documents)
        where = Filter((*question.where.conditions, named), question.where.access) if part.documents else question.where
        asked = replace(question, text=part.text, k=room)

        async def work() -> list[Hit]:
            return (await Hybrid().fused(asked, part.terms, where, actions.tools))[:room]

        arguments = {"query": part.text, "documents": part.documents[:_SHOWN]}
        return await actions.take("search", arguments, f"{part.about} is one part of the comparison", work, _ids)

    async def _followed(self, question: Question, catalogue: Sequence[Document], actions: Actions) -> Answer:
        """One search; where its evidence names whom the question only describes, a second in that company's filings."""
        hits: list[Hit] = []
        try:
            hits = await self._first(question, actions)
            lead = await self._lead(question, hits, catalogue, actions.tools)
            if lead is not None:
                found = await self._hop(question, hits, lead, catalogue, actions)
                if not found[-1].answer.abstained:
                    return joined(found, question.k)
                hits = list(joined(found, question.k).passages)
            return await answer_from(question, hits, actions.tools)
        except _STOPPED as error:
            return abstain("limit", hits, str(error))

    async def _first(self, question: Question, actions: Actions) -> list[Hit]:
        async def work() -> list[Hit]:
            return await Hybrid().retrieve(question, actions.tools)

        return await actions.take("search", {"query": question.text}, "the question as it stands", work, _ids)

    async def _lead(
        self, question: Question, hits: Sequence[Hit], catalogue: Sequence[Document], tools: Tools
    ) -> Lead | None:
        """Whom to follow; None where the question is about what it names, or the evidence names nobody new."""
        if not self.max_hops or (self.question_signal and not points_beyond(question.text)):
            return None
        found = [lead for lead in leads(question.text, hits, catalogue) if lead.score >= self.least_lead]
        if not found:
            return None
        [query] = await tools.embed_queries([question.text])
        [passage] = await tools.embed_passages([found[0].hit.chunk.searchable])
        opened = residual(passage, query)[1]
        tools.note("lead", company=found[0].company, score=round(found[0].score, 3), residual=round(opened, 3))
        return found[0] if opened >= self.residual else None

    async def _hop(
        self,
        question: Question,
        hits: Sequence[Hit],
        lead: Lead,
        catalogue: Sequence[Document],
        actions: Actions,
    ) -> list[Finding]:
        """What names the company, quoted, and the question asked of that company's filings."""
        room = question.k - question.k // 3
        naming = await self._named(lead, hits, question.k - room, actions.tools)
        text = resolved(question.text, lead.company)
        asked = sorted(named_companies(question.text, catalogue))
        filings = read(f"{lead.company} {without_names(question.text, asked)}", catalogue).documents
        part = SubQuestion(without_names(text, asked), filings, lead.company, (lead.company,))
        found = await self._part(question, part, room, actions)
        return [naming, found]

    async def _named(self, lead: Lead, hits: Sequence[Hit], room: int, tools: Tools) -> Finding:
        """The sentence that names the company, cited; its passage first."""
        rest = [hit for hit in hits if hit.chunk.id != lead.hit.chunk.id]
        passages = [replace(hit, rank=rank) for rank, hit in enumerate((lead.hit, *rest), start=1)][: max(room, 1)]
        sentence = lead.unit.text if lead.unit else lead.hit.chunk.meta.title
        cited = await cite(f"{plain(sentence)} [1]", passages, tools)
        return Finding("", Answer(cited.text, cited.citations, tuple(passages), notes=cited.notes))


def _ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.chunk.id for hit in hits[:_SHOWN]]
