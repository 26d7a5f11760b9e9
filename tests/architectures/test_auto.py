"""The architecture that suits, and the next where its answer does not verify."""

from dataclasses import replace

import pytest

from app.architectures.auto import Auto
from app.errors import LimitExceeded, Unavailable
from app.tools import Tools
from app.types import Limits, Measured, Question
from tests.conftest import MakePorts
from tests.fakes import ScriptedGenerator

pytestmark = pytest.mark.anyio

VERIFIED = "Debt was $4 million at year end [1]."


def routes(tools: Tools) -> list[tuple[str, str]]:
    return [(step.detail["arch"], step.detail["why"]) for step in tools.trace if step.name == "route"]


async def test_what_verifies_is_left_at_that(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(ScriptedGenerator([VERIFIED])))
    answer = await Auto().answer(Question("Acme's debt", k=2), tools)
    assert answer.citations[0].verified
    assert routes(tools) == [("agentic", "it names Acme")]


async def test_what_does_not_is_tried_again_and_both_are_on_the_bill(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(ScriptedGenerator(["NOT IN THE PASSAGES", VERIFIED])))
    answer = await Auto().answer(Question("Acme's debt", k=2), tools)
    assert answer.citations[0].verified
    assert routes(tools) == [("agentic", "it names Acme"), ("crag", "no citation of the answer before verified")]
    assert tools.cost.llm_calls >= 2


async def test_one_attempt_is_one(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(ScriptedGenerator(["NOT IN THE PASSAGES"])))
    answer = await Auto(attempts=1).answer(Question("Acme's debt", k=2), tools)
    assert answer.reason == "not_supported"
    assert len(routes(tools)) == 1


async def test_beyond_the_budget_the_first_answer_stands(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(ScriptedGenerator(["NOT IN THE PASSAGES"])), Limits(max_llm_calls=1))
    answer = await Auto().answer(Question("Acme's debt", k=2), tools)
    assert answer.reason == "not_supported"
    assert tools.cost.llm_calls == 1
    none = Tools(await make_ports(ScriptedGenerator([])), Limits(max_llm_calls=0))
    assert (await Auto().answer(Question("Acme's debt", k=2), none)).reason == "limit"
    with pytest.raises(LimitExceeded):
        await Auto().answer(Question("debt", k=2), Tools(await make_ports(ScriptedGenerator([])), Limits(0)))


async def test_without_a_grader_the_first_answer_stands(make_ports: MakePorts) -> None:
    ports = replace(await make_ports(ScriptedGenerator(["NOT IN THE PASSAGES"])), reranker=None)
    answer = await Auto().answer(Question("Acme's debt", k=2), Tools(ports))
    assert answer.reason == "not_supported"


async def test_what_cannot_run_here_is_passed_over(make_ports: MakePorts) -> None:
    chosen = [Measured(arch, 9, quality, 9.0, 1.0) for arch, quality in (("crag", 0.9), ("naive", 0.5))]
    ports = replace(await make_ports(ScriptedGenerator([VERIFIED])), reranker=None, measured={"named": chosen})
    tools = Tools(ports)
    answer = await Auto(attempts=1).answer(Question("Acme's debt", k=2), tools)
    assert answer.citations[0].verified
    assert [arch for arch, _ in routes(tools)] == ["crag", "naive"]
    alone = replace(ports, measured={"named": [replace(one, arch="crag") for one in chosen]})
    with pytest.raises(Unavailable, match="RERANKER_MODEL"):
        await Auto().answer(Question("Acme's debt", k=2), Tools(alone))
