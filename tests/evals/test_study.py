"""The study itself on a seed or two: the serving classes over its ports, what is measured, what is judged."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.architectures import ARCHITECTURES
from app.types import Access, Condition, Entity, Filter, Hit, Leg
from evals.cli import run
from evals.statistics import Estimate
from evals.study import filings, report
from evals.study.arms import ARMS, LEGS, Bench, voted
from evals.study.corpus import Local, build_local
from evals.study.measure import Seed, auc, measure
from evals.study.ports import MemoryStore
from evals.study.queries import CLASSES, GLOBAL, Drafts, Query, ask_local
from evals.study.statements import statements

pytestmark = pytest.mark.anyio


EACH = 5
"""Queries of a class: quick, and enough for what holds by a wide margin."""


@pytest.fixture(scope="module")
def seeds() -> list[Seed]:
    return [measure(0, each=EACH), measure(1, each=EACH)]


def asked(seed: int) -> tuple[Local, list[Query], Bench]:
    rng = np.random.default_rng(seed)
    local = build_local(rng)
    queries, bags = ask_local(local, rng)
    local.collection.bags.update(bags)
    return local, queries, Bench(local.collection, Drafts(local, 0.2, seed))


def test_arms_are_the_classes_that_serve_requests() -> None:
    assert {name: type(arm) for name, arm in ARMS.items()} == {name: ARCHITECTURES[name] for name in ARMS}


async def test_the_store_scans_each_window_and_keeps_ties_in_the_order_of_ids() -> None:
    local, queries, _ = asked(0)
    store, everyone = MemoryStore(local.collection), Filter((), Access())
    query = local.collection.bags[queries[0].text].windows["dense"]
    [found] = await store.search([Leg("dense", query, 3)], everyone)
    assert [hit.rank for hit in found.hits] == [1, 2, 3]
    assert found.ops == 100
    assert found.hits[0].chunk.meta.company == queries[0].gold
    own = Filter((Condition("document_id", "$in", ("alpha",)),), Access())
    [narrowed] = await store.search([Leg("dense", query, 10)], own)
    assert ([hit.chunk.document_id for hit in narrowed.hits], narrowed.ops) == (["alpha"] * 4, 4)
    [nothing] = await store.search([Leg("dense", np.zeros(64, np.float32), 3)], everyone)
    assert [hit.chunk.id for hit in nothing.hits] == ["alpha-0", "alpha-1", "alpha-2"]
    assert len(await store.records(Entity, everyone, {"aliases": ["alpha"]})) >= 1


async def test_a_condition_that_the_store_does_not_know_is_not_passed_over() -> None:
    local, _, _ = asked(0)
    with pytest.raises(NotImplementedError, match="fiscal_year"):
        await MemoryStore(local.collection).count(Filter((Condition("fiscal_year", "$eq", 2023),), Access()))


async def test_prices_are_those_of_the_bill() -> None:
    _, queries, bench = asked(0)
    found = {name: await bench.ask(arm, queries[0]) for name, arm in ARMS.items()}
    assert [(found[name].ops, found[name].calls) for name in ("naive", "hybrid", "hyde")] == [
        (100, 0),
        (300, 0),
        (100, 4),
    ]
    assert [(await bench.ask(leg, queries[0])).ops for leg in LEGS.values()] == [100, 200, 300]
    assert found["agentic"].ops == 100 * found["agentic"].searches


def test_hyde_at_alpha_0_is_naive_byte_for_byte(seeds: Sequence[Seed]) -> None:
    assert [(seed.identical, seed.asked) for seed in seeds] == [(5 * EACH, 5 * EACH)] * 2


def test_each_arm_wins_its_own_class_and_pays_elsewhere(seeds: Sequence[Seed]) -> None:
    for seed in seeds:
        right = seed.right
        assert right["naive"]["on"] == 1.0
        assert right["hybrid"]["partial"] > 0.9 > right["hybrid"]["on"]
        assert right["hyde"]["off"] > right["naive"]["off"]
        assert right["crag"]["noisy"] > right["naive"]["noisy"]
        assert right["graph"][GLOBAL] == 1.0
        assert right["agentic"]["bridge"] > 0.5 > right["agentic"]["on"]
        assert right["told"]["on"] == 1.0, "without a word of anybody else in the question there is no hop"
        assert right["told"]["bridge"] == right["agentic"]["bridge"]
        assert right["full MaxSim"]["bridge"] == 0.0
        assert seed.unreached_right == 0
        assert seed.depth[25] == 1.0 > seed.depth[20]
        assert (seed.controls.same, seed.controls.asked) == (10, 10)


def test_a_seed_is_measured_the_same_again(seeds: Sequence[Seed]) -> None:
    assert measure(0, each=EACH) == seeds[0]


def test_auc_counts_equal_scores_half() -> None:
    assert auc([(True, 2.0), (True, 1.0), (False, 1.0), (False, 0.0)]) == (1 + 1 + 0.5 + 1) / 4


async def test_of_sectors_with_as_many_passages_the_better_ranked_is_voted() -> None:
    _, queries, bench = asked(0)
    hits = (await bench.ask(ARMS["naive"], queries[0])).passages
    [first, other] = [next(h for h in hits if h.chunk.meta.sector == s) for s in dict.fromkeys(_sectors(hits))][:2]
    assert voted(()) is None
    assert voted((other, first)) == other.chunk.meta.sector
    assert voted((other, first, first)) == first.chunk.meta.sector


def _sectors(hits: Sequence[Hit]) -> list[str | None]:
    return [hit.chunk.meta.sector for hit in hits]


def test_a_statement_holds_only_if_all_its_checks_do(seeds: Sequence[Seed]) -> None:
    made = statements(seeds)
    assert [statement.number for statement in made] == [1, 2, 3, 4, 5, 6, 7, 8]
    for statement in made:
        assert statement.holds == all(check.holds for check in statement.checks)
    broken = [measure_with(seed, "graph", GLOBAL, 0.5) for seed in seeds]
    assert not statements(broken)[6].holds, "a graph that counts wrong refutes the seventh"
    sharper = [measure_with(seed, "hybrid", "on", 1.0) for seed in seeds]
    assert not statements(sharper)[0].holds, "fusion without damage refutes the first"


def measure_with(seed: Seed, arm: str, kind: str, share: float) -> Seed:
    right = {**seed.right, arm: {**seed.right[arm], kind: share}}
    return Seed(**{**vars(seed), "right": right})


def test_the_report_says_every_figure_and_ends_with_the_sum(seeds: Sequence[Seed]) -> None:
    study = report.build(
        seeds, {"queries": EACH, "command": "sextant-eval study", "date": "2024-01-01", "commit": "abc"}
    )
    text, page = report.to_markdown(study), report.to_html(study)
    assert json.loads(json.dumps(study))["run"]["seeds"] == 2
    assert text.splitlines()[-1] == report.last_line(study)
    assert all(f"\n- {kind}: " in text for kind in CLASSES)
    assert page.count("<svg") == 4
    assert "<!--" not in page
    assert "http:" not in page
    assert "src=" not in page, "the page needs nothing beside itself"
    study["statements"] = [{**made, "holds": made["number"] not in (2, 5)} for made in study["statements"]]
    assert report.last_line(study) == "6 of 8 statements hold; 2, 5 do not"


def cell(wins: int, damages: int, p: float, mean: float = 0.5) -> dict[str, Any]:
    against = {"n": 20, "wins": wins, "damages": damages, "difference": (wins - damages) / 20, "p": p}
    return {"estimate": vars_of(Estimate(20, mean, 0.3, 0.7)), "against": against, "p_adjusted": p}


def vars_of(found: Estimate) -> dict[str, Any]:
    return {"n": found.n, "mean": found.mean, "low": found.low, "high": found.high}


def matrix_record() -> dict[str, Any]:
    row = {"all": cell(9, 6, 0.6), "partial": cell(9, 0, 0.004), "on": cell(0, 6, 0.03)}
    crag = {"all": cell(1, 2, 0.9), "bridge": cell(0, 1, 1.0), "noisy": cell(0, 8, 0.008)}
    results = [{"class": kind, "results": {"crag": {"reason": None}}} for kind in ("on", "bridge")]
    return {
        "run": {"questions": {"n": 40, "file": "qa.jsonl"}, "index": {"documents": 3}},
        "matrix": {
            "baseline": "naive",
            "cells": {measure: {"hybrid": row, "crag": crag} for measure in ("answer", "page hit@1")},
        },
        "questions": results,
    }


def test_claims_about_filings_are_judged_by_the_matrix() -> None:
    rows = {row["text"]: row["verdict"] for row in filings.judged(matrix_record())["rows"]}
    assert list(rows.values()) == [
        "holds",
        "holds",
        "holds",
        "contradicted",
        "holds",
        "holds",
        "not measured",
        "not measured",
        "not measured",
        "not measured",
        "not measured",
        "holds",
    ]
    assert [text for text, verdict in rows.items() if verdict == "contradicted"] == [
        "3. correction promotes what was found (crag, noisy, page hit@1)"
    ]


@pytest.mark.parametrize(
    ("sign", "wins", "damages", "p", "verdict"),
    [
        ("better", 7, 0, 0.016, "holds"),
        ("better", 0, 7, 0.016, "contradicted"),
        ("better", 7, 1, 0.07, "points that way"),
        ("better", 1, 1, 1.0, "not decided"),
        ("worse", 1, 3, 0.6, "points that way"),
        ("worse", 3, 1, 0.6, "not decided"),
        ("alike", 0, 1, 1.0, "holds"),
        ("alike", 2, 1, 1.0, "not decided"),
        ("alike", 7, 0, 0.016, "contradicted"),
    ],
)
def test_verdicts(sign: filings.Sign, wins: int, damages: int, p: float, verdict: str) -> None:
    assert filings.verdict_of(sign, {"wins": wins, "damages": damages, "p": p}) == verdict


def test_the_command_writes_three_forms_and_prints_the_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_of = tmp_path / "run"
    run_of.mkdir()
    (run_of / "report.json").write_text(json.dumps(matrix_record()), encoding="utf-8")
    out = tmp_path / "out"
    assert (
        run(["study", "--seeds", "1", "--queries", "2", "--parallel", "1", "--out", str(out), "--filings", str(run_of)])
        == 0
    )
    assert "of 8 statements hold" in capsys.readouterr().out.splitlines()[-1]
    assert sorted(path.name for path in out.iterdir()) == ["study.html", "study.json", "study.md"]
    assert "## On filings" in (out / "study.md").read_text(encoding="utf-8")


def test_what_is_no_matrix_run_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.json").write_text("{}", encoding="utf-8")
    assert run(["study", "--filings", str(tmp_path)]) == 2
    assert "no report of sextant-eval matrix" in capsys.readouterr().err
