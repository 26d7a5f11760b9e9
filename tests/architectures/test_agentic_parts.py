"""The parts of a comparison, answered each by itself by a model and joined."""

from dataclasses import replace

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
    acts,
    by_part,
    ports,
    step,
)
from tests.fakes import (
    QuotingGenerator,
    ScriptedGenerator,
)

pytestmark = pytest.mark.anyio


async def test_parts_are_answered_each_by_itself_and_joined_by_the_model() -> None:
    whole = "Globex employs 77 people in all [2]. Acme says: our steel comes from Globex under a contract to 2027 [1]."
    model = by_part([STEEL], [PEOPLE], whole)
    tools = Tools(await ports(model))
    answer = await Agentic().answer(BOTH, tools)
    assert tools.cost.llm_calls_by_purpose == {"answer": 3}
    assert [hit.chunk.meta.company for hit in model.prompts[-1].passages] == ["Acme", "Globex", "Acme", "Globex"]
    assert "Tools found: Acme:\nOur steel comes from Globex" in model.prompts[-1].question
    assert answer.text == whole
    assert {citation.company for citation in answer.citations} == {"Acme", "Globex"}


async def test_where_the_joining_would_lose_a_part_the_parts_stand() -> None:
    for less in (NOT_THERE, "Together they employ 9,999 people [1].", "Globex employs 77 people in all [2]."):
        tools = Tools(await ports(by_part([STEEL], [PEOPLE], less)))
        answer = await Agentic().answer(BOTH, tools)
        assert answer.text == f"Acme:\n{STEEL}\nGlobex:\nGlobex employs 77 people in all [2]."


async def test_parts_of_which_one_had_to_be_quoted_are_not_joined_by_the_model() -> None:
    tools = Tools(replace(await ports(by_part([NOT_THERE], [PEOPLE], "never asked for")), quoting=QuotingGenerator()))
    answer = await Agentic().answer(BOTH, tools)
    assert tools.cost.llm_calls_by_purpose == {"answer": 2}
    assert answer.text.startswith("Acme:\n")
    assert answer.text.endswith("Globex:\nGlobex employs 77 people in all [2].")


@pytest.mark.parametrize(("apart", "calls"), [(True, {"answer": 2}), (False, {"answer": 1, "plan": 1})])
async def test_lines_that_rules_read_for_the_parts_stand_whatever_a_model_says(
    apart: bool, calls: dict[str, int]
) -> None:
    question = "What were the net sales of Acme and of Globex in 2022, and what drove them?"
    tools = Tools(await ports(by_part([NOT_THERE], [NOT_THERE], NOT_THERE)))
    answer = await Agentic(apart=apart).answer(Question(question, k=6), tools)
    assert answer.text == (
        "Acme:\nNet sales: 120 million [1], for December 31, 2022 [1].\n"
        "Globex:\nNet sales: 60 million [2], for December 31, 2022 [2]."
    )
    assert tools.cost.llm_calls_by_purpose == calls


async def test_a_number_that_no_passage_has_is_dropped_from_the_joined_answer_and_said() -> None:
    true = f"Globex employs 77 people in all [2]. {STEEL}"
    model = by_part([STEEL], [PEOPLE], f"{true} Acme employs 4,321 people in all [1].")
    answer = await Agentic().answer(BOTH, Tools(await ports(model)))
    assert answer.text == true
    assert "a sentence that no cited passage supports was removed: Acme employs 4,321 people in all." in answer.notes


async def test_a_number_that_no_tool_gave_is_noted_where_the_request_lets_it_stand() -> None:
    model = by_part([STEEL], [PEOPLE], "Globex employs 77 people in all [2]. Acme employs 4,321 people in all [1].")
    answer = await Agentic().answer(replace(BOTH, unsupported="keep"), Tools(await ports(model)))
    assert "4,321" in answer.text
    assert "no tool gave 4321" in answer.notes


async def test_a_part_that_its_search_does_not_answer_is_acted_on() -> None:
    model = by_part([NOT_THERE, step(("search", "steel contract"), ("answer", "")), STEEL], [PEOPLE], NOT_THERE)
    tools = Tools(await ports(model))
    answer = await Agentic().answer(BOTH, tools)
    assert tools.cost.llm_calls_by_purpose == {"answer": 4, "plan": 1}
    assert acts(tools)[-1]["arguments"] == {"input": "steel contract", "part": "Acme"}
    assert {citation.company for citation in answer.citations} == {"Acme", "Globex"}


async def test_a_part_without_an_answer_is_named() -> None:
    model = by_part([NOT_THERE, step(("answer", "")), NOT_THERE], [PEOPLE], "never asked for")
    tools = Tools(await ports(model))
    answer = await Agentic().answer(BOTH, tools)
    assert answer.text == "Globex:\nGlobex employs 77 people in all [2]."
    assert [note for note in answer.notes if note.startswith("not answered for Acme: No answer")]
    assert tools.cost.llm_calls_by_purpose == {"answer": 2, "plan": 1}


async def test_a_part_leaves_the_others_the_calls_for_their_answers() -> None:
    model = by_part([NOT_THERE, step(("search", "steel")), STEEL], [PEOPLE], NOT_THERE)
    tools = Tools(await ports(model), Limits(max_llm_calls=4))
    answer = await Agentic().answer(BOTH, tools)
    assert tools.cost.llm_calls_by_purpose == {"answer": 2}
    assert answer.text == "Globex:\nGlobex employs 77 people in all [2]."
    assert "not answered for Acme" in " ".join(answer.notes)


async def test_with_too_few_calls_or_told_so_all_parts_are_answered_in_one() -> None:
    for apart, limits in ((False, Limits()), (True, Limits(max_llm_calls=1))):
        model = ScriptedGenerator([PEOPLE.replace("[1]", "[2]")])
        tools = Tools(await ports(model), limits)
        answer = await Agentic(apart=apart).answer(BOTH, tools)
        assert tools.cost.llm_calls_by_purpose == {"answer": 1}
        assert answer.text == "Globex employs 77 people in all [2]."
