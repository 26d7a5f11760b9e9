"""CRAG: grade what was found, then refine it, search on, or refuse (Yan et al., 2024)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from app import prompts
from app.adapters.bm25 import query_tokens
from app.answering import abstain, answer_from
from app.architectures.hybrid import Hybrid
from app.evidence.statements import core_question
from app.evidence.strips import decomposed, recomposed
from app.question.glossary import expanded
from app.question.reading import Reading, narrowing, noted_reading
from app.retrieval.calibration import Action, action
from app.retrieval.fusion import in_order
from app.retrieval.grading import grade_of, graded, missing, ungraded
from app.tools import Tools
from app.types import AbstainReason, Answer, Hit, Prompt, Question

_DEEPER = 3
"""How many times as many candidates per leg the second search takes."""
_SHOWN = 12
"""Most filings or companies named in a hint."""

Grade = Annotated[float | None, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Crag:
    """Passages are graded; by the best grade they are refined, searched anew or refused (Yan et al., 2024)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False
    needs_reranker: ClassVar[bool] = True

    pool: Annotated[
        int, Field(ge=1, le=100, description="Passages of each search that are graded, a cross-encoder pair each.")
    ] = 12
    upper: Annotated[Grade, Field(description="Grade from which the best passage is correct; null: as calibrated.")] = (
        None
    )
    lower: Annotated[Grade, Field(description="Grade below which it is incorrect; null: as calibrated.")] = None
    strips: Annotated[
        int, Field(ge=0, le=100, description="Best passages whose sentences and rows are graded one by one; 0 is off.")
    ] = 3
    rewrite: Annotated[
        bool, Field(description="Search on in other words: an LLM's where there is one, else synonyms of filings.")
    ] = True
    external: Annotated[
        bool, Field(description="Where nothing grades, name what EXTERNAL_DIR has; it is never cited.")
    ] = False

    async def answer(self, question: Question, tools: Tools) -> Answer:
        if self.external:
            tools.requires("external")
        reading = await noted_reading(question, tools)
        where, terms = narrowing(question, reading)
        found = await Hybrid().fused(question, terms, where, tools)
        hits = await graded(question.text, reading, found[: self.pool], tools)
        absent = missing(question.text, reading, hits)
        verdict = self._verdict(hits, absent, tools)
        if verdict != "correct" and not absent:
            hits = await self._searched_on(verdict, question, reading, hits, tools)
            verdict = self._verdict(hits, absent, tools, "second verdict")
        if verdict == "incorrect":
            return await self._refusal(question, reading, hits, absent, tools)
        passages = hits[: question.k]
        passages[: self.strips] = await self._refined(question, reading, passages[: self.strips], tools)
        known = {hit.chunk.id for hit in hits}
        rest = [hit for hit in found if hit.chunk.id not in known]
        return await answer_from(question, in_order((*passages, *hits[question.k :], *rest)), tools)

    def _verdict(self, hits: Sequence[Hit], absent: Sequence[str], tools: Tools, step: str = "verdict") -> Action:
        """By the best grade; `incorrect` where the question is about what the index cannot hold."""
        upper, lower = self._thresholds(tools)
        best = 0.0 if absent else max(map(grade_of, hits), default=0.0)
        verdict = action(best, upper, lower)
        grades = [{"chunk": hit.chunk.id, "grade": round(grade_of(hit), 4)} for hit in hits]
        tools.note(step, action=verdict, best=round(best, 4), upper=upper, lower=lower, absent=absent, grades=grades)
        return verdict

    def _thresholds(self, tools: Tools) -> tuple[float, float]:
        known = tools.ports.calibration
        lower = known.lower if self.lower is None else self.lower
        return max(known.upper if self.upper is None else self.upper, lower), lower

    async def _searched_on(
        self, verdict: Action, question: Question, reading: Reading, hits: Sequence[Hit], tools: Tools
    ) -> list[Hit]:
        """What was found, and as much again from deeper down in other words; without the narrowing if incorrect."""
        where, terms = narrowing(question, reading)
        if verdict == "incorrect":
            where, terms = question.where, question.text
        if self.rewrite:
            terms = await _rewritten(question.text, terms, tools)
        known = {hit.chunk.id for hit in hits}
        more = await Hybrid(pool=_DEEPER * Hybrid().pool).fused(question, terms, where, tools)
        fresh = [hit for hit in more if hit.chunk.id not in known][: self.pool]
        return await graded(question.text, reading, [*hits, *fresh], tools)

    async def _refined(self, question: Question, reading: Reading, hits: Sequence[Hit], tools: Tools) -> list[Hit]:
        """Each passage less its first and last strips below the lower threshold; its best strip stays."""
        parts = {hit.chunk.id: decomposed(hit) for hit in hits}
        strips = [ungraded(strip) for found in parts.values() for strip in found if len(found) > 1]
        if not strips:
            return list(hits)
        _, lower = self._thresholds(tools)
        marked = await graded(question.text, reading, strips, tools)
        by_span = {(s.chunk.id, s.chunk.start): grade_of(s) for s in marked}
        refined: list[Hit] = []
        for hit in hits:
            own = parts[hit.chunk.id]
            grades = [by_span.get((s.chunk.id, s.chunk.start), 1.0) for s in own]
            refined.append(recomposed(hit, own, [grade >= min(lower, max(grades)) for grade in grades]))
        tools.note("strips", graded=len(strips), kept=sum(grade_of(s) >= lower for s in marked))
        return refined

    async def _refusal(
        self, question: Question, reading: Reading, hits: Sequence[Hit], absent: Sequence[str], tools: Tools
    ) -> Answer:
        if not hits and not await tools.catalogue():
            return await answer_from(question, (), tools)
        notes = await _hints(reading, absent, tools)
        if self.external:
            notes += [
                f"outside the filings, {found.source}: {found.text}" for found in await tools.external(question.text, 3)
            ]
        reason: AbstainReason = "off_corpus" if absent else "not_supported" if hits else "no_passages"
        tools.emit("passages", tuple(hits[: question.k]))
        return abstain(reason, hits[: question.k], *notes)


async def _rewritten(question: str, terms: str, tools: Tools) -> str:
    """What BM25 searches for the second time."""
    purposes = tools.ports.generator.purposes
    if purposes is None or "rewrite" in purposes:
        prompt = Prompt("rewrite", prompts.rewritten(question), question, max_tokens=80)
        words = (await tools.generate(prompt)).text.strip() or terms
    else:
        words = " ".join((terms, *sorted(expanded(tuple(query_tokens(core_question(terms)))))))
    tools.note("rewritten", terms=words)
    return words


async def _hints(reading: Reading, absent: Sequence[str], tools: Tools) -> list[str]:
    """Which filings there are, where the question asks for others."""
    documents = await tools.catalogue()
    if reading.companies and (absent or reading.relaxed):
        own = sorted(d.meta.title for d in documents if d.meta.company in reading.companies)[:_SHOWN]
        asked, whose = ", ".join(absent or reading.relaxed), ", ".join(reading.companies)
        return [f"no filing of {whose} is for {asked}; there are {'; '.join(own)}"]
    if absent:
        there = sorted({d.meta.company for d in documents if d.meta.company})[:_SHOWN]
        return [f"no filing here is of {', '.join(absent)}; there are filings of {', '.join(there)}"]
    return []
