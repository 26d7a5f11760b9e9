"""Hybrid: dense and BM25 searches in one round trip, fused by reciprocal rank (Cormack et al., 2009)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from app.answering import answer_from
from app.fusion import rrf
from app.reading import narrowed
from app.tools import Tools
from app.types import Answer, Filter, Hit, Leg, Question


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Dense and BM25 searches in parallel, fused by reciprocal rank, one generation (Cormack et al., 2009)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False

    pool: Annotated[int, Field(ge=1, le=1000, description="Candidates taken from each leg before fusion.")] = 100
    c: Annotated[float, Field(ge=0, le=10_000, description="Constant of Σ w/(c + rank).")] = 60.0
    dense_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    bm25_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    query_filters: Annotated[
        bool, Field(description="Search only the filings that the question names by company, form and period.")
    ] = True

    rerank: Annotated[
        int, Field(ge=0, le=200, description="Best candidates that the cross-encoder ranks as a further leg; 0 is off.")
    ] = 0

    async def answer(self, question: Question, tools: Tools) -> Answer:
        return await answer_from(question, await self.retrieve(question, tools), tools)

    async def retrieve(self, question: Question, tools: Tools) -> list[Hit]:
        """The k best passages."""
        where, terms = await narrowed(question, tools) if self.query_filters else (question.where, question.text)
        fused = await self.fused(question, terms, where, tools)
        if not fused and where != question.where:
            tools.note("relaxed", why="the filings named hold nothing that passes the request's filters")
            fused = await self.fused(question, question.text, question.where, tools)
        return fused[: question.k]

    async def fused(self, question: Question, terms: str, where: Filter, tools: Tools) -> list[Hit]:
        """The whole pool, best first; `terms` are what BM25 searches for."""
        pool = max(self.pool, question.k)
        [query] = await tools.embed_queries([question.text])
        legs = [Leg("dense", query, pool), Leg("bm25", tools.encode_sparse("bm25", terms), pool)]
        dense, bm25 = await tools.search(legs, where)
        ranked = {"dense": dense.hits, "bm25": bm25.hits}
        weights = {"dense": self.dense_weight, "bm25": self.bm25_weight}
        fused = rrf(ranked, c=self.c, weights=weights)
        if not (self.rerank and fused):
            return fused
        best = fused[: self.rerank]
        scored = sorted(zip(await tools.rerank(question.text, best), best, strict=True), key=lambda pair: -pair[0])
        graded = tuple(Hit(hit.chunk, rank, score) for rank, (score, hit) in enumerate(scored, start=1))
        return rrf({**ranked, "rerank": graded}, c=self.c, weights=weights)
