"""Whom a question describes instead of naming, and the question with the name put in."""

import numpy as np
import pytest

from app.agent.hops import points_beyond, residual, resolved


@pytest.mark.parametrize(
    "question",
    [
        "What did the company that insures Acme earn?",
        "What were the sales of the firm named as Acme's auditor?",
        "Acme rents its plant. What does that landlord's filing say of it?",
        "From whom does Acme buy steel, and what did they earn?",
        "Who supplies Acme with gas?",
        "Acme sold a unit. When had the buyer been founded?",
        "What is the revenue of the bank from which Acme borrows?",
        "The same firm audits Globex: since when?",
    ],
)
def test_questions_that_point_beyond(question: str) -> None:
    assert points_beyond(question)


@pytest.mark.parametrize(
    "question",
    [
        "What was Acme's revenue in 2022?",
        "Who is the chief executive of Acme?",
        "How do the risks relate to the business overview?",
        "Which bank holds the most deposits?",
        "Should the ratio say little of a company like this, state that.",
        "How many suppliers does the company have?",
        "If sales per head tell nothing of this company, then state that.",
    ],
)
def test_questions_about_what_they_name(question: str) -> None:
    assert not points_beyond(question)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What did the bank that lends to Acme earn?", "What did Globex?"),
        (
            "What is the revenue of the company that, in 2020, bought Acme?",
            "What is the revenue of Globex, in 2020, bought Acme?",
        ),
        ("Acme has a supplier of steel. What were that supplier's sales?", "What were Globex's sales?"),
        ("Who supplies Acme, and what was that supplier's profit?", "what was Globex's profit?"),
        ("The bank that lends to Acme has branches. How many are they?", "Globex. How many are they?"),
        ("What were sales?", "Globex: What were sales?"),
    ],
)
def test_the_name_takes_the_place_of_the_description(question: str, said: str) -> None:
    assert resolved(question, "Globex") == said


def test_the_residual_is_what_the_query_lacks() -> None:
    query, passage = np.array([1, 0, 0], np.float32), np.array([0.6, 0.8, 0], np.float32)
    direction, norm = residual(passage, query)
    assert direction == pytest.approx([0, 1, 0])
    assert norm == pytest.approx(0.8)
    direction, norm = residual(query, query)
    assert (direction.tolist(), norm) == ([0, 0, 0], 0)
