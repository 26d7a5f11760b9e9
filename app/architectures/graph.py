"""Graph: entities, relations and communities found at ingestion, followed, mapped or counted (Edge et al., 2024)."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.answering import abstain, answer_if_held
from app.architectures.hybrid import Hybrid
from app.errors import InvalidOptions, LimitExceeded
from app.evidence.citations import cite
from app.graph.asking import Asked, Mode, asked, role_of
from app.graph.communities import Community, helpfulness
from app.graph.counting import counted, resectored, scope
from app.graph.neighbourhood import around, ranked
from app.graph.sectors import named_sectors
from app.graph.summaries import Sentence, extracted, pointed_out, telling_passages
from app.graph.summaries import asked as asked_of
from app.graph.telling import told
from app.question.reading import narrowed
from app.retrieval.fusion import in_order, rrf
from app.retrieval.search import RELAXED
from app.retrieval.widening import with_spare
from app.tools import Tools
from app.types import Answer, Chunk, Entity, Filter, Hit, Question

_POOL = 100
"""Passages of the walk's ranking that are fused."""
_BEYOND = frozenset(
    ("supplier", "customer", "competitor", "lender", "acquisition", "subsidiary", "partner", "litigant", "auditor")
)
"""Relations that lead out of the filings that a question names; without one of them the walk stays in those."""
_DRIFT = 3
"""Most helpful communities from whose entities a walk begins."""
_NONE = (
    "this index keeps no graph that you may see; derive it with `sextant-ingest graph`, or ingest with GRAPH=true. "
    "Until then mode=auto answers from passages alone"
)


@dataclass(frozen=True, slots=True)
class Mapped:
    """A community beside a question."""

    helpfulness: int
    """0 to 100."""
    community: Community
    summary: tuple[Sentence, ...]
    passages: tuple[Chunk, ...]
    """What the summary is made from."""
    by_model: bool = False

    def as_trace(self) -> dict[str, Any]:
        of, told = self.community, [sentence.as_trace() for sentence in self.summary]
        known = {"label": of.label, "level": of.level, "companies": of.companies}
        return {"helpfulness": self.helpfulness, **known, "summary": told, "by_model": self.by_model}


