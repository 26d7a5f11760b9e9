"""What a slow reader is shown: the best statements, within the budget, each under its passage's number."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.extractive import ExtractiveGenerator
from app.adapters.packing import StatementPacker, rough_count
from app.prompts import brief_source
from app.tools import Tools
from app.types import Excerpt, Hit, Packed
from tests.adapters.test_extractive import PASSAGES, hit
from tests.fakes import LetterEmbedder, fake_ports

pytestmark = pytest.mark.anyio


async def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


async def pack(question: str, budget: int = 200, passages: tuple[Hit, ...] = PASSAGES) -> Packed:
    return await StatementPacker(ExtractiveGenerator(LetterEmbedder()), budget, words).pack(question, passages)


async def test_a_row_is_told_with_the_heading_of_the_value_asked_for() -> None:
    packed = await pack("What were Orrin's net sales in 2021?")
    [table] = packed.excerpts  # nothing else tells of 2021
    assert "Net sales: 1,460 (Year ended December 31, 2021)" in table.text.splitlines()
    assert packed.ops == {"sparse": 3, "dense": 3}


async def test_a_change_is_told_with_all_values() -> None:
    packed = await pack("How did Orrin's net sales change?")
    row = "Net sales: 1,577 (Year ended December 31, 2022); 1,460 (Year ended December 31, 2021)"
    assert row in packed.excerpts[0].text.splitlines()


async def test_the_best_come_first_into_a_small_budget() -> None:
    [only] = (await pack("What were Orrin's net sales in 2021?", budget=45)).excerpts
    assert only == Excerpt(2, "Net sales: 1,460 (Year ended December 31, 2021)")


async def test_a_sentence_that_several_filings_print_is_shown_once() -> None:
    risk = "Our mills depend on the price of wheat, which we cannot foresee."
    filings = tuple(hit(risk, rank, company=f"Orrin {rank}") for rank in (1, 2))
    assert (await pack("On what do the mills depend?", passages=filings)).excerpts == (Excerpt(1, risk),)


async def test_the_passage_of_what_would_be_quoted_comes_first() -> None:
    excerpts = (await pack("What was Orrin's net income in 2022?", budget=400)).excerpts
    assert (excerpts[0].marker, len(excerpts)) == (2, 3)


async def test_where_reasons_are_asked_for_no_rows_are_shown() -> None:
    excerpts = (await pack("Why did net sales rise?", budget=400)).excerpts
    assert [e.marker for e in excerpts] == [3, 1]


@pytest.mark.parametrize(
    ("label", "unit", "told"),
    [
        ("Net sales", "(in millions, except per share data)", "Net sales: 1,577 million (2022)"),
        ("Net sales", "$ in thousands (unaudited)", "Net sales: 1,577 thousand (2022)"),
        ("Earnings per share", "in millions, except per share data", "Earnings per share: 1,577 (2022)"),
        ("Wheat milled", "tons", "Wheat milled: 1,577 (2022) (tons)"),
        ("Net sales", "", "Net sales: 1,577 (2022)"),
    ],
)
async def test_a_row_is_told_with_its_scale(label: str, unit: str, told: str) -> None:
    [table] = [hit(f"{label} 1,577", 1, kind="table")]
    chunk = replace(table.chunk, columns=("2022",), unit=unit or None)
    packed = await pack(f"What were the {label} in 2022?", passages=(replace(table, chunk=chunk),))
    assert packed.excerpts == (Excerpt(1, told),)


async def test_passages_without_statements_are_shown_as_they_begin() -> None:
    assert (await pack("What?", passages=(hit("Notes", 1),))).excerpts == (Excerpt(1, "Notes"),)


@settings(deadline=None)
@given(st.integers(64, 300))
async def test_no_budget_is_exceeded(budget: int) -> None:
    excerpts = (await pack("net sales, wages and the board in 2022?", budget)).excerpts
    shown = [text for e in excerpts for text in (e.text, brief_source(PASSAGES[e.marker - 1].chunk))]
    assert sum(await words(shown)) + 30 * len(excerpts) <= budget
    assert len({e.marker for e in excerpts}) == len(excerpts)


async def test_tokens_are_counted_roughly_without_a_tokenizer() -> None:
    assert await rough_count(["", "abc", "abcdef"]) == [1, 2, 3]


async def test_packing_is_traced_and_billed() -> None:
    packer = StatementPacker(ExtractiveGenerator(LetterEmbedder()), 200, words)
    ports = await fake_ports()
    assert await Tools(ports).pack("q", PASSAGES) is None
    object.__setattr__(ports, "packer", packer)
    tools = Tools(ports)
    excerpts = await tools.pack("What were Orrin's net sales in 2021?", PASSAGES)
    assert excerpts is not None
    [step] = tools.trace
    assert (step.name, step.detail["shown"]) == ("pack", [e.marker for e in excerpts])
    assert tools.cost.ops_by_kind == {"sparse": 3, "dense": 3}
