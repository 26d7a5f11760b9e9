"""Graph: entities, relations and communities found at ingestion, followed, mapped or counted (Edge et al., 2024)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.answering import abstain, answer_from
from app.architectures.hybrid import Hybrid
from app.citations import cite
from app.errors import Unavailable
from app.fusion import rrf
from app.graph.asking import Asked, asked
from app.graph.counting import counted, resectored, scope
from app.graph.neighbourhood import around, ranked
from app.graph.sectors import named_sectors
from app.graph.telling import told
from app.reading import narrowed
from app.tools import Tools
from app.types import Answer, Entity, Hit, Question

_POOL = 100
"""Passages of the walk's ranking that are fused."""
_NONE = (
    "this index keeps no graph that you may see; derive it with `sextant-ingest graph`, or ingest with GRAPH=true. "
    "Until then mode=auto answers from passages alone"
)


@dataclass(frozen=True, slots=True)
class Graph:
    """Entities and relations of the filings are followed, counted, or mapped and reduced (Edge et al., 2024)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False

    mode: Annotated[
        Literal["auto", "local", "count"],
        Field(description="Follow what the question names; count members; auto chooses and says why."),
    ] = "auto"
    hops: Annotated[int, Field(ge=1, le=2, description="Steps from the question's entities: 2 follows relations.")] = 2
    seeds: Annotated[int, Field(ge=0, le=100, description="Passages from which the walk starts, besides names.")] = 20
    damping: Annotated[float, Field(ge=0, lt=1, description="Of the walk: the share of steps that are followed.")] = 0.5
    weight: Annotated[float, Field(ge=0, le=100, description="Of the walk's ranking against dense and BM25.")] = 1.0

    async def answer(self, question: Question, tools: Tools) -> Answer:
        taken = asked(question.text)
        if self.mode != "auto":
            taken = replace(taken, mode=self.mode, why="the option mode")
        tools.note("mode", mode=taken.mode, why=taken.why)
        if taken.mode == "count":
            answer = await self._counted(question, taken, tools)
            if answer is not None:
                return answer
            if self.mode == "count" and not await self._has_graph(question, tools):
                raise Unavailable(_NONE)
            tools.note("mode", mode="local", why="the graph knows nothing of what is to be counted")
        return await answer_from(question, await self.retrieve(question, tools), tools)

    async def _counted(self, question: Question, taken: Asked, tools: Tools) -> Answer | None:
        """Without a call to any model: members are counted in the records, and quoted from the stored pages."""
        where = await scope(question, taken, tools)
        tally = await counted(taken, where, tools)
        if tally is None or not tally.groups:
            return None
        if taken.unit == "sector" and (sectors := named_sectors(question.text)):
            tally = await resectored(tally, sectors, where, tools)
        chunks = await tools.chunks(list(dict.fromkeys(m.mention.chunk_id for m in tally.members)), question.where)
        text, hits = told(taken, tally, chunks, question.k)
        tools.emit("passages", tuple(hits))
        if not hits:
            return abstain("no_passages", ())
        cited = await cite(text, hits, tools)
        return Answer(cited.text, cited.citations, tuple(hits), notes=cited.notes)

    async def _has_graph(self, question: Question, tools: Tools) -> bool:
        return bool(await tools.records(Entity, question.where, {"type": ["company"]}))

    async def retrieve(self, question: Question, tools: Tools) -> list[Hit]:
        """The k best passages, by search and by a walk through the graph."""
        where, terms = await narrowed(question, tools)
        found = await Hybrid().fused(question, terms, where, tools)
        if not found and where != question.where:
            tools.note("relaxed", why="the filings named hold nothing that passes the request's filters")
            found = await Hybrid().fused(question, question.text, question.where, tools)
        seeds = found[: self.seeds]
        near = await around(question.text, seeds, question.where, tools, hops=self.hops)
        if near is None:
            tools.note("no graph", why=_NONE)
            return found[: question.k]
        similarity = {hit.chunk.id: hit.legs["dense"].score for hit in seeds if "dense" in hit.legs}
        order = ranked(near, seeds, similarity, self.damping)[: max(_POOL, question.k)]
        tools.note("walk", entities=len(near.passages), named=sorted(near.named), relations=len(near.relations))
        return await self._fused(question, found, order, tools)

    async def _fused(self, question: Question, found: list[Hit], order: list[str], tools: Tools) -> list[Hit]:
        known = {hit.chunk.id: hit.chunk for hit in found}
        missing = [each for each in order if each not in known]
        known |= {chunk.id: chunk for chunk in (await tools.chunks(missing, question.where) if missing else [])}
        walked = [known[each] for each in order if each in known]
        legs: Mapping[str, list[Hit]] = {
            "search": found,
            "graph": [Hit(chunk, rank, 1 / rank) for rank, chunk in enumerate(walked, start=1)],
        }
        fused = rrf(legs, weights={"graph": self.weight})
        return fused[: question.k]