@dataclass(frozen=True, slots=True)
class Graph:
    """Entities and relations of the filings are followed, counted, or mapped and reduced (Edge et al., 2024)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False
    needs_reranker: ClassVar[bool] = False

    mode: Annotated[
        Literal["auto", "local", "global", "drift", "count"],
        Field(
            description="Follow what the question names; map and reduce communities; follow what the most helpful of "
            "them name; count members; auto chooses and says why."
        ),
    ] = "auto"
    hops: Annotated[int, Field(ge=1, le=2, description="Steps from the question's entities: 2 follows relations.")] = 2
    seeds: Annotated[int, Field(ge=0, le=100, description="Passages from which the walk starts, besides names.")] = 20
    damping: Annotated[float, Field(ge=0, lt=1, description="Of the walk: the share of steps that are followed.")] = 0.5
    communities: Annotated[int, Field(ge=1, le=50, description="Most helpful communities that are reduced.")] = 8
    summaries: Annotated[
        Literal["extractive", "llm"],
        Field(
            description="What is said of each of those communities, and how helpful it is: sentences and a search's "
            "scores, or an LLM call each within the request's limits. Either way every sentence is a slice of a page."
        ),
    ] = "extractive"
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
            if self.mode == "count":
                if not await self._has_graph(question.where, tools):
                    raise InvalidOptions(_NONE)
                return abstain("off_corpus", ())
            tools.note("mode", mode="local", why="the graph knows nothing of what is to be counted")
        mode = "local" if taken.mode == "count" else taken.mode
        return await answer_if_held(question, await self.retrieve(with_spare(question), tools, mode), tools)

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

    async def _has_graph(self, where: Filter, tools: Tools) -> bool:
        return bool(await tools.records(Entity, where, {"type": ["company"]}))

    async def retrieve(self, question: Question, tools: Tools, mode: Mode = "local") -> list[Hit]:
        """The k best passages, by search and by what the graph makes of it."""
        where, terms = await narrowed(question, tools)
        found = await Hybrid().fused(question, terms, where, tools)
        if not found and where != question.where:
            tools.note("relaxed", why=RELAXED)
            where = question.where
            found = await Hybrid().fused(question, question.text, where, tools)
        mapped = await self._mapped(question, found, where, tools) if mode in ("global", "drift") else []
        if mode == "global" and mapped:
            return rrf({"search": found, "map": reduced(found, mapped)})[: question.k]
        keys = [key for each in mapped[:_DRIFT] for key in each.community.keys]
        reach = question.where if role_of(question.text) in _BEYOND or keys else where
        return await self._walked(question, reach, found, keys, tools)

    async def _mapped(self, question: Question, found: Sequence[Hit], where: Filter, tools: Tools) -> list[Mapped]:
        """The communities that help, the most helpful first; the trace has all that are above 0 of 100."""
        weights = {hit.chunk.id: hit.score for hit in found}
        scored = graded(await tools.communities(where), weights)[: self.communities]
        if not scored and self.mode in ("global", "drift") and not await self._has_graph(where, tools):
            raise InvalidOptions(_NONE)
        wanted = list(dict.fromkeys(each for _, community in scored for each in telling_passages(community)))
        chunks = {chunk.id: chunk for chunk in (await tools.chunks(wanted, where) if wanted else [])}
        mapped = []
        for points, community in scored:
            shown = [chunks[each] for each in telling_passages(community) if each in chunks]
            mapped.append(Mapped(points, community, extracted(community, shown), tuple(shown)))
        if self.summaries == "llm":
            mapped = await self._asked(question, mapped, tools)
        tools.note("map", communities=[each.as_trace() for each in mapped])
        return mapped

    async def _asked(self, question: Question, mapped: Sequence[Mapped], tools: Tools) -> list[Mapped]:
        """Graded anew by a model, zeros dropped; beyond the request's limit of calls, less one to answer, as before."""
        most, made = tools.limits.max_llm_calls, tools.cost.llm_calls
        calls = len(mapped) if most is None else max(0, min(len(mapped), most - made - 1))
        try:
            written = await tools.generate_all([asked_of(question.text, each.passages) for each in mapped[:calls]])
        except LimitExceeded as error:
            tools.note("not asked", why=str(error))
            return list(mapped)
        graded_anew = []
        for each, reply in zip(mapped, written, strict=False):
            if said := pointed_out(reply.text, each.passages):
                graded_anew.append(replace(each, helpfulness=said[0], summary=said[1], by_model=True))
        kept = sorted((each for each in graded_anew if each.helpfulness), key=lambda each: -each.helpfulness)
        return [*kept, *mapped[calls:]]

    async def _walked(
        self, question: Question, where: Filter, found: list[Hit], keys: Sequence[str], tools: Tools
    ) -> list[Hit]:
        seeds = found[: self.seeds]
        near = await around(question.text, seeds, where, tools, hops=self.hops, keys=keys)
        if near is None:
            tools.note("no graph", why=_NONE)
            return found[: question.k]
        similarity = {hit.chunk.id: hit.legs["dense"].score for hit in seeds if "dense" in hit.legs}
        order = await asyncio.to_thread(ranked, near, seeds, similarity, self.damping)
        order = order[: max(_POOL, question.k)]
        tools.note("walk", entities=len(near.passages), named=sorted(near.named), relations=len(near.related))
        known = {hit.chunk.id: hit.chunk for hit in found}
        missing = [each for each in order if each not in known]
        known |= {chunk.id: chunk for chunk in (await tools.chunks(missing, where) if missing else [])}
        walked = [known[each] for each in order if each in known]
        steps = [Hit(chunk, rank, 1 / rank) for rank, chunk in enumerate(walked, start=1)]
        return rrf({"search": found, "graph": steps}, weights={"graph": self.weight})[: question.k]


def graded(communities: Iterable[Community], weights: Mapping[str, float]) -> list[tuple[int, Community]]:
    """Helpfulness from 0 to 100, the best at 100 and zeros dropped; of communities that overlap, the better."""
    scored = sorted(((helpfulness(c, weights), c) for c in communities), key=lambda pair: (-pair[0], pair[1].keys))
    best = scored[0][0] if scored else 0.0
    kept: list[tuple[int, Community]] = []
    for score, community in scored:
        points = round(100 * score / best) if best else 0
        if points and not any(set(community.keys) & set(other.keys) for _, other in kept):
            kept.append((points, community))
    return kept


def reduced(found: Sequence[Hit], mapped: Sequence[Mapped]) -> list[Hit]:
    """One passage of each community in turn, so that all that help are heard.

    Within it the search's best come first, then what its summary quotes; of a summary by a model, that comes first.
    """
    queues = []
    for each in mapped:
        searched = [hit for hit in found if hit.chunk.id in each.community.passages]
        quoted = [Hit(sentence.chunk, 1, 0.0) for sentence in each.summary]
        queues.append(deque([*quoted, *searched] if each.by_model else [*searched, *quoted]))
    taken: dict[str, Hit] = {}
    while any(queues):
        for queue in queues:
            while queue and queue[0].chunk.id in taken:
                queue.popleft()
            if queue:
                hit = queue.popleft()
                taken[hit.chunk.id] = hit
    return in_order(taken.values())
