"""The study's geometry and corpus: the properties by construction on which every statement rests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.types import FloatArray
from evals.study.corpus import COMPANIES, SECTORS, build_global, build_local
from evals.study.geometry import DIMENSIONS, TOKENS, WINDOWS, Bag, around, maxsim, partitions, tilted, unit
from evals.study.queries import CLASSES, EACH, Drafts, ask_global, ask_local


def axis(n: int) -> FloatArray:
    return np.asarray(np.eye(DIMENSIONS)[n], np.float32)


def test_windows_partition_the_bag() -> None:
    assert partitions(WINDOWS, TOKENS)
    assert not partitions({**WINDOWS, "late": slice(12, 24)}, TOKENS), "an overlap lets one leg read another's window"
    assert not partitions({**WINDOWS, "late": slice(16, 23)}, TOKENS), "a token that no leg reads"


def test_a_window_sees_its_own_tokens_alone() -> None:
    tokens = np.repeat(np.stack([axis(0), axis(1), axis(2)]), 8, axis=0)
    windows = Bag(tokens).windows
    assert [int(windows[name].argmax()) for name in ("dense", "sparse", "late")] == [0, 1, 2]


def test_a_tilt_is_the_sine_of_an_angle() -> None:
    made = tilted(Bag(np.repeat(axis(0)[None], TOKENS, axis=0)), axis(1), 0.6)
    assert made.tokens[0][:2] == pytest.approx([0.8, 0.6])


def test_maxsim_is_the_mean_of_each_query_tokens_best_cosine() -> None:
    query = np.stack([axis(0), axis(1)])
    half = unit(axis(0) + axis(1))
    passages = np.stack([np.stack([axis(0), axis(2)]), np.stack([half, axis(2)])])
    assert maxsim(query, passages) == pytest.approx([(1 + 0) / 2, 2**-0.5])


@settings(max_examples=20, deadline=None)
@given(st.floats(5, 2000), st.integers(0, 10_000))
def test_draws_are_unit_vectors_about_as_near_their_mean_as_their_concentration_says(kappa: float, seed: int) -> None:
    drawn = around(axis(3), kappa, 400, np.random.default_rng(seed))
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(1, abs=1e-5)
    # The mean cosine solves kappa = r(d - r^2)/(1 - r^2), nearly (Banerjee et al., 2005).
    r = float(drawn[:, 3].mean())
    expected = np.sqrt((DIMENSIONS / (2 * kappa)) ** 2 + 1) - DIMENSIONS / (2 * kappa)
    assert r == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_themes_are_shared_as_the_families_say(seed: int) -> None:
    companies = build_local(np.random.default_rng(seed)).companies
    distinctive = [c for c in companies if c.distinctive]
    assert len({c.slots for c in companies}) == len(COMPANIES), "every triple is one company's"
    assert [sum(c.distinctive for c in companies if c.sector == s) for s in SECTORS] == [2] * 5
    assert all(sum(c.slots[0] == other.slots[0] for other in companies) == 1 for c in distinctive)
    for company in (c for c in companies if not c.distinctive):
        assert [sum(company.slots[w] == other.slots[w] for other in companies) for w in range(3)] == [5, 3, 3]
    for company in distinctive:
        assert sum(company.slots[1:] == other.slots[1:] for other in companies) == 5


def test_a_hundred_passages_of_which_five_name_another_company() -> None:
    local = build_local(np.random.default_rng(0))
    assert len(local.collection.chunks) == 100
    assert sum(" names " in chunk.text for chunk in local.collection.chunks) == 5
    assert all(local.companies[i].distinctive and local.companies[j].distinctive for i, j in local.names.items())
    assert not local.names.keys() & set(local.names.values())


@pytest.mark.parametrize("seed", range(5))
def test_the_sector_that_discusses_a_topic_most_is_never_the_nearest(seed: int) -> None:
    world = build_global(np.random.default_rng(seed))
    sector_of = {document.meta.company: document.meta.sector for document in world.collection.documents}
    assert len(world.topics) == 16
    for topic in world.topics:
        counts = sorted(sum(sector_of[name] == sector for name in topic.discussed_by) for sector in SECTORS)
        assert counts == [1, 1, 2, 3, 4]
        assert topic.gold != topic.nearest


def test_every_class_has_its_queries_and_each_text_its_meaning() -> None:
    rng = np.random.default_rng(0)
    local = build_local(rng)
    queries, bags = ask_local(local, rng)
    assert [sum(query.kind == kind for query in queries) for kind in CLASSES] == [EACH] * 5
    assert bags.keys() == {query.text for query in queries}
    topics, _ = ask_global(build_global(rng), rng)
    assert len({query.text for query in topics}) == 16


def test_a_draft_is_of_the_nearest_company_without_the_axis_or_of_its_rival_and_reads_no_answer() -> None:
    rng = np.random.default_rng(0)
    local = build_local(rng)
    queries, bags = ask_local(local, rng)
    local.collection.bags.update(bags)
    off = next(query for query in queries if query.kind == "off")
    right = next(c for c in local.companies if c.name == off.gold)

    def cosine(rate: float) -> float:
        draft = Drafts(local, rate, seed=0)(off.text)
        return float(local.collection.bags[draft].windows["dense"] @ right.themes["dense"])

    assert cosine(0.0) > 0.9
    assert cosine(1.0) < 0.6
