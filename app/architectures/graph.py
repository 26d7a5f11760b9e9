"""Graph: entities, relations and communities found at ingestion, followed, mapped or counted (Edge et al., 2024)."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.answering import abstain, answer_from
from app.architectures.hybrid import Hybrid
from app.errors import Unavailable
from app.evidence.citations import cite
from app.graph.asking import Asked, Mode, asked, role_of
from app.graph.communities import Community, helpfulness
from app.graph.counting import counted, resectored, scope
from app.graph.neighbourhood import around, ranked
from app.graph.sectors import named_sectors
from app.graph.telling import told
from app.question.reading import narrowed
from app.retrieval.fusion import in_order, rrf
from app.tools import Tools
from app.types import Answer, Entity, Filter, Hit, Question

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
class Graph:
    """Entities and relations of the filings are followed, counted, or mapped and reduced (Edge et al., 2024)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False

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
                    raise Unavailable(_NONE)
                return abstain("off_corpus", ())
            tools.note("mode", mode="local", why="the graph knows nothing of what is to be counted")
        mode = "local" if taken.mode == "count" else taken.mode
        return await answer_from(question, await self.retrieve(question, tools, mode), tools)

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
            tools.note("relaxed", why="the filings named hold nothing that passes the request's filters")
            where = question.where
            found = await Hybrid().fused(question, question.text, where, tools)
        mapped = await self._mapped(found, where, tools) if mode in ("global", "drift") else []
        if mode == "global" and mapped:
            return rrf({"search": found, "map": reduced(found, mapped)})[: question.k]
        keys = [key for community in mapped[:_DRIFT] for key in community.keys]
        reach = question.where if role_of(question.text) in _BEYOND or keys else where
        return await self._walked(question, reach, found, keys, tools)

    async def _mapped(self, found: Sequence[Hit], where: Filter, tools: Tools) -> list[Community]:
        """The communities that help, the most helpful first; the trace has all that are above 0 of 100."""
        weights = {hit.chunk.id: hit.score for hit in found}
        scored = graded(await tools.communities(where), weights)[: self.communities]
        shown = [{"helpfulness": n, "label": c.label, "level": c.level, "companies": c.companies} for n, c in scored]
        tools.note("map", communities=shown)
        if not scored and self.mode in ("global", "drift") and not await self._has_graph(where, tools):
            raise Unavailable(_NONE)
        return [community for _, community in scored]

    async def _walked(
        self, question: Question, where: Filter, found: list[Hit], keys: Sequence[str], tools: Tools
    ) -> list[Hit]:
        seeds = found[: self.seeds]
        near = await around(question.text, seeds, where, tools, hops=self.hops, keys=keys)
        if near is None:
            tools.note("no graph", why=_NONE)
            return found[: question.k]
        similarity = {hit.chunk.id: hit.legs["dense"].score for hit in seeds if "dense" in hit.legs}
        order = ranked(near, seeds, similarity, self.damping)[: max(_POOL, question.k)]
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


def reduced(found: Sequence[Hit], communities: Sequence[Community]) -> list[Hit]:
    """One passage of each community in turn, best first within it, so that all that help are heard."""
    queues = [deque(hit for hit in found if hit.chunk.id in community.passages) for community in communities]
    taken: dict[str, Hit] = {}
    while any(queues):
        for queue in queues:
            while queue and queue[0].chunk.id in taken:
                queue.popleft()
            if queue:
                hit = queue.popleft()
                taken[hit.chunk.id] = hit
    return in_order(taken.values())
