"""Agentic without a model: comparisons split, ratios computed, leads followed; one answer in a stream."""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.architectures.agentic import Agentic
from app.tools import Tools
from app.types import (
    Limits,
    Question,
)
from tests.architectures.two_companies import (
    BOTH,
    NOT_THERE,
    PEOPLE,
    STEEL,
    SlowAboutGlobex,
    acts,
    by_part,
    ports,
    step,
)
from tests.conftest import MakeClient
from tests.fakes import (
    ScriptedGenerator,
)

pytestmark = pytest.mark.anyio


async def test_a_comparison_asks_each_company_by_itself() -> None:
    tools = Tools(await ports())
    answer = await Agentic().answer(Question("How do the people of Acme and Globex differ?", k=4), tools)
    assert [act["thought"] for act in acts(tools)] == [
        "Acme is to be searched by itself",
        "Globex is to be searched by itself",
    ]
    assert [hit.chunk.meta.company for hit in answer.passages] == ["Acme", "Globex", "Acme", "Globex"]
    assert answer.text.startswith("Acme:\n")
    assert "\nGlobex:\n" in answer.text
    for citation in answer.citations:
        assert answer.passages[citation.marker - 1].chunk.id == citation.chunk_id
        assert answer.text[slice(*citation.answer_span)] in citation.quote


async def test_who_is_described_is_found_and_asked() -> None:
    tools = Tools(await ports())
    question = "How many people in all are employed by the company that sells steel to Acme under a contract?"
    answer = await Agentic().answer(Question(question, k=3), tools)
    assert answer.text == (
        "Our steel comes from Globex under a contract to 2027. [1]\nGlobex:\nGlobex employs 77 people in all [2]."
    )
    assert [c.verified for c in answer.citations] == [True, True]
    [lead] = [step.detail for step in tools.trace if step.name == "lead"]
    assert lead["company"] == "Globex"


@pytest.mark.parametrize("options", [{"max_hops": 0}, {"least_residual": 1.0}, {"least_lead": 2.0}])
async def test_nobody_is_followed_where_an_option_forbids_it(options: dict[str, float]) -> None:
    tools = Tools(await ports())
    question = "How many people in all are employed by the company that sells steel to Acme under a contract?"
    answer = await Agentic(**options).answer(Question(question, k=3), tools)  # type: ignore[arg-type]
    assert len(acts(tools)) == 1
    assert {hit.chunk.meta.company for hit in answer.passages} == {"Acme"}


async def test_the_threshold_that_was_measured_on_the_collection_is_used_where_none_is_given() -> None:
    question = Question("How many people in all are employed by the company that sells steel to Acme?", k=3)
    for residuals, least, searches in (
        ({}, None, 2),
        ({"names": 1.0}, None, 1),
        ({"direction": 1.0}, None, 2),
        ({"names": 1.0}, 0.1, 2),
    ):
        tools = Tools(replace(await ports(), residuals=residuals))
        await Agentic(least_residual=least).answer(question, tools)
        assert len(acts(tools)) == searches


async def test_a_question_about_what_it_names_is_not_led_away_unless_told_so() -> None:
    question = Question("Where does the steel of Acme come from?", k=3)
    tools = Tools(await ports())
    await Agentic().answer(question, tools)
    assert len(acts(tools)) == 1
    tools = Tools(await ports())
    await Agentic(question_signal=False).answer(question, tools)
    assert len(acts(tools)) == 2


async def test_a_ratio_is_computed_and_its_operands_are_cited() -> None:
    tools = Tools(await ports())
    answer = await Agentic().answer(Question("What was the fixed asset turnover of Acme in FY2022?", k=3), tools)
    assert answer.text.splitlines()[-1] == "Fixed asset turnover, 2022: 120 / ((50 + 30) / 2) = 3.00"
    [made] = answer.calculations
    assert answer.text[slice(*made.answer_span)] == "120 / ((50 + 30) / 2) = 3.00"
    assert (made.operands, made.verified) == (("120", "50", "30"), True)
    assert all(citation.verified for citation in answer.citations)
    assert acts(tools)[-1]["tool"] == "calculate"


