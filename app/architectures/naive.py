"""Naive RAG: one dense search, k passages, one generation (Lewis et al., 2020, reduced)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from app.answering import Decoding, answer_from
from app.retrieval.widening import SPARE
from app.tools import Tools
from app.types import Answer, Leg, Question


@dataclass(frozen=True, slots=True)
class Naive:
    """One dense search, k passages, one generation (Lewis et al., 2020, reduced)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False
    needs_reranker: ClassVar[bool] = False

    decoding: Annotated[
        Decoding,
        Field(
            description="From all passages at once (joint), or from each alone, the most probable answer of all taken "
            "(sequence: RAG-Sequence, an LLM call per passage; the LLM must return log-probabilities)."
        ),
    ] = "joint"

    async def answer(self, question: Question, tools: Tools) -> Answer:
        [query] = await tools.embed_queries([question.text])
        [dense] = await tools.search([Leg("dense", query, SPARE * question.k)], question.where)
        return await answer_from(question, dense.hits, tools, decoding=self.decoding)
