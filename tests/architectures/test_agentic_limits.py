"""Limits met on the way: the answer is a part, priced, and says so."""

from dataclasses import replace
from typing import Any

import pytest

from app.architectures.agentic import Agentic
from app.errors import LimitExceeded
from app.tools import Tools
from app.types import (
    Generation,
    Limits,
    Prompt,
    Question,
)
from tests.architectures.two_companies import (
    GLOBEX,
    NOT_THERE,
    PEOPLE,
    STEEL,
    SlowAboutGlobex,
    acting,
    acts,
    ports,
    step,
)
from tests.conftest import MakeClient
from tests.fakes import (
    ScriptedGenerator,
)

pytestmark = pytest.mark.anyio


async def test_tokens_run_out_on_the_way_and_the_answer_says_so() -> None:
    probe = Tools(await ports(acting(step(("answer", "")))))
    await Agentic().answer(GLOBEX, probe)
    made = [each.input_tokens + each.output_tokens for each in probe.trace if each.llm_calls]
    most = sum(made) + 2 * max(made) + 200
    model = acting(*(step(("search", f"steel {n}")) for n in range(2)), PEOPLE)
    tools = Tools(await ports(model), Limits(max_tokens=most))
    answer = await Agentic(max_steps=9).answer(GLOBEX, tools)
    assert answer.text == PEOPLE
    assert "stopped: only what writing the answer takes was left" in answer.notes
    assert {"limit": "calls_or_tokens", "why": "what writing the answer takes is kept back"} in [
        each.detail for each in tools.trace if each.name == "limit"
    ]
    assert tools.cost.input_tokens + tools.cost.output_tokens <= most


async def test_time_runs_out_on_the_way_and_enough_is_kept_to_answer() -> None:
    model = acting(*(step(("search", f"steel {n}")) for n in range(2)), PEOPLE, delay_s=0.5)
    tools = Tools(await ports(model), Limits(timeout_s=2.4))
    answer = await Agentic(max_steps=9).answer(GLOBEX, tools)
    assert answer.text == PEOPLE
    assert [each.detail["limit"] for each in tools.trace if each.name == "limit"] == ["time"]
    assert tools.cost.llm_calls_by_purpose == {"plan": 2, "answer": 2}
    assert tools.cost.latency_ms < 2400


async def test_a_tool_that_is_slow_is_given_up_and_the_model_told() -> None:
    model = acting(step(("search", "people of Globex"), ("search", "steel")), step(("answer", "")), STEEL)
    tools = Tools(replace(await ports(model), embedder=SlowAboutGlobex()))
    answer = await Agentic(tool_timeout_s=0.2).answer(Question("steel contract", k=3), tools)
    assert [act.get("error") for act in acts(tools)] == [None, "timeout", None]
    assert "error: search took longer than 0.2 s" in model.prompts[2].messages[-1][1]
    assert answer.citations
    assert "search people of Globex: error: search took longer than 0.2 s" in answer.notes


async def test_what_was_computed_is_said_where_nothing_more_can_be_written() -> None:
    model = acting(step(("calculate", "77 * 2"), ("answer", "")), LimitExceeded("no more"))
    tools = Tools(await ports(model))
    answer = await Agentic().answer(Question("Globex people in all", k=3), tools)
    assert answer.reason == "limit"
    assert answer.notes[-1] == "known: 77 * 2 = 154"
    assert tools.cost.llm_calls == 3


@pytest.mark.parametrize(
    ("body", "limit", "note", "calls"),
    [
        ({"limits": {"max_llm_calls": 3}}, "calls_or_tokens", "only what writing the answer takes was left", 3),
        ({"limits": {"max_tokens": 1200}}, "calls_or_tokens", "the request's limit of 1200 tokens is reached", 3),
        ({"limits": {"timeout_s": 2.6}}, "time", "only what writing the answer takes was left", 3),
        ({"options": {"max_steps": 2}}, "steps", "the limit of 2 steps is reached", 4),
        ({"options": {"max_actions": 2, "max_steps": 9}}, "actions", "the limit of 2 actions is reached", 4),
    ],
)
async def test_at_each_limit_the_reply_is_partial_priced_and_says_so(
    make_client: MakeClient, body: dict[str, Any], limit: str, note: str, calls: int
) -> None:
    """The last line is repeated; a model that never says that it has enough."""
    model = NeverEnough([], delay_s=0.7 if "timeout_s" in str(body) else 0.0)
    async with make_client(await ports(model)) as client:
        reply = (await client.post("/query/agentic", json={"question": "Globex people", "k": 3} | body)).json()
        metrics = (await client.get("/metrics")).text
    assert reply["answer"] == PEOPLE
    assert [c["verified"] for c in reply["citations"]] == [True]
    assert [told for told in reply["notes"] if told.startswith(f"stopped: {note}")]
    assert reply["cost"]["llm_calls"] == calls == len(model.prompts)
    assert reply["cost"]["tokens"]["input"] > 0 < reply["cost"]["ops"]
    assert f'rag_limits_total{{arch="agentic",limit="{limit}"}} 1.0' in metrics


class NeverEnough(ScriptedGenerator):
    async def generate(self, prompt: Prompt) -> Generation:
        more = step(("search", f"steel {len(self.prompts)}"))
        acted = any(before.purpose == "plan" for before in self.prompts)
        self.replies = [more if prompt.purpose == "plan" else PEOPLE if acted else NOT_THERE]
        return await ScriptedGenerator.generate(self, prompt)
