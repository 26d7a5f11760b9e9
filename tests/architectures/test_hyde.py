"""HyDE: what is written, how it is mixed, and that without it there is the naive ranking."""

import json

import numpy as np
import pytest

from app.architectures.hyde import Hyde, _without
from app.architectures.naive import Naive
from app.errors import GeneratorUnavailable, LimitExceeded, UpstreamFailed
from app.tools import Tools
from app.types import Answer, Limits, Question
from tests.conftest import MakeClient, MakePorts
from tests.fakes import LetterEmbedder, ScriptedGenerator, fake_ports

pytestmark = pytest.mark.anyio

TEXTS = ("aaa", "bbb", "abz")
"""To "a" by letters: the first has cosine 1, the third 1/sqrt(3), the second 0."""


async def asked(hyde: Hyde, *replies: str, limits: Limits | None = None) -> tuple[Answer, Tools, ScriptedGenerator]:
    generator = ScriptedGenerator([*replies, "aaa [1]."])
    tools = Tools(await fake_ports(texts=TEXTS, generator=generator), limits or Limits())
    return await hyde.answer(Question("a"), tools), tools, generator


def order(answer: Answer) -> list[tuple[str, float]]:
    return [(hit.chunk.text, hit.score) for hit in answer.passages]


async def test_alpha_zero_is_the_naive_ranking_without_a_call() -> None:
    answer, tools, _ = await asked(Hyde(alpha=0))
    naive = await Naive().answer(Question("a"), Tools(await fake_ports(texts=TEXTS)))
    assert order(answer) == order(naive)
    assert tools.cost.llm_calls_by_purpose == {"answer": 1}


async def test_alpha_one_searches_with_the_passage_alone() -> None:
    answer, tools, _ = await asked(Hyde(alpha=1), "b b")
    assert [text for text, _ in order(answer)] == ["bbb", "abz", "aaa"]
    assert answer.passages[0].score == pytest.approx(1)
    assert next(s for s in tools.trace if s.name == "hypothetical").detail["passages"] == ["b b"]


async def test_rocchio_mix_of_several_passages() -> None:
    answer, tools, generator = await asked(Hyde(alpha=0.5, n=2), "b", "z")
    # 0.5·a + 0.25·b + 0.25·z, norm sqrt(0.375); "abz" is (a + b + z)/sqrt(3).
    assert dict(order(answer))["abz"] == pytest.approx((0.5 + 0.25 + 0.25) / 0.375**0.5 / 3**0.5)
    assert tools.cost.llm_calls_by_purpose == {"hyde": 2, "answer": 1}
    assert [p.temperature for p in generator.prompts] == [0.7, 0.7, 0.0]


async def test_an_empty_passage_leaves_the_question() -> None:
    answer, _, _ = await asked(Hyde(alpha=1), "  ")
    assert [text for text, _ in order(answer)] == ["aaa", "abz", "bbb"]


async def test_opposite_vectors_fall_back_to_the_query() -> None:
    [query] = await LetterEmbedder().queries(["a"])
    assert Hyde(alpha=0.5)._mixed(query, -query[None]).tolist() == query.tolist()


async def test_its_calls_are_limited_and_its_failures_are_told() -> None:
    with pytest.raises(LimitExceeded):
        await asked(Hyde(n=3), "x", limits=Limits(max_llm_calls=2))
    tools = Tools(await fake_ports(generator=ScriptedGenerator([UpstreamFailed("no")])))
    with pytest.raises(UpstreamFailed):
        await Hyde().answer(Question("a"), tools)
    assert tools.cost.llm_calls == 1


async def test_without_an_llm_it_says_how_to_get_one() -> None:
    tools = Tools(await fake_ports(generator=ScriptedGenerator(["x"], purposes=frozenset({"answer"}))))
    with pytest.raises(GeneratorUnavailable, match="OPENAI_BASE_URL"):
        await Hyde().answer(Question("a"), tools)


async def test_what_all_passages_share_is_left_out_of_the_query() -> None:
    answer, tools, _ = await asked(Hyde(alpha=0.5, remove_mean=True), "b")
    _, plain, _ = await asked(Hyde(alpha=0.5), "b")
    [query], passages = await LetterEmbedder().queries(["ab"]), await LetterEmbedder().passages(TEXTS)
    mean = passages.mean(axis=0)
    axis = mean / np.linalg.norm(mean)
    rest = query - query @ axis * axis
    scores = passages @ (rest / np.linalg.norm(rest))
    assert dict(order(answer)) == pytest.approx(dict(zip(TEXTS, scores.tolist(), strict=True)), abs=1e-6)
    assert tools.cost.ops_by_kind == plain.cost.ops_by_kind
    assert next(s for s in tools.trace if s.name == "mean").detail["chunks"] == 3


async def test_a_query_along_the_mean_alone_is_kept() -> None:
    [query] = await LetterEmbedder().queries(["a"])
    assert _without(2 * query, query).tolist() == query.tolist()
    assert _without(0 * query, query) == pytest.approx(query)


async def test_alpha_zero_is_naive_byte_for_byte_on_the_wire(make_ports: MakePorts, make_client: MakeClient) -> None:
    sent = {"question": "debt due in 2027", "k": 3}
    hyde = {**sent, "options": {"alpha": 0, "remove_mean": True, "n": 4}}
    async with make_client(await make_ports(ScriptedGenerator(["Debt was $4 million [1]."]))) as client:
        replies = [
            (await client.post(f"/query/{arch}", json=body)).json() for arch, body in (("naive", sent), ("hyde", hyde))
        ]
    ranked, from_hyde = (json.dumps(reply["passages"]).encode() for reply in replies)
    assert ranked == from_hyde
    told = [{name: reply[name] for name in ("answer", "citations", "index")} for reply in replies]
    assert json.dumps(told[0]) == json.dumps(told[1])
    assert [step["name"] for step in replies[0]["trace"]] == [step["name"] for step in replies[1]["trace"]]
