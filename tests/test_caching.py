"""The caches: what counts as the same, what a hit costs, and that nobody learns what others asked."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from app.architectures.crag import Crag
from app.architectures.hybrid import Hybrid
from app.caching import Cache, Caches, cache_key, prompt_key
from app.errors import LimitExceeded, UpstreamFailed
from app.tools import Ports, Tools
from app.types import Access, FloatArray, Hit, Limits, Prompt, Question
from tests.conftest import MakeClient, MakePorts
from tests.fakes import LetterEmbedder, ScriptedGenerator, WordReranker

pytestmark = pytest.mark.anyio

ANNA, BERT = Access("anna"), Access("bert")
PROMPT = Prompt("answer", (("user", "one two"),))


class CountingEmbedder(LetterEmbedder):
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def queries(self, texts: Sequence[str]) -> FloatArray:
        self.asked += texts
        return await super().passages(texts)


class CountingReranker(WordReranker):
    def __init__(self) -> None:
        self.pairs = 0

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        self.pairs += len(passages)
        return await super().score(query, passages)


async def cached_ports(make: MakePorts, **others: Any) -> Ports:
    return await make(**{"caches": Caches(Cache(100), Cache(100), Cache(100)), **others})


def test_what_was_used_longest_ago_is_forgotten() -> None:
    cache: Cache[int] = Cache(2)
    cache.put(b"a", 1)
    cache.put(b"b", 2)
    assert cache.get(b"a") == 1
    cache.put(b"c", 3)
    assert [cache.get(key) for key in (b"a", b"b", b"c")] == [1, None, 3]
    nothing: Cache[int] = Cache(0)
    nothing.put(b"a", 1)
    assert len(nothing) == 0


async def test_only_what_is_missing_is_made_and_in_its_place() -> None:
    cache: Cache[int] = Cache(10)
    cache.put(b"b", 20)

    async def made(positions: list[int]) -> list[int]:
        return [position * 10 + 5 for position in positions]

    assert await cache.filled([b"a", b"b", b"c"], made) == ([5, 20, 25], 1)
    assert await cache.filled([b"c", b"a"], made) == ([25, 5], 2)


def test_keys_tell_apart_who_asks_the_model_and_every_part() -> None:
    keys = [
        cache_key(ANNA, "m", "ab", "c"),
        cache_key(ANNA, "m", "a", "bc"),
        cache_key(ANNA, "n", "ab", "c"),
        cache_key(BERT, "m", "ab", "c"),
        cache_key(Access("anna", ("board",)), "m", "ab", "c"),
        cache_key(ANNA, "m", "\ud800"),
    ]
    assert len(set(keys)) == len(keys)
    assert cache_key(Access("a", ("x", "y")), "m") == cache_key(Access("a", ("y", "x")), "m")


async def test_prompts_differ_by_all_that_shapes_an_answer(make_ports: MakePorts) -> None:
    answer = await Hybrid().answer(Question("debt"), Tools(await make_ports()))
    hits = answer.passages
    longer = replace(hits[0], chunk=replace(hits[0].chunk, text="other"))
    variants = [
        PROMPT,
        replace(PROMPT, purpose="hyde"),
        replace(PROMPT, messages=(("system", "one two"),)),
        replace(PROMPT, question="q"),
        replace(PROMPT, passages=hits),
        replace(PROMPT, passages=(longer, *hits[1:])),
        replace(PROMPT, max_tokens=7),
        replace(PROMPT, json_schema={"type": "object"}),
        replace(PROMPT, logprobs=True),
    ]
    assert len({prompt_key(ANNA, "m", prompt) for prompt in variants}) == len(variants)
    assert prompt_key(ANNA, "m", replace(PROMPT, temperature=0.1)) is None


async def test_a_question_asked_again_embeds_and_grades_nothing(make_ports: MakePorts) -> None:
    embedder, reranker = CountingEmbedder(), CountingReranker()
    ports = await cached_ports(make_ports, embedder=embedder, reranker=reranker)
    first, second = Tools(ports), Tools(ports)
    once = await Hybrid(rerank=3).answer(Question("debt"), first)
    again = await Hybrid(rerank=3).answer(Question("debt"), second)
    assert once == again
    assert (embedder.asked, reranker.pairs) == (["debt"], 3)
    assert first.cost.ops_by_kind["rerank"] == 3
    assert second.cost.ops_by_kind["rerank"] == 0
    assert first.cost.cached == {}
    assert second.cost.cached == {"embed": 1, "rerank": 3, "generate": 1}
    assert [s.detail["cached"] for s in second.trace if s.name in ("embed", "rerank")] == [1, 3]


async def test_another_architecture_pays_for_new_pairs_alone(make_ports: MakePorts) -> None:
    reranker = CountingReranker()
    ports = await cached_ports(make_ports, reranker=reranker)
    await Hybrid(rerank=2).answer(Question("debt"), Tools(ports))
    tools = Tools(ports)
    await Crag(strips=0).answer(Question("debt"), tools)
    assert (tools.cost.ops_by_kind["rerank"], tools.cost.cached["rerank"]) == (1, 2)


async def test_a_cached_generation_is_no_call_and_costs_nothing(make_ports: MakePorts) -> None:
    generator = ScriptedGenerator(["four five", "six"])
    ports = await cached_ports(make_ports, generator=generator)
    await Tools(ports).generate(PROMPT)
    events: list[tuple[str, Any]] = []
    strict = Limits(max_llm_calls=0, max_tokens=1)
    tools = Tools(ports, strict, emit=lambda event, data: events.append((event, data)), streaming=True)
    assert (await tools.generate(PROMPT)).text == "four five"
    assert (tools.cost.llm_calls, tools.cost.input_tokens, tools.cost.usd) == (0, 0, Decimal(0))
    assert tools.cost.cached == {"generate": 1}
    assert events[0] == ("token", "four five")
    with pytest.raises(LimitExceeded):
        await tools.generate(replace(PROMPT, purpose="plan"))
    assert len(generator.prompts) == 1


async def test_nobody_learns_by_a_hit_what_another_asked(make_ports: MakePorts) -> None:
    embedder, reranker, generator = CountingEmbedder(), CountingReranker(), ScriptedGenerator(["x", "y"])
    ports = await cached_ports(make_ports, embedder=embedder, reranker=reranker, generator=generator)
    hits: list[Hit] = list((await Hybrid().answer(Question("debt"), Tools(await make_ports()))).passages)
    for access in (ANNA, BERT):
        tools = Tools(ports, access=access)
        await tools.embed_queries(["debt"])
        await tools.rerank("debt", hits)
        assert (await tools.generate(PROMPT)).text == {"anna": "x", "bert": "y"}[access.tenant]
        assert tools.cost.cached == {}
    assert (embedder.asked, reranker.pairs) == (["debt", "debt"], 2 * len(hits))


async def test_a_failure_and_a_drawn_passage_are_not_kept(make_ports: MakePorts) -> None:
    generator = ScriptedGenerator([UpstreamFailed("no"), "b", "c"])
    ports = await cached_ports(make_ports, generator=generator)
    with pytest.raises(UpstreamFailed):
        await Tools(ports).generate(PROMPT)
    assert (await Tools(ports).generate(PROMPT)).text == "b"
    drawn = replace(PROMPT, temperature=0.7)
    assert [(await Tools(ports).generate(drawn)).text for _ in range(2)] == ["c", "c"]
    assert len(generator.prompts) == 4


async def test_hits_are_on_the_wire_and_in_metrics(make_ports: MakePorts, make_client: MakeClient) -> None:
    ports = await cached_ports(make_ports)
    async with make_client(ports) as client:
        body = {"question": "debt", "options": {"rerank": 2}}
        replies = [(await client.post("/query/hybrid", json=body)).json() for _ in range(2)]
        metrics = (await client.get("/metrics")).text
    assert [reply["cost"]["cached"] for reply in replies] == [{}, {"embed": 1, "rerank": 2, "generate": 1}]
    assert replies[0]["answer"] == replies[1]["answer"]
    for line in ('cache="embed",result="miss"} 1.0', 'cache="rerank",result="hit"} 2.0'):
        assert f"rag_cache_requests_total{{{line}" in metrics
