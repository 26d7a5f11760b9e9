"""Calls to a model for one filing: what fails ends them, what cannot be read is counted and paid for."""

from collections.abc import Sequence
from decimal import Decimal

import pytest

from app.billing import Prices
from app.errors import UpstreamFailed
from app.types import Chunk, Document, DocumentMeta, Prompt
from ingest.model_calls import CallCost, PricedModel, summed
from tests.fakes import ScriptedGenerator

pytestmark = pytest.mark.anyio

META = DocumentMeta("Alder 10-K", "alder.pdf")
DOCUMENT = Document("alder-1", "0" * 64, META, 1, 1)
CHUNK = Chunk("c0", "alder-1", 0, 1, 0, 4, "Corn", "", "text", None, META)
PROMPT = Prompt("relations", (("user", "one two three four"),), max_tokens=100)
PRICES = Prices(Decimal(1_000_000), Decimal(2_000_000))


def number(text: str, shown: Sequence[Chunk]) -> tuple[int, str]:
    return int(text), shown[0].id


async def test_replies_are_read_with_the_chunks_that_they_are_about_in_order() -> None:
    model = PricedModel(ScriptedGenerator(["3", "1"]), PRICES)
    replies = await model.replies(DOCUMENT, [(PROMPT, [CHUNK])] * 2, number)
    assert (replies.read, replies.failed) == ([(3, "c0"), (1, "c0")], 0)
    cost = CallCost(llm_calls=2, input_tokens=8, output_tokens=2, usd=Decimal(12))
    assert CallCost().with_replies(replies.made, PRICES) == cost


async def test_a_reply_that_cannot_be_read_is_a_failure_and_is_paid_for() -> None:
    model = PricedModel(ScriptedGenerator(["none", "7"]), PRICES)
    replies = await model.replies(DOCUMENT, [(PROMPT, [CHUNK])] * 2, number)
    assert (replies.read, replies.failed) == ([(7, "c0")], 1)
    assert CallCost().with_replies(replies.made, PRICES).llm_calls == 2


async def test_after_three_failures_only_calls_under_way_are_waited_for() -> None:
    generator = ScriptedGenerator([UpstreamFailed("no")])
    replies = await PricedModel(generator).replies(DOCUMENT, [(PROMPT, [CHUNK])] * 20, number)
    assert (replies.read, replies.made) == ([], [])
    assert replies.failed == len(generator.prompts) == 4


def test_an_estimate_is_the_most_that_the_prompts_would_take() -> None:
    estimate = CallCost().with_prompts([PROMPT] * 2, PRICES)
    assert estimate == CallCost(llm_calls=2, input_tokens=9, output_tokens=200, usd=Decimal(409), estimated=True)
    assert CallCost().with_prompts([PROMPT], Prices()).usd is None
    assert CallCost().with_prompts([], Prices()).usd == 0


def test_a_sum_is_an_estimate_where_one_of_its_parts_is() -> None:
    costs = [CallCost(llm_calls=1, failed=1), CallCost(cached=2, usd=Decimal(3)), CallCost(llm_calls=1, estimated=True)]
    assert summed(costs) == CallCost(llm_calls=2, failed=1, cached=2, usd=Decimal(3), estimated=True)
