"""The search that several architectures share: dense and sparse in one round trip, fused, re-ordered where asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.question.reading import narrowed
from app.question.rewriting import Rewrite, Search, searches
from app.retrieval.fusion import C, Fusion, rrf, standardised, with_leg
from app.tools import Extra, Tools, together
from app.types import Filter, FloatArray, Hit, Leg, Question

RELAXED = "the filings that the question names hold nothing that passes the request's filters; others were searched"


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How it searches; the fields are described where a caller sets them, in hybrid's options."""

    pool: int = 100
    c: float = C
    dense_weight: float = 1.0
    bm25_weight: float = 1.0
    rerank: int = 0
    splade_weight: float = 0.0
    rewrite: Rewrite = "none"
    late: int = 0
    fusion: Fusion = "ranks"

    async def best(self, question: Question, tools: Tools, *, narrow: bool = True, more: str = "") -> list[Hit]:
        """The k best passages, of the filings that the question names where `narrow`; BM25 searches for `more`, too."""
        optional: dict[Extra, float] = {"splade": self.splade_weight, "late": self.late, "rerank": self.rerank}
        tools.requires(*(name for name, wanted in optional.items() if wanted))
        where, terms = await narrowed(question, tools) if narrow else (question.where, question.text)
        asked = await searches(self.rewrite, question, f"{terms} {more}".rstrip(), where, tools)
        found = await self._found(question, asked, tools)
        if not found and where != question.where:
            tools.note("relaxed", why=RELAXED)
            found = await self.fused(question, question.text, question.where, tools)
        return found[: question.k]

    async def fused(self, question: Question, terms: str, where: Filter, tools: Tools) -> list[Hit]:
        """The whole pool, best first; `terms` are what BM25 searches for."""
        return await self._found(question, [Search(question.text, terms, where)], tools)

    async def _found(self, question: Question, asked: Sequence[Search], tools: Tools) -> list[Hit]:
        """Every search's legs fused, those of a second under names of their own (`dense 2`), and so on.

        A cross-encoder or MaxSim alone makes a worse order of filings' passages, and ranks throw away how sure it is:
        its scores are added to the legs', all standardised over the candidates.
        """
        vectors = await tools.embed_queries([search.text for search in asked])
        pool = max(self.pool, question.k)
        several = await together([self._legs(*each, pool, tools) for each in zip(asked, vectors, strict=True)])
        ranked = {name + _suffix(n): hits for n, legs in enumerate(several) for name, hits in legs.items()}
        weight = {"dense": self.dense_weight, "bm25": self.bm25_weight, "splade": self.splade_weight}
        weights = {name: weight[name.split()[0]] for name in ranked}
        found = rrf(ranked, c=self.c, weights=weights)
        if self.fusion == "scores":
            found = standardised(found, weights=weights)
        for leg, depth, score in (("late", self.late, tools.late), ("rerank", self.rerank, tools.rerank)):
            if depth and found:
                best, rest = found[:depth], found[depth:]
                scores = await score(question.text, best)
                reordered = standardised(with_leg(best, leg, scores), weights=weights)
                lower = reordered[-1].score - best[-1].score
                found = [*reordered, *(replace(hit, score=hit.score + lower) for hit in rest)]
        return found

    async def _legs(self, asked: Search, query: FloatArray, pool: int, tools: Tools) -> dict[str, tuple[Hit, ...]]:
        legs = [Leg("dense", query, pool), Leg("bm25", tools.encode_sparse("bm25", asked.terms), pool)]
        if self.splade_weight:
            legs.append(Leg("splade", await tools.embed_sparse("splade", asked.text), pool))
        found = await tools.search(legs, asked.where)
        return {leg.name: result.hits for leg, result in zip(legs, found, strict=True)}


def _suffix(search: int) -> str:
    return f" {search + 1}" if search else ""