async def test_growth_of_each_of_two_companies() -> None:
    tools = Tools(await ports())
    question = "By what percentage did net sales of Acme and of Globex change in 2022?"
    answer = await Agentic().answer(Question(question, k=4), tools)
    assert [(made.expression, made.value) for made in answer.calculations] == [
        ("(120 - 100) / 100", "20.0%"),
        ("(60 - 80) / 80", "-25.0%"),
    ]
    assert [answer.text[slice(*made.answer_span)] for made in answer.calculations] == [
        "(120 - 100) / 100 = 20.0%",
        "(60 - 80) / 80 = -25.0%",
    ]


async def test_a_missing_year_is_not_made_up() -> None:
    tools = Tools(await ports())
    answer = await Agentic().answer(Question("What was the fixed asset turnover of Acme in FY2021?", k=3), tools)
    assert answer.calculations == ()
    assert "not_computed" in [step.name for step in tools.trace]


async def test_at_the_limit_of_actions_the_answer_names_what_is_missing() -> None:
    tools = Tools(await ports())
    answer = await Agentic(max_actions=1).answer(Question("How do the people of Acme and Globex differ?", k=4), tools)
    assert answer.reason is None
    assert {citation.company for citation in answer.citations} == {"Acme"}
    assert answer.notes[0] == "the limit of 1 actions is reached"
    assert answer.notes[1].startswith("not answered for Globex: No answer within the request's limits.")
    assert acts(tools)[1]["error"] == "limit_exceeded"


async def test_at_the_limit_of_calls_one_part_is_answered() -> None:
    model = ScriptedGenerator(["Our steel comes from Globex under a contract to 2027 [1][2]."])
    tools = Tools(await ports(model), Limits(max_llm_calls=1))
    answer = await Agentic(max_steps=0).answer(Question("How do the people of Acme and Globex differ?", k=4), tools)
    assert {citation.company for citation in answer.citations} == {"Acme"}
    assert "limit of 1 LLM calls" in answer.notes[0]
    assert tools.cost.llm_calls == 1


async def test_where_time_ends_before_anything_is_known_it_abstains() -> None:
    tools = Tools(await ports(ScriptedGenerator(["never"], delay_s=30)), Limits(timeout_s=0.2))
    answer = await Agentic().answer(Question("How do the people of Acme and Globex differ?", k=4), tools)
    assert answer.reason == "limit"
    assert len(answer.passages) == 4
    assert tools.cost.ops_by_kind["dense"] == 5


async def test_a_slow_tool_is_given_up_alone() -> None:
    tools = Tools(replace(await ports(), embedder=SlowAboutGlobex()))
    answer = await Agentic(tool_timeout_s=0.2).answer(
        Question("How do the people of Acme and Globex differ?", k=4), tools
    )
    assert {citation.company for citation in answer.citations} == {"Acme"}
    assert "search took longer than 0.2 s" in answer.notes[0]


def sent(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


@pytest.mark.parametrize(
    "question",
    [
        BOTH.text,
        "How many people in all are employed by the company that sells steel to Acme under a contract?",
        "What was the fixed asset turnover of Acme in FY2022?",
        "By what percentage did net sales of Acme and of Globex change in 2022?",
        "Globex people",
    ],
)
@pytest.mark.parametrize("model", [False, True])
async def test_a_stream_shows_one_answer(make_client: MakeClient, question: str, model: bool) -> None:
    generator = by_part([step(("answer", "")), STEEL], [step(("answer", "")), PEOPLE], NOT_THERE) if model else None
    async with make_client(await ports(generator)) as client:
        reply = await client.post("/query/agentic", json={"question": question, "k": 4, "stream": True})
    events = sent(reply.text)
    [shown] = [data for name, data in events if name == "passages"]
    [answer] = [data for name, data in events if name == "answer"]
    assert shown == answer["passages"]
    told = "".join(data["text"] for name, data in events if name == "token").strip()
    assert told == answer["answer"] or answer["abstained"]
    assert events[-1][1]["cost"]["llm_calls"] == answer["cost"]["llm_calls"]
