"""Charts: scales that keep what they show inside, and numbers short enough to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.reports.svg import Point, Scale, boxes, curves, damage_bars, fit, scatter, short, stacked


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (7, "7"), (1234, "1,234"), (12345, "12.3k"), (2_500_000, "2.5M"), (3e9, "3G")],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short(value) == text


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20))
def test_values_stay_on_their_scale(values: list[float]) -> None:
    scale = fit(values, 10, 200)
    places = [scale(value) for value in sorted(values)]
    assert all(10 <= place <= 200 for place in places)
    assert places == sorted(places)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_a_linear_scale_has_a_readable_number_of_ticks(low: float, span: float) -> None:
    ticks = Scale(low, low + span, 0, 100).ticks()
    assert 1 <= len(ticks) <= 6
    assert all(low - span * 1e-6 <= tick <= low + span * 1.000001 for tick in ticks)


def test_a_wide_span_is_logarithmic() -> None:
    assert fit([1, 5], 0, 100).log is False
    scale = fit([10, 1000], 0, 100)
    assert scale.log
    assert scale.ticks() == [10, 20, 50, 100, 200, 500, 1000]
    assert scale(100) == pytest.approx(50)


def test_bars_say_their_counts_and_escape_names() -> None:
    chart = damage_bars([("<all>", 5, 2, 0.04), ("b", 0, 0, 1.0)], "t")
    assert "&lt;all&gt;" in chart
    assert ">5 *</text>" in chart
    assert "5 wins, 2 damages, p = 0.040" in chart


def test_a_pareto_front_is_drawn_through_its_members() -> None:
    points = [
        Point("a", 10, 0.5, 0.4, 0.6, True, "system-0"),
        Point("b", 20, 0.7, 0.6, 0.8, True, "system-1"),
        Point("c", 30, 0.6, 0.5, 0.7, False, "system-2"),
    ]
    chart = scatter(points, "ops", "answer")
    assert chart.count("full") == 2
    assert chart.count("hollow") == 1
    assert 'class="front"' in chart


def test_nothing_to_draw_is_no_chart() -> None:
    assert boxes([("a", "system-0", [])], "ms") == ""


def test_parts_are_stacked_to_their_total() -> None:
    chart = stacked([("a", {"dense": 30.0, "sparse": 12.0}), ("b", {"dense": 6.0})], "ops")
    assert ">42</text>" in chart
    assert chart.count("kind-1") == 3


def test_curves_go_from_corner_to_corner_and_are_named() -> None:
    drawn = curves({"a": [(0, 0), (1, 1)], "b & c": [(0, 1), (1, 1)]}, "depth", "right")
    assert 'd="M40.0,212.0L388.0,22.0" class="system-0 curve"' in drawn
    assert 'd="M40.0,22.0L388.0,22.0" class="system-1 curve"' in drawn
    assert "<title>b &amp; c</title>" in drawn
