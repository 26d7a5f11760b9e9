"""Agentic over a real endpoint that calls functions: several at once, billed as the endpoint counts, errors told."""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from app.adapters.openai_chat import OpenAIGenerator
from app.agent.steps import prompt
from app.architectures.agentic import Agentic
from app.tools import Tools
from app.types import Answer, FloatArray, Limits, Question
from tests.architectures.two_companies import acts, ports
from tests.fakes import LetterEmbedder
from tests.integration.openai_server import (
    COMPLETION,
    Reply,
    ScriptedEndpoint,
    calling,
    error,
    scripted_endpoint,
    small_model,
)

pytestmark = pytest.mark.anyio


class SlowToEmbed(LetterEmbedder):
    async def queries(self, texts: Sequence[str]) -> FloatArray:
        await asyncio.sleep(0.01)
        return await self.passages(texts)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted_endpoint() as served:
        yield served


def written(text: str) -> Reply:
    choices = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]
    return Reply(body={**COMPLETION, "choices": choices})


NOT_THERE = written("NOT IN THE PASSAGES")
PEOPLE = written("Globex employs 77 people in all [1].")


def call(tool: str, text: str, **more: object) -> tuple[str, str]:
    return tool, json.dumps({"thought": "It is missing.", "input": text, **more})


async def ask(
    endpoint: ScriptedEndpoint, *replies: Reply, max_llm_calls: int | None = None, max_steps: int = 3
) -> tuple[Answer, Tools]:
    """Each time a first answer that finds nothing comes before the replies."""
    endpoint.play(NOT_THERE, *replies)
    generator = OpenAIGenerator("m", base_url=endpoint.base_url, timeout_s=5.0, max_retries=0)
    opened = replace(await ports(), generator=generator, embedder=SlowToEmbed())
    tools = Tools(opened, Limits(max_llm_calls=max_llm_calls))
    answer = await Agentic(max_steps=max_steps).answer(Question("Globex people", k=3), tools)
    await generator.aclose()
    return answer, tools


async def test_a_real_model_whose_server_ignores_functions_is_bound_by_the_schema_from_then_on() -> None:
    """llama.cpp without a template of calls answers in prose, whatever was required."""
    asked = replace(prompt("What were the net sales of Tern Foods?", [], frozenset()), max_tokens=80)
    with small_model() as url:
        generator = OpenAIGenerator("small", base_url=url, timeout_s=300.0, max_retries=0)
        first, second = await generator.generate(asked), await generator.generate(asked)
        await generator.aclose()
    assert (first.calls, first.llm_calls, second.llm_calls) == ((), 1, 1)
    assert re.match(r'\{\s*"thought"\s*:', second.text)
    assert second.input_tokens > first.input_tokens


async def test_calls_of_one_reply_are_made_at_once_and_the_definitions_are_on_the_bill(
    endpoint: ScriptedEndpoint,
) -> None:
    both = calling(call("search", "steel"), call("search", "contract"), prompt_tokens=900, completion_tokens=40)
    done = calling(call("answer", ""), prompt_tokens=950, completion_tokens=5)
    answer, tools = await ask(endpoint, both, done, PEOPLE)
    assert answer.text == "Globex employs 77 people in all [1]."
    assert [(act["tool"], act["thought"]) for act in acts(tools)[1:]] == [("search", "It is missing.")] * 2
    names = [one.name for one in tools.trace]
    first, second = [i for i, name in enumerate(names) if name == "act"][1:]
    assert "search" not in names[first:second]
    assert (tools.cost.input_tokens, tools.cost.output_tokens) == (900 + 950 + 2 * 7, 40 + 5 + 2 * 3)
    assert tools.cost.llm_calls_by_purpose == {"plan": 2, "answer": 2}
    names_of = [[tool["function"]["name"] for tool in request.get("tools", ())] for request in endpoint.requests]
    assert names_of == [[], *[["search", "open_page", "follow_entity", "calculate", "answer"]] * 2, []]
    assert "Our steel comes from Globex" in endpoint.requests[2]["messages"][-1]["content"]


async def test_an_endpoint_that_refuses_functions_is_asked_for_json(endpoint: ScriptedEndpoint) -> None:
    step = {"thought": "", "actions": [{"tool": "search", "input": "steel"}, {"tool": "answer", "input": ""}]}
    refused = error(400, "this model does not support tools")
    answer, tools = await ask(endpoint, refused, written(json.dumps(step)), PEOPLE)
    assert answer.citations
    assert [act["arguments"] for act in acts(tools)[1:]] == [{"input": "steel"}]
    assert tools.cost.llm_calls_by_purpose == {"plan": 1, "answer": 2}


@pytest.mark.parametrize("garbage", [written("I would search."), calling(("rm", "{}")), calling(("search", "{"))])
async def test_garbage_leaves_it_to_the_rules(endpoint: ScriptedEndpoint, garbage: Reply) -> None:
    answer, tools = await ask(endpoint, garbage)
    assert answer.reason == "not_supported"
    assert tools.cost.llm_calls_by_purpose == {"plan": 1, "answer": 1}
    assert "unusable" in [one.name for one in tools.trace]


async def test_one_that_loops_is_stopped_at_the_first_repetition(endpoint: ScriptedEndpoint) -> None:
    again = calling(call("search", "steel"))
    answer, tools = await ask(endpoint, again, again, PEOPLE, max_steps=20)
    assert tools.cost.llm_calls_by_purpose == {"plan": 2, "answer": 2}
    assert answer.citations


async def test_one_that_never_stops_is_stopped(endpoint: ScriptedEndpoint) -> None:
    endless = [calling(call("calculate", f"77 * {n}")) for n in range(3)]
    answer, _ = await ask(endpoint, *endless, PEOPLE)
    assert "stopped: the limit of 3 steps is reached" in answer.notes
    answer, tools = await ask(endpoint, *endless, PEOPLE, max_llm_calls=5, max_steps=20)
    assert "stopped: only what writing the answer takes was left" in answer.notes
    assert tools.cost.llm_calls_by_purpose == {"plan": 3, "answer": 2}


async def test_a_call_of_no_tool_is_told_beside_the_others(endpoint: ScriptedEndpoint) -> None:
    mixed = calling(call("search", "steel"), call("delete_everything", ""))
    _, tools = await ask(endpoint, mixed, calling(call("answer", "")), PEOPLE)
    assert "there is no tool 'delete_everything'" in endpoint.requests[2]["messages"][-1]["content"]
    assert len(acts(tools)) == 2
