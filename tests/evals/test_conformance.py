"""A sound service passes; each way to break it is caught under its own name."""

import pytest

from app.tools import Ports
from evals import conformance
from evals.conformance import check_reply, numbers
from evals.subjects import parse_system
from tests.evals import world
from tests.fakes import STAMP

pytestmark = pytest.mark.anyio
SYSTEMS = [parse_system("naive"), parse_system("hybrid:query_filters=false")]


async def promises_broken(of: Ports | None = None, tamper: world.Tamper | None = None) -> set[str]:
    async with world.asking(of, tamper) as asking:
        _, violations = await conformance.run(asking, SYSTEMS, world.QUESTIONS[:4] + world.UNANSWERABLE[:1], probes=2)
    return {violation.promise for violation in violations}


async def test_a_sound_service_breaks_no_promise() -> None:
    async with world.asking() as asking:
        questions = world.QUESTIONS + world.UNANSWERABLE
        rows, violations = await conformance.run(asking, SYSTEMS, questions)
    assert violations == []
    naive = rows[0]
    assert (naive.replies, naive.abstained, naive.citations) == (28, 4, 24)
    assert (naive.exact, naive.with_numbers, naive.in_quote) == (24, 24, 24)


@pytest.mark.parametrize(
    ("tamper", "promises"),
    [
        (world.ranks_from_zero, {"passages"}),
        (world.leg_ranks_from_zero, {"passages"}),
        (world.cited_a_page_off, {"exact_slice", "markers"}),
        (world.cost_not_counted, {"cost_counted"}),
        (world.leg_not_billed, {"cost_trace", "cost_counted"}),
        (world.sum_off, {"cost_sum"}),
        (world.bold, {"numbers_in_quote"}),
        (world.dangling_marker, {"markers"}),
    ],
)
async def test_a_broken_promise_is_named(tamper: world.Tamper, promises: set[str]) -> None:
    assert await promises_broken(tamper=tamper) == promises


async def test_a_leg_that_ignores_filters_is_caught() -> None:
    assert await promises_broken(await world.ports(world.LeakyStore(STAMP))) == {"filter"}


async def test_a_question_without_a_reply_is_a_violation() -> None:
    async with world.asking() as asking:
        _, violations = await conformance.run(asking, [parse_system("hyde2")], world.QUESTIONS[:1])
    assert [(v.promise, "unknown_architecture" in v.detail) for v in violations] == [("error", True)]


async def test_an_unknown_page_is_no_exact_slice() -> None:
    async with world.asking() as asking:
        reply = await asking.subject.ask("naive", world.QUESTIONS[0].text, k=1, filters={}, options={})
    [citation] = reply["citations"]
    assert [p for p, _ in check_reply(reply, {(citation["document_id"], citation["page"]): None})] == ["exact_slice"]


def test_numbers_are_values() -> None:
    assert numbers("$1,577.00 in FY2018 against (1577)") == numbers("2018, 1577")
