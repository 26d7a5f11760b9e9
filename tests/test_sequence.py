"""RAG-Sequence: which answer is the most probable over all passages, and what it costs."""

import math
from dataclasses import dataclass, field, replace

import pytest

from app.architectures.naive import Naive
from app.errors import InvalidOptions, LimitExceeded
from app.prompts import REFUSAL
from app.sequence import TEMPERATURE, Candidate, marginalised
from app.tools import Tools
from app.types import Chunk, Generation, Hit, Limits, Prompt, Question
from tests.conftest import MakeClient, MakePorts
from tests.fakes import META, ScriptedGenerator, fake_ports

pytestmark = pytest.mark.anyio

TEXTS = ("net sales were 10 million", "net sales were 12 million", "the board has nine members")


def hit(rank: int, odds: float) -> Hit:
    """`odds` are what the softmax weighs: e to the score over the temperature."""
    chunk = Chunk(str(rank), "d", rank, 1, 0, 4, "text", "", "text", None, META)
    return Hit(chunk, rank, TEMPERATURE * math.log(odds))


def wrote(text: str, probability: float) -> Generation:
    return Generation(text, llm_calls=1, logprob=math.log(probability))


def test_passage_and_sequence_are_multiplied_and_the_same_words_added() -> None:
    hits = [hit(1, 3), hit(2, 2), hit(3, 1)]
    # 3/6 · 0.2 = 0.1 for ten; 2/6 · 0.3 + 1/6 · 0.6 = 0.2 for twelve.
    written = [wrote("Ten [1].", 0.2), wrote("Twelve [1].", 0.3), wrote("twelve  [1].", 0.6)]
    twelve, ten = marginalised(hits, written)
    assert (twelve.text, twelve.ranks) == ("Twelve [1].", (2, 3))
    assert (ten.text, ten.ranks) == ("Ten [1].", (1,))
    assert (twelve.probability, ten.probability) == pytest.approx((2 / 3, 1 / 3))


def test_improbable_sequences_do_not_vanish() -> None:
    long = Generation("Ten [1].", logprob=-2000.0), Generation("Twelve [1].", logprob=-2001.0)
    assert [each.text for each in marginalised([hit(1, 1), hit(2, 1)], long)] == ["Ten [1].", "Twelve [1]."]


def test_a_refusal_of_one_passage_is_no_answer() -> None:
    written = [wrote(REFUSAL, 0.99), wrote("Ten [1].", 0.01), wrote(" ", 0.9)]
    assert [each.text for each in marginalised([hit(1, 9), hit(2, 1), hit(3, 1)], written)] == ["Ten [1]."]
    assert marginalised([hit(1, 1)], [wrote(f"{REFUSAL}.", 0.9)]) == []
    assert marginalised([], []) == []


def test_markers_become_those_of_the_passages_it_was_written_from() -> None:
    assert Candidate("Ten [1]. More [4][1]. Less [3].", (2, 5), 1.0).cited == "Ten [2][5]. More [2][5]. Less."


def test_ties_go_to_the_better_passage() -> None:
    written = [wrote("Ten [1].", 0.5), wrote("Nine [1].", 0.5)]
    assert [each.text for each in marginalised([hit(1, 1), hit(2, 1)], written)] == ["Ten [1].", "Nine [1]."]


@dataclass
class Believing(ScriptedGenerator):
    """Quotes its one passage, and believes in figures of 12 alone."""

    asked: list[Prompt] = field(default_factory=list)

    async def generate(self, prompt: Prompt) -> Generation:
        self.asked.append(prompt)
        [hit] = prompt.passages
        if "net sales" not in hit.chunk.text:
            return Generation(REFUSAL, llm_calls=1, logprob=-0.1)
        sure = -0.5 if "12" in hit.chunk.text else -5.0
        return Generation(f"The {hit.chunk.text} [1].", 1, 9, 4, logprob=sure if prompt.logprobs else None)


async def test_each_passage_is_asked_alone_and_the_best_answer_cites_its_own() -> None:
    generator = Believing([])
    tools = Tools(await fake_ports(texts=TEXTS, generator=generator))
    answer = await Naive(decoding="sequence").answer(Question("net sales", k=3), tools)
    position = next(h.rank for h in answer.passages if "12" in h.chunk.text)
    assert answer.text == f"The net sales were 12 million [{position}]."
    assert [c.quote for c in answer.citations] == ["net sales were 12 million"]
    assert tools.cost.llm_calls_by_purpose == {"sequence": 3}
    assert [len(prompt.passages) for prompt in generator.asked] == [1, 1, 1]
    [step] = [step for step in tools.trace if step.name == "marginal"]
    assert next(ranks for _, ranks, _ in step.detail["candidates"]) == (position,)


async def test_where_every_passage_refuses_it_abstains() -> None:
    tools = Tools(await fake_ports(texts=TEXTS[2:], generator=Believing([])))
    answer = await Naive(decoding="sequence").answer(Question("net sales"), tools)
    assert answer.reason == "not_supported"


async def test_without_a_model_or_its_probabilities_it_says_so(make_ports: MakePorts, make_client: MakeClient) -> None:
    tools = Tools(await fake_ports(texts=TEXTS, generator=ScriptedGenerator(["Ten [1]."])))
    with pytest.raises(InvalidOptions, match="log-probabilities"):
        await Naive(decoding="sequence").answer(Question("net sales", k=2), tools)
    assert tools.cost.llm_calls == 2
    async with make_client() as client:
        body = {"question": "debt", "options": {"decoding": "sequence"}}
        reply = await client.post("/query/naive", json=body)
    assert (reply.status_code, reply.json()["error_code"]) == (503, "generator_unavailable")
    async with make_client(await make_ports(ScriptedGenerator(["Ten [1]."]))) as client:
        reply = await client.post("/query/naive", json=body)
    assert (reply.status_code, reply.json()["error_code"]) == (422, "invalid_options")
    assert reply.json()["cost"]["llm_calls"] > 0


async def test_its_calls_are_limited() -> None:
    tools = Tools(await fake_ports(texts=TEXTS, generator=Believing([])), Limits(max_llm_calls=2))
    with pytest.raises(LimitExceeded):
        await Naive(decoding="sequence").answer(Question("net sales", k=3), tools)
    assert tools.cost.llm_calls <= 2


async def test_decoding_jointly_asks_for_no_probabilities(make_ports: MakePorts) -> None:
    generator = ScriptedGenerator(["Debt was $4 million [1]."])
    await Naive().answer(Question("debt"), Tools(await make_ports(generator)))
    assert generator.prompts == [replace(generator.prompts[0], purpose="answer", logprobs=False)]
