"""Hybrid: dense and BM25 searches in one round trip, fused by reciprocal rank (Cormack et al., 2009)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from app.answering import answer_from, answer_if_held
from app.question.rewriting import Rewrite
from app.retrieval.fusion import Fusion
from app.retrieval.search import Retrieval
from app.retrieval.widening import with_spare
from app.tools import Tools
from app.types import Answer, Filter, Hit, Question


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Dense and BM25 searches in parallel, fused by reciprocal rank, one generation (Cormack et al., 2009)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False
    needs_reranker: ClassVar[bool] = False

    pool: Annotated[int, Field(ge=1, le=1000, description="Candidates taken from each leg before fusion.")] = 100
    c: Annotated[float, Field(ge=0, le=10_000, description="Constant of Σ w/(c + rank).")] = 60.0
    fusion: Annotated[
        Fusion,
        Field(description="Legs joined by reciprocal ranks, or by their scores, standardised over all candidates."),
    ] = "ranks"
    dense_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    bm25_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    splade_weight: Annotated[
        float | None,
        Field(ge=0, le=100, description="Of learned sparse vectors, a third leg; null: 1 where the index has them."),
    ] = None
    query_filters: Annotated[
        bool, Field(description="Search only the filings that the question names by company, form and period.")
    ] = True

    rerank: Annotated[
        int, Field(ge=0, le=200, description="Best candidates reordered with a cross-encoder's scores; 0 is off.")
    ] = 0

    late: Annotated[
        int, Field(ge=0, le=100, description="Best candidates reordered with MaxSim over their tokens; 0 is off.")
    ] = 0
    rewrite: Annotated[
        Rewrite,
        Field(
            description="Search in other words too: filings' words for the question's (expand), its parts (decompose), "
            "the question behind it (step_back, needs an LLM) or other wordings (multi_query)."
        ),
    ] = "none"

    def __post_init__(self) -> None:
        if not (self.dense_weight or self.bm25_weight or self.splade_weight):
            raise ValueError("a leg needs a weight above 0: dense_weight, bm25_weight or splade_weight")

    async def answer(self, question: Question, tools: Tools) -> Answer:
        answer = answer_if_held if self.query_filters else answer_from
        return await answer(question, await self.retrieve(with_spare(question), tools), tools)

    async def retrieve(self, question: Question, tools: Tools) -> list[Hit]:
        """The k best passages."""
        third = float("splade" in tools.ports.sparse) if self.splade_weight is None else self.splade_weight
        return await self._retrieval(third).best(question, tools, narrow=self.query_filters)

    async def fused(self, question: Question, terms: str, where: Filter, tools: Tools) -> list[Hit]:
        """The whole pool, best first; `terms` are what BM25 searches for."""
        return await self._retrieval(self.splade_weight or 0.0).fused(question, terms, where, tools)

    def _retrieval(self, splade_weight: float) -> Retrieval:
        return Retrieval(
            self.pool,
            self.c,
            self.dense_weight,
            self.bm25_weight,
            self.rerank,
            splade_weight,
            self.rewrite,
            self.late,
            self.fusion,
        )
