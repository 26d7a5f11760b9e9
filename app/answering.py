"""The last mile of every architecture: write an answer from the hits, cite it, or say why there is none."""

from collections.abc import Sequence

from app import prompts
from app.citations import cite
from app.tools import Tools
from app.types import AbstainReason, Answer, Hit, Prompt, Question

_BUDGET_CHARS = 24_000
"""Of passages shown to a model: about 6,000 tokens."""
_REASONS: dict[AbstainReason, str] = {
    "no_passages": "No answer: no passage in the index matches this question and its filters.",
    "not_supported": "No answer: none of the passages found supports one.",
    "off_corpus": "No answer: the filings in the index are not about what the question names.",
    "limit": "No answer within the request's limits.",
}


async def answer_from(question: Question, hits: Sequence[Hit], tools: Tools) -> Answer:
    """Generate over `hits` (numbered from 1 in their order), resolve the markers, or abstain with a reason."""
    hits = tuple(hits)
    tools.emit("passages", hits)
    if not hits:
        return abstain("no_passages", hits)
    messages = prompts.grounded(question.text, hits, budget_chars=_BUDGET_CHARS)
    generation = await tools.generate(Prompt("answer", messages, question.text, hits))
    if generation.abstained or prompts.REFUSAL in generation.text:
        return abstain(generation.abstained or "not_supported", hits)
    cited = await cite(generation.text, hits, tools)
    if not cited.citations:
        return abstain("not_supported", hits, "the generator wrote an answer without a citation; it was withheld")
    return Answer(cited.text, cited.citations, hits, notes=cited.notes)


def abstain(reason: AbstainReason, hits: Sequence[Hit], *notes: str) -> Answer:
    """An honest refusal; says where the nearest passages are, if there are any."""
    nearest = "; ".join(dict.fromkeys(f"{h.chunk.meta.title}, page {h.chunk.page}" for h in hits[:3]))
    hint = f" Nearest: {nearest}." if nearest else ""
    return Answer(_REASONS[reason] + hint, (), tuple(hits), reason, notes)
