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

    async def answer(self, question: Question, tools: Tools) -> Answer:
        where, terms = await narrowed(question, tools) if self.query_filters else (question.where, question.text)
        legs = await self._legs(question, terms, tools)
        fused = await self._fused(legs, where, tools)
        if not fused and where != question.where:
            tools.note("relaxed", why="the filings named hold nothing that passes the request's filters")
            fused = await self._fused(await self._legs(question, question.text, tools), question.where, tools)
        return await answer_from(question, fused[: question.k], tools)

    async def _legs(self, question: Question, terms: str, tools: Tools) -> list[Leg]:
        pool = max(self.pool, question.k)
        [query] = await tools.embed_queries([question.text])
        return [Leg("dense", query, pool), Leg("bm25", tools.encode_sparse("bm25", terms), pool)]

    async def _fused(self, legs: list[Leg], where: Filter, tools: Tools) -> list[Hit]:
        dense, bm25 = await tools.search(legs, where)
        weights = {"dense": self.dense_weight, "bm25": self.bm25_weight}
        return rrf({"dense": dense.hits, "bm25": bm25.hits}, c=self.c, weights=weights)
