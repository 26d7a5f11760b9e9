"""Agentic: rules first; what they leave open a model answers, and acts on, within limits (Yao et al., 2023)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from app.agent.actions import Actions
from app.agent.controller import Controller
from app.agent.loop import Agent
from app.agent.threshold import LEAST_RESIDUAL, Follow
from app.agent.toolbox import Search, SearchBy, Toolbox
from app.architectures.graph import Graph
from app.architectures.hybrid import Hybrid
from app.question.reading import narrowed
from app.tools import Tools
from app.types import Answer, Hit, Leg, Question


async def _dense(question: Question, tools: Tools) -> Sequence[Hit]:
    where, _ = await narrowed(question, tools)
    [query] = await tools.embed_queries([question.text])
    [found] = await tools.search([Leg("dense", query, question.k)], where)
    return found.hits


_SEARCHES: Mapping[SearchBy, Search] = {"hybrid": Hybrid().retrieve, "dense": _dense, "graph": Graph().retrieve}


@dataclass(frozen=True, slots=True)
class Agentic:
    """Comparisons split, ratios computed, and followed whom the evidence names, in limited steps (Yao et al., 2023)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False
    needs_reranker: ClassVar[bool] = False

    max_actions: Annotated[int, Field(ge=1, le=100, description="Tool calls; at the limit the answer is partial.")] = 24
    tool_timeout_s: Annotated[float, Field(gt=0, le=600, description="Most seconds of one tool call.")] = 30.0
    max_steps: Annotated[
        int,
        Field(
            ge=0,
            le=20,
            description="Replies in which an LLM that finds no answer judges and acts; 0 leaves it to rules.",
        ),
    ] = 3
    apart: Annotated[
        bool,
        Field(description="With an LLM: a comparison's parts each answered by itself, then joined."),
    ] = True
    max_parts: Annotated[int, Field(ge=1, le=20, description="Companies or filings compared; 1 never splits.")] = 5
    max_hops: Annotated[
        int, Field(ge=0, le=4, description="Searches that follow the evidence; of companies that it names, at most 1.")
    ] = 1
    follow: Annotated[
        Follow, Field(description="Whom the evidence names; or, whoever that is, what a passage adds to the question.")
    ] = "names"
    question_signal: Annotated[
        bool, Field(description="Hop only where the question describes someone it does not name.")
    ] = True
    least_lead: Annotated[
        float, Field(ge=0, le=2, description="Least share of the question's terms near the name of who is followed.")
    ] = 0.2
    least_residual: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Least norm of d - <d,q>q for which a passage opens a new direction; null: as measured on the "
            "collection (sextant-eval calibrate --agent), else 0.5.",
        ),
    ] = None

    async def answer(self, question: Question, tools: Tools) -> Answer:
        catalogue = await tools.catalogue()
        actions = Actions(tools.aside(), self.max_actions, self.tool_timeout_s)
        controller = Controller(
            question,
            catalogue,
            tools,
            actions,
            self.max_parts,
            self.max_hops,
            self.follow,
            self.question_signal,
            self.least_lead,
            self._least_residual(tools),
        )
        if not self.max_steps or tools.ports.generator.purposes is not None:
            return await controller.answer()
        toolbox = Toolbox(question, actions, _SEARCHES)
        return await Agent(question, controller, toolbox, self.max_steps, tools).answer(apart=self.apart)

    def _least_residual(self, tools: Tools) -> float:
        if self.least_residual is not None:
            return self.least_residual
        return tools.ports.residuals.get(self.follow, LEAST_RESIDUAL)
