"""Strips: exact slices of their passage, in its order, nothing between them but white space."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.evidence.strips import decomposed, recomposed
from app.types import Chunk, ChunkKind, Hit
from tests.fakes import META

BEFORE = "Page one. "


def hit_of(text: str, kind: ChunkKind = "text") -> Hit:
    start = len(BEFORE)
    chunk = Chunk("c", "d", 0, 1, start, start + len(text), text, "", kind, None, META)
    return Hit(chunk, 1, 1.0)


PROSE = "Cash rose. Debt fell. Rates rose. The board met. It ate. It left. All is well."


def test_three_sentences_are_a_strip_and_eight_rows() -> None:
    assert [s.chunk.text for s in decomposed(hit_of(PROSE))] == [
        "Cash rose. Debt fell. Rates rose.",
        "The board met. It ate. It left.",
        "All is well.",
    ]
    rows = "\n".join(f"Row {n} {n}0" for n in range(1, 10))
    assert [s.chunk.text.count("\n") + 1 for s in decomposed(hit_of(rows, "table"))] == [8, 1]
    assert decomposed(hit_of("Cash rose.")) == [hit_of("Cash rose.")]


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        ((True, True, True), PROSE),
        ((True, False, True), PROSE),
        ((True, False, False), "Cash rose. Debt fell. Rates rose."),
        ((False, True, True), "The board met. It ate. It left. All is well."),
        ((False, False, False), PROSE),
    ],
)
def test_from_the_first_strip_kept_to_the_last_it_is_one_slice(kept: tuple[bool, ...], text: str) -> None:
    hit = hit_of(PROSE)
    assert recomposed(hit, decomposed(hit), kept).chunk.text == text


@given(
    st.lists(
        st.sampled_from(["Cash rose. ", "Debt fell 3%.\n", "See Note 4. ", "\n\n", "Total 1,577 2,001\n"]), max_size=30
    ),
    st.sampled_from(["text", "table"]),
    st.data(),
)
def test_strips_are_exact_slices_in_order(parts: list[str], kind: ChunkKind, data: st.DataObject) -> None:
    text = "".join(parts)
    page, hit = BEFORE + text, hit_of(text, kind)
    strips = decomposed(hit)
    kept = data.draw(st.lists(st.booleans(), min_size=len(strips), max_size=len(strips)))
    for hits in (strips, [recomposed(hit, strips, kept)]):
        ends = [len(BEFORE)]
        for strip in hits:
            assert page[strip.chunk.start : strip.chunk.end] == strip.chunk.text
            assert strip.chunk.start >= ends[-1]
            ends.append(strip.chunk.end)
    between = [text[a.chunk.end - len(BEFORE) : b.chunk.start - len(BEFORE)] for a, b in pairwise(strips)]
    assert all(not gap.strip() for gap in between)
