"""The grader's calibration: what counts as an answer, held-out grades, thresholds, the command over a small index."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.retrieval.calibration import FEATURES, read_calibration
from app.settings import Settings
from app.tools import Ports
from evals import commands
from evals.calibration import Best, Case, answers, auc, bests, held_out, measures, scaling, thresholds
from evals.cli import run
from evals.questions import Evidence, Question
from evals.reports.svg import reliability
from tests.evals import world
from tests.fakes import WordReranker
from tests.retrieval.test_grading import ACME, hit_of

BESTS = [
    Best(0.9, True, True),
    Best(0.8, True, True),
    Best(0.6, False, True),
    Best(0.4, True, True),
    Best(0.1, False, False),
]


def test_auc_counts_pairs_in_order_and_ties_half() -> None:
    assert auc(np.array([0.9, 0.4, 0.4, 0.1]), np.array([1, 1, 0, 0])) == (1 + 1 + 0.5 + 1) / 4
    assert np.isnan(auc(np.array([0.5]), np.array([1])))


@pytest.mark.parametrize(
    ("precision", "refused", "expected"),
    [(1.0, 0.0, (0.8, 0.4)), (0.75, 0.0, (0.4, 0.4)), (0.6, 0.0, (0.4, 0.4)), (1.0, 1 / 3, (0.8, 0.6))],
)
def test_thresholds(precision: float, refused: float, expected: tuple[float, float]) -> None:
    assert thresholds(BESTS, precision, refused) == pytest.approx(expected)


def test_no_grade_is_high_enough_where_nothing_is_right() -> None:
    assert thresholds([Best(0.9, False, True)])[0] == 1.0


def test_measures_by_hand() -> None:
    found = measures(BESTS, upper=0.8, lower=0.4)
    assert found["auc"] == pytest.approx(5 / 6, abs=1e-4)
    assert found["actions"]["correct"] == {"n": 2, "right": 1.0}
    assert found["actions"]["ambiguous"] == {"n": 2, "right": 0.5}
    assert (found["answerable_incorrect"], found["unanswerable_incorrect"]) == (0.0, 1.0)
    assert found["ece"] == pytest.approx((0.1 + 0.2 + 0.6 + 0.6 + 0.1) / 5, abs=1e-4)


def case(group: str, logits: list[float], labels: list[float]) -> Case:
    rows = np.zeros((len(logits), len(FEATURES)))
    rows[:, 0] = logits
    return Case(f"{group} {logits}", group, rows, np.array(labels), any(labels))


def test_no_case_is_graded_by_a_model_that_saw_its_company() -> None:
    """Group `odd` alone says that low logits answer: its own model, fitted to the others, says the opposite."""
    found = [case(group, [4.0, -4.0], [1.0, 0.0]) for group in "abcdefgh"] + [case("odd", [4.0, -4.0], [0.0, 1.0])] * 8
    grades = held_out(found)
    assert all(grade[0] > grade[1] for grade in grades[8:])
    assert [best.right for best in bests(found, grades)][8:] == [False] * 8


def test_scaling_says_how_often_the_best_is_right() -> None:
    found = [case("a", [2.0, 0.0], [float(n < 3), 0.0]) for n in range(4)]
    found += [case("a", [-2.0, -3.0], [float(n < 1), 0.0]) for n in range(4)]
    a, b = scaling(found, [c.rows[:, 0] for c in found])
    # Three of four are right at z = 2, one of four at -2: log-odds ±ln 3, but for the small penalty.
    assert (2 * a + b, -2 * a + b) == pytest.approx((np.log(3), -np.log(3)), abs=0.1)
    assert scaling(found[:1], [found[0].rows[:, 0]]) == (1.0, 0.0)


def test_what_counts_as_an_answer() -> None:
    question = Question("q", "What was debt?", "numeric", "$4 million", evidence=(Evidence("acme", 7),))
    assert answers(question, hit_of("Debt was $4 million.", ACME))
    assert not answers(question, hit_of("Debt was $5 million.", ACME))
    assert answers(replace(question, evidence=(Evidence("acme", 1),)), hit_of("See above.", ACME))
    assert not answers(question, hit_of("Debt was $4 million.", replace(ACME, source="globex.pdf")))


def test_the_reliability_plot_has_a_circle_per_bin() -> None:
    drawn = reliability([(0.1, 0.0, 4), (0.9, 1.0, 4)], "reliability")
    assert drawn.count("<circle") == 2
    assert "predicted 0.90, observed 1.00, n = 4" in drawn


def test_the_command_writes_a_calibration_that_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @asynccontextmanager
    async def opened(settings: Settings) -> AsyncIterator[Ports]:
        yield replace(await world.ports(), reranker=WordReranker())

    monkeypatch.setattr(commands, "open_ports", opened)
    rows = [
        {"id": q.id, "question": q.text, "class": q.kind, "answer": q.answer}
        | {"evidence": [{"doc": e.document, "page": e.page} for e in q.evidence]}
        for q in world.QUESTIONS + world.UNANSWERABLE
    ]
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plot, out = tmp_path / "plot.svg", tmp_path / "grader.json"
    arguments = ["calibrate", "--questions", str(tmp_path / "qa.jsonl"), "--out", str(out), "--plot", str(plot)]
    assert run(arguments) == commands.OK
    assert "AUC" in capsys.readouterr().out
    assert read_calibration(out).fitted["reranker"] == "words"
    assert plot.read_text().startswith("<svg")
    cases = tmp_path / "cases.jsonl"
    assert run([*arguments, "--save", str(cases)]) == commands.OK
    alone = read_calibration(out).fitted
    assert run([*arguments, "--with", str(cases)]) == commands.OK
    assert read_calibration(out).fitted["cases"] == 2 * alone["cases"]
    assert run([*arguments, "--limit", "1"]) == commands.USAGE
    assert "two companies" in capsys.readouterr().err
    assert run([*arguments, "--with", str(plot)]) == commands.USAGE
