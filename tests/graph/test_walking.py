"""The walk against shares worked out by hand."""

import numpy as np
import pytest

from app.graph.walking import pagerank


def test_without_edges_the_walker_stays_at_the_seeds() -> None:
    assert pagerank([], np.array([1, 3], np.float32)).tolist() == [0.25, 0.75]


def test_two_vertices_share_as_the_damping_says() -> None:
    """x = (1 - d) + d·y and y = d·x give x = 1 / (1 + d): two thirds at d = 1/2."""
    walked = pagerank([(0, 1, 5.0)], np.array([1, 0], np.float32), damping=0.5, rounds=60)
    assert walked.tolist() == pytest.approx([2 / 3, 1 / 3], abs=1e-6)


def test_a_heavier_edge_is_taken_more_often() -> None:
    """From 0 the walker goes to 1 with 3/4 and to 2 with 1/4, and comes back: their shares are 3 to 1."""
    walked = pagerank([(0, 1, 3.0), (0, 2, 1.0)], np.array([1, 0, 0], np.float32), rounds=60)
    assert walked[1] / walked[2] == pytest.approx(3)
    assert float(walked.sum()) == pytest.approx(1)


def test_what_is_not_reached_has_no_share_and_a_lonely_seed_keeps_its_own() -> None:
    walked = pagerank([(0, 1, 1.0), (2, 3, 1.0)], np.array([1, 0, 0, 0, 1], np.float32), rounds=60)
    assert walked[2] == walked[3] == 0
    assert walked[4] > 0.25
    assert float(walked.sum()) == pytest.approx(1)
