"""Passages of long documents, and BM25 over them against the formula by hand."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.passages import Bm25Index, passages_of


def test_whole_lines_are_joined_up_to_the_size() -> None:
    assert passages_of("one\ntwo\n\nthree", 7) == ["one\ntwo", "three"]


def test_a_long_line_is_cut_at_its_words_or_through_one() -> None:
    assert passages_of("alpha beta gamma", 10) == ["alpha beta", "gamma"]
    assert passages_of("abcdefgh", 3) == ["abc", "def", "gh"]


def test_an_empty_document_is_one_empty_passage() -> None:
    assert passages_of("") == [""]


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 12))
def test_nothing_is_lost_or_too_long(text: str, size: int) -> None:
    found = passages_of(text, size)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert max(map(len, found)) <= size


def test_scores_are_bm25s() -> None:
    found = Bm25Index(["goodwill goodwill", "freight rates"]).scores("What was goodwill?")
    # Two texts of two terms: the length norm is 1. n = 1 of N = 2.
    assert found.tolist() == pytest.approx([log(1.5 / 1.5 + 1) * 2 * 2.2 / (2 + 1.2), 0.0])
