"""Fusion against literal fractions and standard scores worked out by hand."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.retrieval.fusion import rrf, standardised
from app.types import Chunk, DocumentMeta, Hit, LegRank

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


def found(name: str, **scores: float) -> Hit:
    """A hit with these scores per leg; no rank matters."""
    [hit] = hits(name)
    return replace(hit, legs={leg: LegRank(1, score) for leg, score in scores.items()})


def test_standard_scores_add_up_and_a_leg_that_missed_a_hit_gives_it_its_lowest() -> None:
    # dense 3, 1, 1: mean 5/3, deviation √(8/9). bm25 2, 4 and, where it found nothing, 2: mean 8/3, the same deviation.
    fused = standardised([found("a", dense=3, bm25=2), found("b", dense=1, bm25=4), found("c", dense=1)])
    deviation = sqrt(8 / 9)
    assert [(h.chunk.id, h.rank) for h in fused] == [("a", 1), ("b", 2), ("c", 3)]
    assert [h.score for h in fused] == pytest.approx(
        [(4 / 3 - 2 / 3) / deviation, (-2 / 3 + 4 / 3) / deviation, (-2 / 3 - 2 / 3) / deviation]
    )


def test_a_leg_of_equal_scores_decides_nothing_and_weights_do() -> None:
    pair = [found("a", x=1, y=1, z=5), found("b", x=1, y=2, z=4)]
    assert [h.score for h in standardised(pair)] == [0, 0]
    assert [(h.chunk.id, h.score) for h in standardised(pair, weights={"y": 2})] == [("b", 1), ("a", -1)]


def test_no_hits_fuse_to_none() -> None:
    assert standardised([]) == []


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=6), st.integers(1, 9), st.integers(-9, 9))
def test_a_leg_in_other_units_fuses_to_the_same(scores: list[int], scale: int, shift: int) -> None:
    plain = standardised([found(chr(97 + i), x=s, y=i % 3) for i, s in enumerate(scores)])
    moved = standardised([found(chr(97 + i), x=scale * s + shift, y=i % 3) for i, s in enumerate(scores)])
    by_id = {hit.chunk.id: hit.score for hit in moved}
    assert [hit.score for hit in plain] == pytest.approx([by_id[hit.chunk.id] for hit in plain], abs=1e-9)
