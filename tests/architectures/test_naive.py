"""Naive: one dense search."""

import pytest

from app.architectures.naive import Naive
from app.tools import Tools
from app.types import Question
from tests.conftest import MakePorts
from tests.fakes import LetterEmbedder, ScriptedGenerator, fake_ports

pytestmark = pytest.mark.anyio


async def test_passages_are_the_nearest_by_cosine() -> None:
    tools = Tools(await fake_ports(texts=("aab", "bbb", "abb")))
    answer = await Naive().answer(Question("aa", k=2), tools)
    assert [hit.chunk.text for hit in answer.passages] == ["aab", "abb"]
    assert [hit.score for hit in answer.passages] == pytest.approx([2 / 5**0.5, 1 / 5**0.5])
    assert [hit.legs["dense"].rank for hit in answer.passages] == [1, 2]


async def test_dense_ops_are_the_chunks_scanned() -> None:
    tools = Tools(await fake_ports(texts=[f"text {n}" for n in range(40)]))
    await Naive().answer(Question("text", k=2), tools)
    assert tools.cost.ops_by_kind == {"dense": 40}


async def test_the_generator_reads_the_passages_in_their_order(make_ports: MakePorts) -> None:
    generator = ScriptedGenerator(["Debt was $4 million [1]."])
    tools = Tools(await make_ports(generator))
    answer = await Naive().answer(Question("debt", k=2), tools)
    [prompt] = generator.prompts
    assert prompt.passages == answer.passages
    assert prompt.question == "debt"
    assert answer.text == "Debt was $4 million [1]."


async def test_fewer_chunks_than_k_is_no_error() -> None:
    tools = Tools(await fake_ports(texts=("only one",)))
    answer = await Naive().answer(Question(LetterEmbedder.name, k=100), tools)
    assert len(answer.passages) == 1
