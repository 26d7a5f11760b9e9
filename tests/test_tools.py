"""The meter: what is counted, when it is refused, and that no path loses it."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from app.architectures import Architecture
from app.architectures.crag import Crag
from app.architectures.hybrid import Hybrid
from app.billing import Prices
from app.errors import GeneratorUnavailable, InvalidOptions, LimitExceeded, Timeout, Unavailable, UpstreamFailed
from app.tools import Tools
from app.types import Access, Condition, Filter, Generation, Leg, Limits, Prompt, Question
from tests.fakes import TEXTS, LetterEmbedder, ScriptedGenerator, fake_ports

pytestmark = pytest.mark.anyio

PROMPT = Prompt("answer", (("user", "one two three"),))


async def test_a_search_counts_each_leg_by_kind_and_keeps_the_weakest_source() -> None:
    tools = Tools(await fake_ports())
    [query] = await tools.embed_queries(["revenue"])
    await tools.search([Leg("dense", query, 2), Leg("bm25", tools.encode_sparse("bm25", "revenue"), 2)], Filter())
    assert tools.cost.ops_by_kind == {"dense": 3, "sparse": 3}
    assert (tools.cost.ops, tools.cost.ops_source, tools.cost.llm_calls) == (6, "bound", 0)
    assert [s.name for s in tools.cost.stages] == ["embed", "search"]
    assert tools.cost.usd == Decimal(0)


async def test_a_search_sees_with_the_callers_rights_whatever_it_is_asked() -> None:
    tools = Tools(await fake_ports(), access=Access("other"))
    [query] = await tools.embed_queries(["revenue"])
    [result] = await tools.search([Leg("dense", query, 9)], Filter((), Access("default")))
    assert result.hits == ()


async def test_a_filter_reaches_every_leg() -> None:
    tools = Tools(await fake_ports())
    [query] = await tools.embed_queries(["revenue"])
    legs = [Leg("dense", query, 9), Leg("bm25", tools.encode_sparse("bm25", "revenue by the board"), 9)]
    results = await tools.search(legs, Filter((Condition("page", "$eq", 2),)))
    assert [[h.chunk.page for h in r.hits] for r in results] == [[2], [2]]


async def test_calls_tokens_and_their_price() -> None:
    prices = Prices(Decimal(3), Decimal(15))
    tools = Tools(await fake_ports(generator=ScriptedGenerator(["four five"]), prices=prices))
    await tools.generate(PROMPT)
    await tools.generate(replace(PROMPT, purpose="hyde"))
    cost = tools.cost
    assert cost.llm_calls_by_purpose == {"answer": 1, "hyde": 1}
    assert (cost.input_tokens, cost.output_tokens) == (6, 4)
    assert cost.usd == Decimal("0.000078")


@pytest.mark.parametrize("prices", [Prices(), Prices(Decimal(1)), Prices(None, Decimal(1))])
async def test_an_unknown_price_is_unknown_not_zero(prices: Prices) -> None:
    tools = Tools(await fake_ports(prices=prices))
    await tools.generate(PROMPT)
    assert tools.cost.usd is None


async def test_a_call_that_fails_is_on_the_bill() -> None:
    tools = Tools(await fake_ports(generator=ScriptedGenerator([UpstreamFailed("nonsense")])))
    with pytest.raises(UpstreamFailed):
        await tools.generate(PROMPT)
    assert tools.cost.llm_calls_by_purpose == {"answer": 1}
    assert tools.trace[-1].detail["error"] == "upstream_failed"


async def test_a_cancelled_call_is_on_the_bill() -> None:
    tools = Tools(await fake_ports(generator=ScriptedGenerator(["x"], delay_s=30)))
    task = asyncio.create_task(tools.generate(PROMPT))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tools.cost.llm_calls == 1
    assert tools.trace[-1].detail["error"] == "cancelled"


async def test_the_limit_of_calls_is_checked_before_the_call() -> None:
    generator = ScriptedGenerator(["x"])
    tools = Tools(await fake_ports(generator=generator), Limits(max_llm_calls=1))
    await tools.generate(PROMPT)
    with pytest.raises(LimitExceeded, match="1 LLM calls"):
        await tools.generate(PROMPT)
    assert len(generator.prompts) == 1


async def test_the_limit_of_tokens_caps_the_answer_then_refuses() -> None:
    generator = ScriptedGenerator(["word " * 40])
    tools = Tools(await fake_ports(generator=generator), Limits(max_tokens=50))
    await tools.generate(PROMPT)
    assert generator.prompts[0].max_tokens == 50 - len("one two three") // 4
    await tools.generate(PROMPT)
    with pytest.raises(LimitExceeded, match="50 tokens"):
        await tools.generate(PROMPT)


async def test_calls_at_once_keep_the_limit_of_tokens_together() -> None:
    generator = ScriptedGenerator(["word " * 40], delay_s=0.01)
    limit = 2 * (len("one two three") // 4 + PROMPT.max_tokens) - 10
    tools = Tools(await fake_ports(generator=generator), Limits(max_tokens=limit))
    await tools.generate_all([PROMPT] * 2)
    assert [prompt.max_tokens for prompt in generator.prompts] == [PROMPT.max_tokens, PROMPT.max_tokens - 10]
    with pytest.raises(LimitExceeded, match="in use"):
        await tools.generate_all([PROMPT] * 3)
    assert tools.beyond(1) is None  # what was under way is given free


async def test_time_runs_out_inside_a_call_and_before_the_next() -> None:
    tools = Tools(await fake_ports(generator=ScriptedGenerator(["x"], delay_s=30)), Limits(timeout_s=0.05))
    with pytest.raises(Timeout, match=r"0\.05 s ended during 'generate'"):
        await tools.generate(PROMPT)
    with pytest.raises(Timeout, match="during 'embed'"):
        await tools.embed_queries(["x"])
    assert tools.cost.llm_calls == 1


async def test_a_purpose_the_generator_cannot_serve_says_how_to_configure_one() -> None:
    generator = ScriptedGenerator(["x"], purposes=frozenset({"answer"}))
    tools = Tools(await fake_ports(generator=generator))
    with pytest.raises(GeneratorUnavailable, match="OPENAI_BASE_URL"):
        await tools.generate(replace(PROMPT, purpose="hyde"))
    assert tools.cost.llm_calls == 0


async def test_a_generator_that_is_no_llm_costs_ops_not_calls() -> None:
    class Quoting(ScriptedGenerator):
        async def generate(self, prompt: Prompt) -> Generation:
            return Generation("x [1]", ops={"dense": 4, "sparse": 7})

    tools = Tools(await fake_ports(generator=Quoting([], purposes=frozenset({"answer"}))), Limits(max_llm_calls=0))
    await tools.generate(PROMPT)
    assert (tools.cost.ops_by_kind, tools.cost.llm_calls, tools.cost.usd) == ({"dense": 4, "sparse": 7}, 0, Decimal(0))


async def test_only_an_answer_is_streamed_and_its_pieces_add_up() -> None:
    events: list[tuple[str, Any]] = []
    ports = await fake_ports(generator=ScriptedGenerator(["a b c"]))
    tools = Tools(ports, emit=lambda event, data: events.append((event, data)), streaming=True)
    await tools.generate(replace(PROMPT, purpose="hyde"))
    assert [event for event, _ in events] == ["stage"]
    out = await tools.generate(PROMPT)
    assert "".join(data for event, data in events if event == "token").split() == out.text.split()
    assert tools.cost.llm_calls == 2


async def test_missing_legs_and_rerankers_are_said() -> None:
    tools = Tools(await fake_ports())
    with pytest.raises(Unavailable, match="splade"):
        tools.encode_sparse("splade", "x")
    with pytest.raises(Unavailable, match="rerank"):
        await tools.rerank("x", [])


@pytest.mark.parametrize(
    ("architecture", "setting"),
    [
        (Hybrid(splade_weight=1.0, rewrite="multi_query"), "SPLADE_MODEL"),
        (Hybrid(rerank=5, rewrite="multi_query"), "RERANKER_MODEL"),
        (Hybrid(late=5, rewrite="multi_query"), "late option"),
        (Crag(external=True), "EXTERNAL_DIR"),
    ],
)
async def test_an_option_that_this_service_has_not_is_refused_before_any_work(
    architecture: Architecture, setting: str
) -> None:
    ports = replace(await fake_ports(generator=ScriptedGenerator(["other words"])), reranker=None, tokens=None)
    tools = Tools(ports)
    with pytest.raises(InvalidOptions, match=setting):
        await architecture.answer(Question("What was the debt?"), tools)
    assert tools.cost.ops == tools.cost.llm_calls == 0


async def test_parallel_steps_are_all_counted() -> None:
    tools = Tools(await fake_ports())
    queries = await LetterEmbedder().queries([*TEXTS, "board"])
    await asyncio.gather(*(tools.search([Leg("dense", query, 1)], Filter()) for query in queries))
    assert tools.cost.ops_by_kind == {"dense": 12}
    assert len(tools.trace) == 4
