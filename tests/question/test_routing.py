"""What kind of question is asked."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import Unavailable
from app.question.routing import ROUTES, order, read_measurements, route
from app.types import Measured
from evals.routes import to_json
from tests.question.test_decomposition import CATALOGUE


@pytest.mark.parametrize(
    ("question", "kind", "why"),
    [
        ("What was Acme's asset turnover in 2022?", "calculation", "asks for asset turnover"),
        ("How has Acme's revenue changed over time?", "comparison", "is about 3 filings or companies"),
        ("Was Acme's or Best Globex's debt higher?", "comparison", "is about 2 filings or companies"),
        ("Where is the company that supplies Acme?", "bridge", "describes somebody instead of naming them"),
        ("What was Acme's revenue in 2022?", "named", "names Acme Corp"),
        ("What was the dividend?", "open", "names no company of the index"),
    ],
)
def test_kinds(question: str, kind: str, why: str) -> None:
    found = route(question, CATALOGUE)
    assert (found.kind, found.why) == (kind, why)


def test_counting_over_the_collection() -> None:
    assert route("How many companies mention cybersecurity as a risk?", CATALOGUE).kind == "count"


def test_every_kind_has_another_to_try() -> None:
    assert all(len(route) == len(set(route)) == 2 for route in ROUTES.values())


CHEAP, GOOD, DEAR = (
    Measured("naive", 9, 0.5, 100, 0),
    Measured("hybrid", 9, 0.515, 300, 0),
    Measured("crag", 9, 0.7, 400, 3),
)


@pytest.mark.parametrize(
    ("measured", "calls", "archs"),
    [
        ((CHEAP, GOOD, DEAR), None, ("crag", "hybrid", "naive")),
        ((CHEAP, GOOD, DEAR), 2, ("naive", "hybrid")),
        ((GOOD, DEAR), 1, ROUTES["named"]),
        ((replace(CHEAP, questions=4), GOOD), None, ROUTES["named"]),
        ((), None, ROUTES["named"]),
    ],
)
def test_what_was_measured_decides_within_the_budget(
    measured: tuple[Measured, ...], calls: int | None, archs: tuple[str, ...]
) -> None:
    assert order("named", {"named": measured}, calls)[0] == archs


def test_of_who_is_named_rules_that_cost_no_call_come_first() -> None:
    assert order("named", {}, None) == (("agentic", "crag"), "rule")


def test_what_the_matrix_wrote_is_read(tmp_path: Path) -> None:
    file = tmp_path / "routes.json"
    file.write_text(to_json({"named": [CHEAP, GOOD]}, "extractive"), "utf-8")
    assert read_measurements(file, "extractive") == {"named": (CHEAP, GOOD)}
    assert read_measurements(file, "some-llm") == {}


@pytest.mark.parametrize("text", ["", "[]", '{"named": []}', '{"generator": "m", "kinds": {"named": [{"arch": 1}]}}'])
def test_what_no_matrix_wrote_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "routes.json"
    file.write_text(text)
    with pytest.raises(Unavailable, match="sextant-eval matrix --routes"):
        read_measurements(file, "m")
