"""The matrix over the real service in the small world: cells, bills, Pareto set, and subjects that it must expose."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.tools import Ports
from evals import matrix
from evals.asking import Outcome
from evals.matrix import Matrix, bill, build
from evals.questions import Question
from evals.subjects import parse_system
from tests.evals import world
from tests.fakes import QuotingGenerator

pytestmark = pytest.mark.anyio
EVERY = world.QUESTIONS + world.UNANSWERABLE


async def measured(
    *names: str, of: Ports | None = None, tamper: world.Tamper | None = None, questions: Sequence[Question] = EVERY
) -> Matrix:
    async with world.asking(of, tamper) as asking:
        systems = [parse_system(name) for name in names]
        await asking.ask(asking.missing(systems, questions))
        scores = [await matrix.score(asking, system, questions) for system in systems]
    return build(scores, questions, "naive", "answer")


async def test_a_sound_service_is_right_and_nothing_is_to_beware_of() -> None:
    found = await measured("naive", "hybrid")
    assert found.kinds == ["all", "about g", "about f", "other", "unanswerable"]
    naive = {name: row["naive"]["all"].estimate for name, row in found.cells.items()}
    assert (naive["answer"].n, naive["answer"].mean) == (28, 1.0)
    assert (naive["page hit@1"].n, naive["page hit@1"].mean) == (24, 1.0)
    assert (naive["refusal"].n, naive["refusal"].mean, naive["false_refusal"].mean) == (4, 1.0, 0.0)
    assert (naive["cited_precision"].mean, naive["exact_slice_rate"].mean) == (1.0, 1.0)
    assert found.warnings == []


async def test_the_baseline_is_compared_with_nothing() -> None:
    found = await measured("naive", "hybrid")
    assert found.cells["answer"]["naive"]["all"].against is None
    against = found.cells["answer"]["hybrid"]["all"].against
    assert against is not None
    assert (against.n, against.wins, against.damages) == (28, 0, 0)


async def test_equal_quality_leaves_the_cheapest_in_the_pareto_set() -> None:
    found = await measured("naive", "hybrid", "hybrid:query_filters=false")
    # Of 24 chunks: naive scans all; hybrid the named company's 6, twice; without reading the question all, twice.
    ops = {name: bill.mean_ops for name, bill in found.bills.items()}
    assert ops == {"naive": 24, "hybrid": (24 * 2 * 6 + 4 * 2 * 6) / 28, "hybrid:query_filters=false": 48}
    assert found.pareto == {"hybrid"}


async def test_wins_and_damages_are_paired_by_question() -> None:
    goodwill = [q for q in world.QUESTIONS if q.kind == "about g"]
    questions = [replace(q, answer="$1 million") if q in goodwill else q for q in EVERY]
    found = await measured("naive", "hybrid", questions=questions)
    assert found.cells["answer"]["naive"]["about g"].estimate.mean == 0
    assert found.cells["answer"]["naive"]["all"].estimate.mean == 24 / 28


async def test_a_service_that_always_abstains_is_exposed() -> None:
    found = await measured("naive", of=await world.ports(generator=world.AbstainingGenerator()))
    assert found.warnings == ["naive abstains from every question that has an answer"]
    assert found.cells["false_refusal"]["naive"]["all"].estimate.mean == 1
    assert found.cells["answer"]["naive"]["all"].estimate.mean == 4 / 28


async def test_a_service_that_never_abstains_is_exposed() -> None:
    found = await measured("naive", of=await world.ports(generator=QuotingGenerator()))
    assert found.warnings == ["naive never abstains: it answers all 4 questions that have no answer"]
    assert found.cells["refusal"]["naive"]["all"].estimate.mean == 0


async def test_citations_a_page_off_lose_their_precision_and_break_a_promise() -> None:
    found = await measured("naive", tamper=world.cited_a_page_off)
    assert found.cells["cited_precision"]["naive"]["all"].estimate.mean == 0
    assert found.cells["exact_slice_rate"]["naive"]["all"].estimate.mean == 0
    assert any("every quote is a slice" in warning for warning in found.warnings)


async def test_an_uncounted_cost_breaks_a_promise() -> None:
    found = await measured("naive", tamper=world.cost_not_counted)
    assert found.warnings == ["naive breaks a promise 28 times: nothing is found for nothing"]


async def test_a_system_without_replies_scores_nothing() -> None:
    found = await measured("naive", "hybrid:nonsense=1", questions=world.QUESTIONS[:3])
    cells = {name: row["hybrid:nonsense=1"]["all"].estimate for name, row in found.cells.items()}
    assert (cells["answer"].mean, cells["page hit@10"].mean, cells["cited_recall"].mean) == (0, 0, 0)
    assert found.warnings == ["hybrid:nonsense=1 gave no reply to 3 of 3 questions; they score 0"]


def outcome(ops: int, calls: int, usd: float | None, source: str = "counted") -> Outcome:
    cost = {
        "ops": ops,
        "ops_by_kind": {"dense": ops},
        "ops_source": source,
        "llm_calls": calls,
        "llm_calls_by_purpose": {"answer": calls},
        "tokens": {"input": 10, "output": 1},
        "usd": usd,
        "latency_ms": float(ops),
    }
    return Outcome("s", "q", {"cost": cost}, None, 1.0)


def test_a_bill_keeps_the_currencies_apart() -> None:
    found = bill([outcome(10, 1, 0.25), outcome(30, 2, 0.5, "bound")])
    assert (found.n, found.mean_ops, found.mean_calls, found.usd) == (2, 20, 1.5, 0.75)
    assert (found.ops_by_kind, found.calls_by_purpose) == ({"dense": 40}, {"answer": 3})
    assert (found.input_tokens, found.output_tokens, found.ops_source) == (20, 2, "bound")
    assert found.latency(0.5) == 20


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    assert bill([outcome(1, 1, 0.25), outcome(1, 1, None)]).usd is None


def test_an_error_reply_is_billed_too() -> None:
    cost = outcome(10, 1, 0.0).cost
    failed = Outcome("s", "q", None, {"error_code": "timeout", "cost": dict(cost)}, 1.0)
    assert bill([failed]).mean_ops == 10
