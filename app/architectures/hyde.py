"""HyDE: search with hypothetical passages mixed into the query (Gao et al., 2023)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from app import prompts
from app.answering import answer_from
from app.retrieval.widening import SPARE
from app.tools import Tools
from app.types import Answer, FloatArray, Leg, Prompt, Question


@dataclass(frozen=True, slots=True)
class Hyde:
    """Passages that a filing might hold are written, embedded and mixed into the query (Gao et al., 2023)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = True
    needs_reranker: ClassVar[bool] = False

    n: Annotated[int, Field(ge=1, le=8, description="Passages written; each is an LLM call.")] = 1
    alpha: Annotated[float, Field(ge=0, le=1, description="Their weight; 0 is the naive ranking, without a call.")] = (
        0.5
    )
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    max_tokens: Annotated[int, Field(ge=16, le=1024, description="Length of a passage.")] = 160

    remove_mean: Annotated[
        bool, Field(description="Leave out of the mixed query what all filings have in common: their mean's direction.")
    ] = False

    async def answer(self, question: Question, tools: Tools) -> Answer:
        [query] = await tools.embed_queries([question.text])
        if self.alpha > 0:
            query = self._mixed(query, await tools.embed_passages(await self._written(question, tools)))
            if self.remove_mean:
                query = _without(await tools.corpus_mean(), query)
        [dense] = await tools.search([Leg("dense", query, SPARE * question.k)], question.where)
        return await answer_from(question, dense.hits, tools)

    async def _written(self, question: Question, tools: Tools) -> list[str]:
        prompt = Prompt(
            "hyde",
            prompts.hypothetical(question.text),
            question.text,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
        )
        passages = [out.text.strip() or question.text for out in await tools.generate_all([prompt] * self.n)]
        tools.note("hypothetical", passages=passages)
        return passages

    def _mixed(self, query: FloatArray, passages: FloatArray) -> FloatArray:
        """Rocchio: (1 − α)·query + α·mean(passages), unit norm; the query where they cancel out."""
        mixed = (1 - self.alpha) * query + self.alpha * passages.mean(axis=0)
        norm = float(np.linalg.norm(mixed))
        return np.asarray(mixed / norm, np.float32) if norm > 1e-6 else query


def _without(mean: FloatArray, query: FloatArray) -> FloatArray:
    """The query less its part along the corpus' mean, unit norm; itself where nothing would be left.

    ⟨q − ⟨q,m⟩m, d⟩ = ⟨q, d − ⟨d,m⟩m⟩ for a unit m, so that passages need not change (Mu and Viswanath 2018,
    All-but-the-Top).
    """
    norm = float(np.linalg.norm(mean))
    axis = mean / norm if norm > 1e-6 else mean
    rest = query - float(query @ axis) * axis
    length = float(np.linalg.norm(rest))
    return np.asarray(rest / length, np.float32) if length > 1e-3 else query
