"""The search that several architectures share: dense and BM25 in one round trip, fused, re-ordered where asked."""

from dataclasses import dataclass, replace

from app.fusion import C, rrf, standardised, with_leg
from app.reading import narrowed
from app.tools import Tools
from app.types import Filter, Hit, Leg, Question


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How it searches; the fields are described where a caller sets them, in hybrid's options."""

    pool: int = 100
    c: float = C
    dense_weight: float = 1.0
    bm25_weight: float = 1.0
    rerank: int = 0

    async def best(self, question: Question, tools: Tools, *, narrow: bool = True) -> list[Hit]:
        """The k best passages, of the filings that the question names where `narrow`."""
        where, terms = await narrowed(question, tools) if narrow else (question.where, question.text)
        found = await self.fused(question, terms, where, tools)
        if not found and where != question.where:
            tools.note("relaxed", why="the filings named hold nothing that passes the request's filters")
            found = await self.fused(question, question.text, question.where, tools)
        return found[: question.k]

    async def fused(self, question: Question, terms: str, where: Filter, tools: Tools) -> list[Hit]:
        """The whole pool, best first; `terms` are what BM25 searches for.

        A cross-encoder alone makes a worse order of filings' passages, and ranks throw away how sure it is: its scores
        are added to the legs', all standardised over the candidates.
        """
        pool = max(self.pool, question.k)
        [query] = await tools.embed_queries([question.text])
        legs = [Leg("dense", query, pool), Leg("bm25", tools.encode_sparse("bm25", terms), pool)]
        dense, bm25 = await tools.search(legs, where)
        ranked = {"dense": dense.hits, "bm25": bm25.hits}
        weights = {"dense": self.dense_weight, "bm25": self.bm25_weight}
        found = rrf(ranked, c=self.c, weights=weights)
        if not (self.rerank and found):
            return found
        best, rest = found[: self.rerank], found[self.rerank :]
        scores = await tools.rerank(question.text, best)
        reranked = standardised(with_leg(best, "rerank", scores), weights=weights)
        lower = reranked[-1].score - best[-1].score
        return [*reranked, *(replace(hit, score=hit.score + lower) for hit in rest)]
