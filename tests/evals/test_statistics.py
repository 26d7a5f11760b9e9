"""Intervals and tests against values worked out by hand or printed elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.statistics import Estimate, bootstrap, estimate, holm, paired, pareto, quantile, sign_test, wilson


def test_sign_test_against_literal_fractions() -> None:
    assert sign_test(0, 0) == 1
    assert sign_test(1, 0) == 1
    assert sign_test(5, 0) == 2 / 32
    assert sign_test(9, 1) == 2 * (1 + 10) / 1024
    assert sign_test(3, 3) == 1


def test_wilson_against_published_values() -> None:
    # Newcombe (1998), Two-sided confidence intervals for the single proportion, table I, method 3.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)


def test_estimates() -> None:
    assert estimate([]) == Estimate(0)
    shares = estimate([1, 0, 1, 1])
    assert (shares.n, shares.mean, (shares.low, shares.high)) == (4, 0.75, wilson(3, 4))
    means = estimate([0.25, 0.5, 0.75] * 20)
    assert means.mean == 0.5
    assert means.low is not None
    assert means.high is not None
    # The standard error is 0.204 / sqrt(60) = 0.0264.
    assert means.low == pytest.approx(0.5 - 1.96 * 0.0264, abs=0.01)
    assert means.high == pytest.approx(0.5 + 1.96 * 0.0264, abs=0.01)
    assert estimate([0.25, 0.5]) == estimate([0.25, 0.5])


def test_a_difference_is_no_proportion() -> None:
    once = bootstrap([1.0] + [0.0] * 99)
    assert (once.n, once.mean, once.low) == (100, 0.01, 0)
    assert bootstrap([]) == Estimate(0)


def test_paired_counts_questions_both_have() -> None:
    found = paired({"a": 1.0, "b": 0.0, "c": 0.5, "d": 1.0}, {"a": 0.0, "b": 1.0, "c": 0.5, "x": 1.0})
    assert (found.n, found.wins, found.damages, found.difference, found.p) == (3, 1, 1, 0.0, 1.0)


def test_holm_against_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_p_and_bonferroni(p_values: list[float]) -> None:
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        assert p <= adjusted <= min(1.0, p * len(p_values)) + 1e-12


def test_pareto_keeps_what_nothing_dominates() -> None:
    points = {"cheap": (0.5, 10.0, 0.0), "good": (0.9, 90.0, 1.0), "bad": (0.4, 50.0, 1.0), "twin": (0.5, 10.0, 0.0)}
    assert pareto(points) == {"cheap", "good", "twin"}


def test_quantiles() -> None:
    assert quantile([1, 2, 3, 4], 0.5) == 2.5
    assert quantile([], 0.5) is None
