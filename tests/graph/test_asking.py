"""How questions are taken."""

import pytest

from app.graph.asking import asked, role_of
from app.graph.sectors import named_sectors
from app.graph.themes import named_theme, themes_of_factor


@pytest.mark.parametrize(
    ("question", "mode", "unit", "what"),
    [
        ("Which sector discusses supply-chain risk the most?", "count", "sector", "supply-chain risk"),
        ("How many filings mention tariffs?", "count", "filing", "tariffs"),
        ("How many companies warn of labor shortages in their latest 10-K?", "count", "company", "labor shortages"),
        ("Which companies have a risk factor on severe weather?", "count", "company", "severe weather"),
        ("List all filings that discuss the merger with Birch.", "count", "filing", "the merger with Birch"),
        ("Group the companies by auditor.", "count", "company", "auditor"),
        ("What are the main themes of the risk factors?", "global", "company", ""),
        ("Summarize the legal proceedings of the banks.", "global", "company", ""),
        ("Who audits Alder?", "local", "company", ""),
        ("How many mills did the company that Alder bought have?", "local", "company", ""),
        ("What was Alder's revenue in 2023?", "local", "company", ""),
    ],
)
def test_modes(question: str, mode: str, unit: str, what: str) -> None:
    taken = asked(question)
    assert (taken.mode, taken.unit, taken.what) == (mode, unit, what)
    assert taken.why


def test_what_a_count_is_limited_to() -> None:
    taken = asked("How many companies have a risk factor on fraud in their latest 10-K?")
    assert (taken.risk, taken.latest) == (True, True)
    assert not asked("How many companies discuss fraud?").risk


def test_roles() -> None:
    assert role_of("Who is the chief financial officer?") == "officer"
    assert role_of("Which suppliers does a customer share?") == "supplier"
    assert role_of("How large is it?") is None


def test_sectors_that_a_question_names() -> None:
    assert named_sectors("Of Mills, Farms and Banks, which sector has the most?") == ("Mills", "Farms", "Banks")
    assert named_sectors("Which sector has the most?") == ()


@pytest.mark.parametrize(
    ("phrase", "theme"),
    [
        ("supply-chain risk", "supply-chain"),
        ("a shortage of qualified staff", "talent"),
        ("rising interest rates", "interest-rates"),
        ("ransomware", "cybersecurity"),
        ("wheat prices", "commodity-prices"),
        ("the colour of the logo", None),
    ],
)
def test_themes_by_the_words_of_a_question(phrase: str, theme: str | None) -> None:
    found = named_theme(phrase)
    assert (found.name if found else None) == theme


def test_a_risk_factor_is_on_what_its_heading_says_and_its_body_dwells_on() -> None:
    body = "A flood or a hurricane could close our mill. We are insured by others."
    assert themes_of_factor("Storms could interrupt us.", body) == {"weather": 5}
    assert themes_of_factor("Our office is small.", "We rent it.") == {}
