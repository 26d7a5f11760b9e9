"""Numbers, units and support, by literal cases."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.evidence.quotes import carries, numbers, support, units
from app.types import Chunk, ChunkKind, DocumentMeta

META = DocumentMeta(title="t", source="s")


def chunk(text: str, kind: ChunkKind = "text") -> Chunk:
    return Chunk("c", "d", 0, 1, 0, len(text), text, "", kind, None, META)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1,577.00 and (1577)", {"1577"}),
        ("8.70%, 8.7", {"8.7"}),
        ("FY2018, Q3", {"2018", "3"}),
        ("in 2018, 2017 and 2016,", {"2018", "2017", "2016"}),
        ("Note 5. Debt", {"5"}),
        ("no numbers", set()),
        ("1.2.3", {"1.2"}),
    ],
)
def test_numbers(text: str, expected: set[str]) -> None:
    assert numbers(text) == expected


def test_units_of_a_table_are_its_rows() -> None:
    text = "  Net sales 10 9\nCost of sales (4) (3)\n\n Total 6 6 "
    assert [u.text for u in units(chunk(text, "table"))] == ["Net sales 10 9", "Cost of sales (4) (3)", "Total 6 6"]


def test_units_of_prose_are_sentences_across_line_ends() -> None:
    text = "Net sales of Acme Corp. rose\nto $3.2 billion. The U.S. unit fell."
    assert [u.text for u in units(chunk(text))] == [
        "Net sales of Acme Corp. rose\nto $3.2 billion.",
        "The U.S. unit fell.",
    ]


@given(st.text(), st.sampled_from(["text", "table"]))
def test_units_are_slices_in_order(text: str, kind: ChunkKind) -> None:
    found = units(chunk(text, kind))
    assert all(text[u.start : u.end] == u.text and u.text == u.text.strip() for u in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert "".join("".join(u.text.split()) for u in found) == "".join(text.split())


def test_support_counts_terms_and_half_for_context() -> None:
    assert support("Net sales rose", "net sales rose sharply", "") == 1.0
    assert support("Acme net sales rose", "net sales rose", "Acme Corp") == pytest.approx(3.5 / 4)
    assert support("Profit fell", "net sales rose", "") == 0.0
    assert support("of the", "of the", "") == 0.0


@pytest.mark.parametrize(
    ("quote", "unit", "sentence", "carried"),
    [
        ("Net sales of 1,577 million", None, "Net sales were $1.58 billion", True),
        ("Net sales $ 1,577 $ 1,460", "in millions", "Net sales were $1.58 billion", True),
        ("Net sales $ 1,577", "in millions, except per share data", "Net sales were $1,577 million", True),
        ("Net sales $ 1,577", "in millions", "Net sales were $1,577 billion", False),
        ("Net sales $ 1,577", "in millions", "Net sales were $1,577 thousand", False),
        ("Net sales $ 1,577", "in millions", "Net sales were $1.59 billion", False),
        ("Net sales $ 1,577", None, "Net sales were $1.58 billion", False),
        ("Net sales $ 1,577", None, "Net sales were $1,577 million", True),
        ("Net sales of 1.577 billion", None, "Net sales were 1,577", False),
        ("5,000 thousand", None, "It was $5 million", True),
        ("Loss (27)", "in millions", "It lost 27 million", True),
        ("Diluted 2.15", "in millions, except per share data", "Diluted earnings were $2.15 a share", True),
        ("sales rose 8%", None, "Sales rose 8 percent", True),
        ("sales rose 8%", None, "Sales rose $8 million", False),
        ("a margin of 15.3%", None, "The margin was about 15%", True),
        ("a margin of 15.6%", None, "The margin was about 15%", False),
        ("1,577 1,460\n2024 2023", "in millions", "In 2024 it was 1,577", True),
        ("1,577 1,460", "in millions", "In 2024 it was 1,577", False),
        ("nine members on December 31, 2022", None, "On December 31, 2022 there were members", True),
        ("no figures here", None, "It was 5", False),
    ],
)
def test_a_number_is_carried_with_its_unit_and_scale(
    quote: str, unit: str | None, sentence: str, carried: bool
) -> None:
    assert carries(quote, sentence, unit) is carried


def test_a_long_sentence_of_prose_is_one_unit_and_a_list_is_cut_at_its_lines() -> None:
    words = "The company may be subject to claims of many kinds in many countries at once"
    prose = "\n".join([f"{words}, and"] * 8 + ["it may lose them."])
    assert [unit.text for unit in units(chunk(prose))] == [prose]
    items = "\n".join(f"Item {n} of the list" for n in range(40))
    assert len(units(chunk(items))) == 40
