"""What kind of question is asked."""

import pytest

from app.routing import ROUTES, route
from tests.test_decomposition import CATALOGUE


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


def test_every_kind_ends_in_passages() -> None:
    assert all(len(route) == len(set(route)) == 2 and {"hybrid"} & set(route) for route in ROUTES.values())
