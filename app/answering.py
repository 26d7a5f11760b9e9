"""The last mile of every architecture: write an answer from the hits, cite it, or say why there is none."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from app import prompts
from app.adapters.bm25 import tokens
from app.evidence import sentences
from app.evidence.citations import MARKERS, Cited, cite
from app.evidence.conflicts import contradictions
from app.evidence.quantities import matched, quantities
from app.question.reading import read
from app.retrieval.grading import missing
from app.retrieval.widening import widened
from app.sequence import marginalised
from app.tools import Tools
from app.types import AbstainReason, Answer, Generation, Hit, Prompt, Question

_BUDGET_CHARS = 24_000
"""Of passages shown to a model: about 6,000 tokens."""
_OF_FILINGS = frozenset({"company", "cik", "ticker", "form", "fiscal_year", "fiscal_period", "sector"})
NOTHING_THERE = (
    "the index holds no filing that this caller may see; POST /documents or sextant-ingest puts filings into it"
)
_CUT = "the generator was stopped at the most tokens it may write; the answer may end too early"
_BESIDE_THE_LINE = "the generator's answer has no figure of the line that is asked for and was withheld"
_ECHO = "the generator's answer says nothing but the question's own words and was withheld"
_ASSENT = frozenset({"yes", "no"})
QUOTED = "the generator gave no answer that the passages support; the best statements of them are quoted instead"
_SHOWN = 20
"""Most values listed in a note."""
_REASONS: dict[AbstainReason, str] = {
    "no_passages": "No answer: no passage in the index matches this question and its filters.",
    "not_supported": "No answer: none of the passages found supports one.",
    "off_corpus": "No answer: the filings in the index are not about what the question names.",
    "limit": "No answer within the request's limits.",
}


Decoding: TypeAlias = Literal["joint", "sequence"]
"""From all passages at once, or from each alone and the most probable answer of all (`app.sequence`)."""


async def answer_if_held(question: Question, hits: Sequence[Hit], tools: Tools) -> Answer:
    """`answer_from`, or a refusal before anything is written where the index cannot hold what the question is about.

    That is a company without a filing that no passage mentions, or a period after the last filing: a passage of another
    company or year answers neither.
    """
    best = hits[: question.k]
    absent = missing(question.text, read(question.text, await tools.catalogue()), best) if best else ()
    if not absent:
        return await answer_from(question, hits, tools)
    tools.emit("passages", best)
    return abstain("off_corpus", best, f"the index holds nothing of {', '.join(absent)}")


async def answer_from(question: Question, hits: Sequence[Hit], tools: Tools, *, decoding: Decoding = "joint") -> Answer:
    """Generate over `hits` (numbered from 1 in their order), resolve the markers, or abstain with a reason.

    Where the collection says so, more is read than was found: the answer's passages are the hits' parents. What quotes
    beside a model, where the service has that, refuses what is about another company, and stands in the model's place
    where nothing of the model's answer has support, or it repeats the question, or has no figure of the line asked for.
    """
    hits = await widened(hits, tools, question.k)
    tools.emit("passages", hits)
    if not hits:
        return abstain("no_passages", hits, *await _unmatched(question, tools))
    quoted = await tools.quote(question.text, hits)
    if quoted is not None and quoted.abstained == "off_corpus":
        return abstain("off_corpus", hits)
    if decoding == "sequence":
        generation = await _by_sequence(question, hits, tools)
    else:
        generation = await tools.generate(await _prompt("answer", question, hits, tools))
    refused = tools.ports.generator.purposes is None and prompts.REFUSAL in generation.text  # a quote may hold it
    if generation.abstained or refused:
        return await _otherwise(generation.abstained or "not_supported", quoted, hits, tools)
    cited = await _checked(prompts.inert(generation.text), question, hits, tools)
    cut = (_CUT,) if generation.finish_reason == "length" else ()
    if not cited.citations:
        withheld = "the generator wrote an answer without a citation that supports it; it was withheld"
        return await _otherwise("not_supported", quoted, hits, tools, *cited.notes, withheld, *cut)
    if quoted is not None and question.unsupported == "drop" and (why := _idle(cited.text, question.text, quoted)):
        return await _otherwise("not_supported", quoted, hits, tools, f"{why}: {cited.text}")
    disagreeing = await asyncio.to_thread(contradictions, cited.text, cited.citations, hits)
    return Answer(cited.text, cited.citations, hits, notes=(*cited.notes, *disagreeing, *cut))


async def _prompt(purpose: str, question: Question, hits: tuple[Hit, ...], tools: Tools) -> Prompt:
    excerpts = await tools.pack(question.text, hits)
    messages = (
        prompts.grounded(question.text, hits, budget_chars=_BUDGET_CHARS)
        if excerpts is None
        else prompts.excerpted(question.text, hits, excerpts)
    )
    return Prompt(purpose, messages, question.text, hits)


async def _by_sequence(question: Question, hits: Sequence[Hit], tools: Tools) -> Generation:
    """A call per passage. Raises GeneratorUnavailable without a model, InvalidOptions without its probabilities."""
    asked = [await _prompt("sequence", question, (hit,), tools) for hit in hits]
    written = await tools.generate_all([replace(prompt, logprobs=True) for prompt in asked])
    candidates = marginalised(hits, written)
    tools.note("marginal", candidates=[[each.text, each.ranks, round(each.probability, 4)] for each in candidates])
    return Generation(candidates[0].cited) if candidates else Generation("", abstained="not_supported")


async def _checked(text: str, question: Question, hits: Sequence[Hit], tools: Tools) -> Cited:
    """Cited, and of a model's own sentences those that nothing carries treated as the question asks."""
    if tools.ports.generator.purposes is not None:  # it writes nothing of its own
        return await cite(text, hits, tools)
    text, notes = await asyncio.to_thread(sentences.attributed, text, hits)
    cited = sentences.judged(await cite(text, hits, tools), hits, question.unsupported)
    return replace(cited, notes=(*notes, *cited.notes))


