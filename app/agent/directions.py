"""Searches on along what a passage adds to the question, whoever it names: q' = d − ⟨d,q⟩q (multi-hop retrieval)."""

from collections.abc import Sequence

from app.agent.actions import Actions
from app.agent.hops import residual
from app.retrieval.fusion import in_order
from app.retrieval.widening import SPARE
from app.types import FloatArray, Hit, Leg, Question

_READ = 5
"""Best passages of a search read for a new direction: any passage far enough down leads somewhere else."""


async def along(question: Question, actions: Actions, *, hops: int, least: float) -> list[Hit]:
    """The best passages of the last of at most `hops` + 1 dense searches, those that led there ending the first k.

    More of the last follow, for the places of those that are read as one; ranks from 1.

    The first passage in rank order whose residual has a norm of at least `least` is followed, none twice.
    """
    [query] = await actions.tools.embed_queries([question.text])
    hits = await _search(question, query, "the question as it stands", actions)
    followed: list[Hit] = []
    read: set[str] = set()
    for _ in range(hops):
        fresh = [hit for hit in hits[: min(_READ, question.k)] if hit.chunk.id not in read]
        read |= {hit.chunk.id for hit in fresh}
        found = await _opening(fresh, query, least, actions)
        if found is None:
            break
        passage, query = found
        followed.append(passage)
        hits = await _search(question, query, f"passage {passage.chunk.id} leads beyond the question", actions)
    last = [hit for hit in hits if hit.chunk.id not in {each.chunk.id for each in followed}]
    room = max(1, question.k - len(followed))
    return in_order([*last[:room], *reversed(followed), *last[room:]])


async def _opening(
    hits: Sequence[Hit], query: FloatArray, least: float, actions: Actions
) -> tuple[Hit, FloatArray] | None:
    if not hits:
        return None
    passages = await actions.tools.embed_passages([hit.chunk.searchable for hit in hits])
    for hit, passage in zip(hits, passages, strict=True):
        direction, norm = residual(passage, query)
        if norm >= least:
            actions.tools.note("direction", chunk=hit.chunk.id, residual=round(norm, 3))
            return hit, direction
    return None


async def _search(question: Question, query: FloatArray, thought: str, actions: Actions) -> list[Hit]:
    async def work() -> list[Hit]:
        [dense] = await actions.tools.search([Leg("dense", query, SPARE * question.k)], question.where)
        return list(dense.hits)

    found: list[Hit] = await actions.take(
        "search", {"query": question.text, "why": thought}, thought, work, lambda hits: [hit.chunk.id for hit in hits]
    )
    return found
