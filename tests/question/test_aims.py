"""What a question wants told: a cause, an event, a discussion of figures, or nothing beside figures."""

import pytest

from app.question.aims import Aim, aim_of, made_of, said_for


@pytest.mark.parametrize(
    ("question", "aim"),
    [
        ("Why did net sales fall in 2022?", "cause"),
        ("What was the main driver of the change in operating income?", "cause"),
        ("How did exchange rates affect revenue in Q2 2023?", "cause"),
        ("What factors contributed to the rise in wages?", "cause"),
        ("Did Orrin announce any acquisitions in Q2 2023?", "event"),
        ("Were there any significant divestitures in 2022?", "event"),
        ("Has Orrin engaged in share buybacks?", "event"),
        ("How does the debt note relate to the section on liquidity?", "discussion"),
        ("What do inventories suggest about demand?", "discussion"),
        ("What changes in debt did Orrin disclose?", "discussion"),
        ("What details are given of the pension plans?", "discussion"),
        ("What was the decrease in wages attributed to?", "cause"),
        ("How much revenue was attributed to the Pumps segment?", None),
        ("What did Pumps contribute to total revenue?", None),
        ("What was revenue in 2022?", None),
        ("Who audits Orrin?", None),
        ("What is the fixed asset turnover of 2019?", None),
    ],
)
def test_aim(question: str, aim: Aim | None) -> None:
    assert aim_of(question) == aim


def test_factors_of_risk_are_no_cause() -> None:
    assert aim_of("Which risk factors does Orrin name?") is None


def test_an_event_is_searched_for_by_its_other_names() -> None:
    assert "takeov" in said_for("Did Orrin report any acquisitions?").split()
    assert said_for("How many acquisitions were made?") == ""


def test_the_cause_of_a_profit_is_searched_for_among_what_makes_it() -> None:
    assert made_of("Why did net income fall?") == "net sales revenue operating income"
    assert said_for("Why did operating profit fall?") == "net sales revenue operating expenses"
    assert said_for("Why did wages fall?") == ""
    assert said_for("What was net income?") == ""