def _idle(text: str, question: str, quoted: Generation) -> str:
    """Why a model's answer, whose sentences have support, is yet worth less than the quotation; "" where it is not."""
    text, row = MARKERS.sub("", text), MARKERS.sub("", quoted.text)
    said = quantities(text)
    if quoted.exact and not any(matched(figure, said) for figure in quantities(row)):
        return _BESIDE_THE_LINE
    return "" if said or set(tokens(text)) - {*tokens(question), *_ASSENT} else _ECHO


async def _otherwise(
    reason: AbstainReason, quoted: Generation | None, hits: tuple[Hit, ...], tools: Tools, *notes: str
) -> Answer:
    """What stands in the place of a model's answer: the quotation where there is one, else a refusal."""
    if quoted is None or quoted.abstained:
        return abstain((quoted and quoted.abstained) or reason, hits, *notes)
    cited = await cite(quoted.text, hits, tools)
    return told(Answer(cited.text, cited.citations, hits, notes=(*notes, *cited.notes, QUOTED)), tools)


async def _unmatched(question: Question, tools: Tools) -> list[str]:
    """Which filters no filing has the value for, and which values there are: case and spelling count."""
    if not await tools.catalogue():
        return [NOTHING_THERE]
    notes = []
    for condition in question.where.conditions:
        if condition.field in _OF_FILINGS and condition.op in ("$eq", "$in"):
            there = {getattr(d.meta, condition.field) for d in await tools.catalogue()} - {None}
            asked = condition.value if isinstance(condition.value, tuple) else (condition.value,)
            if not there & set(asked):
                some = ", ".join(sorted(map(str, there))[:_SHOWN]) or "no values at all"
                notes.append(f"no filing has {condition.field} {asked[0]!r:.80}; there are: {some}")
    return notes


def told(answer: Answer, tools: Tools) -> Answer:
    """The answer, which no generator wrote in one piece, to whoever follows the request."""
    tools.emit("passages", answer.passages)
    if tools.streaming and not answer.abstained:
        tools.emit("token", answer.text)
    return answer


def abstain(reason: AbstainReason, hits: Sequence[Hit], *notes: str) -> Answer:
    """An honest refusal; says where the nearest passages are, if there are any."""
    nearest = "; ".join(dict.fromkeys(f"{h.chunk.meta.title}, page {h.chunk.page}" for h in hits[:3]))
    hint = f" Nearest: {nearest}." if nearest else ""
    return Answer(_REASONS[reason] + hint, (), tuple(hits), reason, notes)
