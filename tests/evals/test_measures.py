"""Answers and citations against gold ones, by hand."""

from dataclasses import replace
from typing import Any

import pytest

from evals.measures import answer_measures, citation_measures, token_f1
from evals.questions import Evidence, Question

QUESTION = Question(
    "q", "How did net sales change?", "numeric", "They rose 4.5% to $34,229 million.", evidence=(Evidence("A", 3),)
)


def reply(answer: str = "", *cited: tuple[str, int], verified: bool = True) -> dict[str, Any]:
    citations = [{"source": f"x/{name}.pdf", "page": page, "verified": verified} for name, page in cited]
    return {"answer": answer, "abstained": not answer, "citations": citations}


def test_every_number_of_the_gold_answer_counts() -> None:
    found = answer_measures(QUESTION, reply("Net sales were 34,229, up 4.5 percent [1]."))
    assert (found["number_recall"], found["number_match"], found["answer"], found["false_refusal"]) == (1, 1, 1, 0)
    half = answer_measures(QUESTION, reply("Net sales were $34.2 billion [1]."))
    assert (half["number_recall"], half["number_match"], half["answer"]) == (0.5, 0, 0.5)


def test_the_figure_asked_for_stands_for_the_answer() -> None:
    found = answer_measures(replace(QUESTION, figure="4.5%"), reply("They rose 4.5% [1]."))
    assert found["number_match"] == 1


def test_a_marker_is_no_number() -> None:
    assert answer_measures(replace(QUESTION, answer="2"), reply("It is unknown [2]."))["number_match"] == 0


def test_an_abstention_scores_nothing_where_there_is_an_answer() -> None:
    found = answer_measures(QUESTION, reply())
    assert (found["false_refusal"], found["answer"], found["token_f1"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("evidence", "given", "right"),
    [
        ((), reply(), 1),
        ((), reply("It was $3 [1].", ("A", 1)), 0),
        ((Evidence("A", 9),), reply("No dividend was ever paid [1].", ("A", 9)), 1),
        ((Evidence("A", 9),), reply("The dividend was $3 [1].", ("A", 8)), 0),
    ],
)
def test_an_unanswerable_question(evidence: tuple[Evidence, ...], given: dict[str, Any], right: float) -> None:
    question = replace(QUESTION, kind="unanswerable", evidence=evidence)
    assert answer_measures(question, given) == {"refusal": right, "answer": right}


def test_an_answer_without_numbers_is_compared_by_words() -> None:
    question = replace(QUESTION, answer="The Consumer segment")
    found = answer_measures(question, reply("Consumer segment fell [1]."))
    assert "number_match" not in found
    assert found["answer"] == found["token_f1"] == 4 / 5


def test_token_f1_against_literal_fractions() -> None:
    assert token_f1("a b", "b c") == pytest.approx(2 * 1 / (1 + 2))
    assert token_f1("The profit, 1,577.", "profit 1577") == 1
    assert token_f1("", "x") == 0


def test_citations_against_evidence_pages() -> None:
    question = replace(QUESTION, evidence=(Evidence("A", 3), Evidence("B", 1)))
    found = citation_measures(question, reply("x", ("A", 3), ("A", 3), ("A", 4), ("C", 1)))
    assert found == {"verified_rate": 1, "cited_recall": 1 / 2, "cited_precision": 1 / 3}
    assert citation_measures(question, reply()) == {"cited_recall": 0}
    assert citation_measures(replace(question, evidence_kind="derived-lexical"), reply()) == {}
