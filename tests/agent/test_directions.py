"""Following what a passage adds to the question: which one, how far, and what is handed back."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.agent.actions import Actions
from app.agent.directions import along
from app.architectures.agentic import Agentic
from app.tools import Tools
from app.types import Question
from tests.fakes import QuotingGenerator, fake_ports

pytestmark = pytest.mark.anyio

TEXTS = ("aa", "ab", "bb", "cc")
"""To "aa" by letters: itself, then "ab" (cosine 1/sqrt(2)), which adds b, then the other two."""


async def tools_over(texts: Sequence[str] = TEXTS) -> Tools:
    return Tools(await fake_ports(texts=texts, generator=QuotingGenerator()))


async def followed(hops: int, least: float, k: int = 2) -> tuple[list[str], Tools]:
    tools = await tools_over()
    hits = await along(Question("a", k=k), Actions(tools, 24, 30.0), hops=hops, least=least)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [hit.chunk.text for hit in hits], tools


async def test_the_residual_of_the_first_passage_that_leads_away_is_searched_for() -> None:
    texts, tools = await followed(hops=1, least=0.5)
    assert texts == ["bb", "ab", "aa", "cc"], "what lies along b, then what led there, then the rest"
    [noted] = [step for step in tools.trace if step.name == "direction"]
    assert noted.detail["residual"] == pytest.approx(2**-0.5, abs=1e-3)
    assert tools.cost.ops_by_kind == {"dense": 8}


async def test_without_a_passage_that_leads_far_enough_the_first_search_stands() -> None:
    texts, tools = await followed(hops=3, least=0.9)
    assert texts == ["aa", "ab", "bb", "cc"]
    assert tools.cost.ops_by_kind == {"dense": 4}


async def test_no_passage_is_followed_twice() -> None:
    _, tools = await followed(hops=4, least=0.1)
    chunks = [step.detail["chunk"] for step in tools.trace if step.name == "direction"]
    assert len(chunks) == len(set(chunks))


@pytest.mark.parametrize(
    ("question", "agentic", "searches"),
    [
        ("a", Agentic(follow="direction", question_signal=False), 2),
        ("a", Agentic(follow="direction"), 1),
        ("a of the company that supplies b", Agentic(follow="direction", least_residual=0.05), 2),
        ("a", Agentic(follow="direction", question_signal=False, max_hops=0), 1),
    ],
)
async def test_agentic_follows_a_direction_where_the_question_points_beyond_or_need_not(
    question: str, agentic: Agentic, searches: int
) -> None:
    tools = await tools_over()
    answer = await replace(agentic, max_steps=0).answer(Question(question, k=2), tools)
    assert sum(step.name == "search" for step in tools.trace) == searches
    assert answer.passages
