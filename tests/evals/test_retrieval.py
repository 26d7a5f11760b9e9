"""Rankings through the real service: the sound one finds everything, a shuffled one is caught by the paired test."""

from dataclasses import replace

import pytest

from evals import retrieval
from evals.measures import places, rank_measures
from evals.statistics import paired
from evals.subjects import parse_system
from tests.evals import world

pytestmark = pytest.mark.anyio
HYBRID, BM25 = parse_system("hybrid:query_filters=false"), parse_system("bm25")


async def values(tamper: world.Tamper | None = None) -> dict[str, float]:
    async with world.asking(tamper=tamper, k=24) as asking:
        return await retrieval.values_of(asking, HYBRID, world.QUESTIONS, "page nDCG@10")


async def test_hits_of_a_sound_service() -> None:
    async with world.asking(k=24) as asking:
        found = await retrieval.run(asking, [BM25], world.QUESTIONS)
    overall = found["systems"]["bm25"]["all"]
    assert (overall["page hit@1"].n, overall["page hit@1"].mean, overall["document hit@1"].mean) == (24, 1.0, 1.0)
    assert found["systems"]["bm25"]["about g"]["page hit@1"].n == 4
    assert found["problems"] == {"bm25": 0}
    assert "| all: bm25" in retrieval.table(found)


async def test_shuffled_fusion_is_caught() -> None:
    sound, broken = await values(), await values(world.shuffled)
    against = paired(broken, sound)
    assert against.damages > 10 > against.wins
    assert against.p < 0.01


def test_rank_measures_against_literal_fractions() -> None:
    found = rank_measures({"q": {"a": 1, "b": 1}, "none": {"a": 1}}, {"q": ["x", "a", "a", "c", "b"]})
    assert found["q"]["hit@1"] == 0
    assert found["q"]["hit@5"] == 1
    assert found["q"]["RR"] == 1 / 2
    assert found["q"]["recall@10"] == 1
    assert found["q"]["all@10"] == 1
    # Gains at ranks 2 and 5 (the second "a" takes up rank 3): 1/log2(3) + 1/log2(6), over 1 + 1/log2(3).
    assert found["q"]["nDCG@10"] == pytest.approx((0.6309298 + 0.3868528) / 1.6309298, abs=1e-6)
    assert set(found["none"].values()) == {0.0}


def test_a_page_beyond_the_cutoff_is_missing() -> None:
    found = rank_measures({"q": {"a": 1, "b": 1}}, {"q": ["a", *"cdefghijk", "b"]})["q"]
    assert (found["recall@10"], found["recall@100"], found["all@10"]) == (1 / 2, 1, 0)


def test_places_are_in_the_order_of_ranks() -> None:
    passages = [
        {"rank": 2, "score": 0.5, "source": "file:///x/B.pdf", "page": 7},
        {"rank": 1, "score": 0.9, "source": "x/A.PDF", "page": 3},
        {"rank": 3, "score": 0, "source": "silenced.pdf", "page": 1},
    ]
    assert places({"passages": passages}) == [("A", 3), ("B", 7)]


async def test_weak_evidence_is_scored_by_document_alone() -> None:
    weak = replace(world.QUESTIONS[0], evidence_kind="derived-lexical")
    async with world.asking() as asking:
        found = (await retrieval.run(asking, [BM25], [weak]))["systems"]["bm25"]["all"]
    assert found["document hit@1"].n == 1
    assert "page hit@1" not in found
