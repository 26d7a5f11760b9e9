"""Naive RAG: one dense search, k passages, one generation (Lewis et al., 2020, reduced)."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from app.answering import answer_from
from app.tools import Tools
from app.types import Answer, Leg, Question


@dataclass(frozen=True, slots=True)
class Naive:
    """One dense search, k passages, one generation (Lewis et al., 2020, reduced)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False

    async def answer(self, question: Question, tools: Tools) -> Answer:
        [query] = await tools.embed_queries([question.text])
        [dense] = await tools.search([Leg("dense", query, question.k)], question.where)
        return await answer_from(question, dense.hits, tools)
