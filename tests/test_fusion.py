"""Reciprocal rank fusion against literal fractions."""

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fusion import rrf
from app.types import Chunk, DocumentMeta, Hit

META = DocumentMeta(title="t", source="s")


def hits(names: str) -> list[Hit]:
    return [
        Hit(Chunk(n, "d", 0, 1, 0, 1, n, "", "text", None, META), rank, 10.0 - rank) for rank, n in enumerate(names, 1)
    ]


def test_formula_with_ranks_from_one() -> None:
    fused = rrf({"dense": hits("ab"), "bm25": hits("bc")})
    assert [(h.chunk.id, h.rank) for h in fused] == [("b", 1), ("a", 2), ("c", 3)]
    assert [h.score for h in fused] == pytest.approx(
        [float(Fraction(1, 62) + Fraction(1, 61)), float(Fraction(1, 61)), float(Fraction(1, 62))]
    )
    assert fused[0].legs["dense"].rank == 2
    assert fused[0].legs["bm25"].rank == 1
    assert fused[0].legs["bm25"].score == 9.0
    assert set(fused[1].legs) == {"dense"}


def test_weights_and_constant() -> None:
    fused = rrf({"dense": hits("ab"), "bm25": hits("ba")}, c=0, weights={"bm25": 0.5})
    assert [(h.chunk.id, h.score) for h in fused] == [("a", 1.25), ("b", 1.0)]


def test_ties_are_ordered_by_id_whatever_the_order_of_the_legs() -> None:
    legs = {"x": hits("cab"), "y": hits("bca"), "z": hits("abc")}
    orders = {tuple(h.chunk.id for h in rrf(dict(order))) for order in permutations(legs.items())}
    assert orders == {("a", "b", "c")}


def test_fusing_identical_rankings_returns_that_ranking() -> None:
    assert [h.chunk.id for h in rrf({"x": hits("dbca"), "y": hits("dbca")})] == list("dbca")


@given(st.lists(st.permutations("abcdef").map(lambda p: "".join(p[:4])), min_size=1, max_size=4))
def test_an_absent_document_adds_nothing(rankings: list[str]) -> None:
    legs = {str(i): hits(ranking) for i, ranking in enumerate(rankings)}
    for hit in rrf(legs):
        expected = sum(1 / (60 + r.index(hit.chunk.id) + 1) for r in rankings if hit.chunk.id in r)
        assert hit.score == pytest.approx(expected)
        assert len(hit.legs) == sum(hit.chunk.id in r for r in rankings)
