"""A model's reply read as a step, whether it calls functions or writes JSON; what it is offered."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.steps import Step, UnusableReply, parse, prompt, schema_of, step_of
from app.agent.toolbox import Action
from app.types import Call, Generation

FILTER = {"field": "form", "op": "$eq", "value": "10-K"}


def called(*calls: tuple[str, str], text: str = "") -> Step:
    return step_of(Generation(text, calls=tuple(Call(*call) for call in calls)))


def test_calls_and_json_say_the_same() -> None:
    arguments = {"input": "debt", "company": "Acme", "year": "2022", "filters": [FILTER], "arch": "dense"}
    asked = Step("Debt is missing.", (Action("search", "debt", "Acme", "2022", [FILTER], "dense"),))
    assert called(("search", json.dumps({"thought": "Debt is missing."} | arguments))) == asked
    assert parse(json.dumps({"thought": "Debt is missing.", "actions": [{"tool": "search"} | arguments]})) == asked


def test_several_calls_are_one_step_and_what_is_said_beside_them_is_its_thought() -> None:
    step = called(("search", '{"input": "a"}'), ("calculate", '{"input": "1 + 1"}'), text="Two things.")
    assert step == Step("Two things.", (Action("search", "a"), Action("calculate", "1 + 1")))


def test_a_call_without_arguments_is_one() -> None:
    assert called(("answer", "")).actions == (Action("answer", ""),)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("rm", '{"input": "-rf"}'), "there is no tool 'rm'; there are search, open_page, follow_entity"),
        (("search", "{"), "the arguments of search are no JSON object"),
        (("search", "[" * 5000), "the arguments of search are no JSON object"),
        (("search", "7"), "the arguments of search are no JSON object"),
    ],
)
def test_of_calls_that_cannot_be_made_the_others_are(call: tuple[str, str], why: str) -> None:
    step = called(("search", '{"input": "debt"}'), call)
    assert [action.input for action in step.actions] == ["debt"]
    assert [problem[: len(why)] for problem in step.unusable] == [why]
    with pytest.raises(UnusableReply, match=why):
        called(call)


def test_at_most_four_calls_are_made() -> None:
    assert len(called(*(("search", json.dumps({"input": str(n)})) for n in range(9))).actions) == 4


LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_reply_breaks_it(value: Any) -> None:
    for shape in (value, {"actions": value}, {"actions": [{"tool": "search", "input": value, "filters": value}]}):
        reply = json.dumps(shape)
        for generation in (Generation(reply), Generation("", calls=(Call("search", reply), Call(reply, reply)))):
            with suppress(UnusableReply):
                assert step_of(generation).actions


def objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    if isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def test_every_object_is_closed_as_constrained_decoding_wants_it() -> None:
    asked = prompt("debt?", [], frozenset())
    assert asked.calling is not None
    schemas = [asked.json_schema, *(function.parameters for function in asked.calling.functions)]
    found = [each for schema in schemas for each in objects(schema)]
    assert len(found) > 10
    for each in found:
        assert each["required"] == list(each["properties"])
        assert each["additionalProperties"] is False


def test_only_what_the_index_serves_is_offered_in_either_form() -> None:
    asked = prompt("debt?", [], frozenset({"figures"}))
    assert asked.calling is not None
    assert [f.name for f in asked.calling.functions] == ["search", "open_page", "follow_entity", "calculate", "answer"]
    assert "figures" not in json.dumps(asked.json_schema)
    assert "- figures" not in asked.messages[0][1]
    assert json.dumps(schema_of(["figures"])).count("figures") == 1


def test_calls_are_asked_for_without_examples_in_json() -> None:
    asked = prompt("debt?", ["search\nAcme: debt was 4"], frozenset())
    assert asked.calling is not None
    assert asked.messages[-1] == asked.calling.messages[-1]
    assert [role for role, _ in asked.calling.messages] == ["system", "user"]
    assert "Tools:" not in asked.calling.messages[0][1]
