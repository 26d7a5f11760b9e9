"""What tells a cause or an event from a reference, a hedge or a sentence about something else."""

import pytest

from app.evidence.statements import Statement, statements, subject_of
from app.evidence.telling import causes, happened, hedges, is_topic, on_topic, points_elsewhere, suits
from app.types import Chunk, DocumentMeta, Hit

META = DocumentMeta("t", "s", "Orrin", form="10-K", fiscal_year=2022, fiscal_period="FY", period_end="2022-12-31")


def hit(text: str, section: str = "MD&A") -> Hit:
    return Hit(Chunk("c", "d", 1, 1, 0, len(text), text, "", "text", section, META), 1, 1.0)


def told(text: str) -> Statement:
    [statement] = statements([hit(text)])
    return statement


@pytest.mark.parametrize(
    "text",
    [
        "Pump sales fell by 4%, primarily due to a strike.",
        "The increase was driven by higher prices.",
        "Lower volumes were partially offset by savings.",
        "The strong euro had an unfavorable effect on sales.",
    ],
)
def test_a_cause(text: str) -> None:
    assert causes(text)


def test_a_change_alone_is_no_cause() -> None:
    assert not causes("Pump sales fell by 4% in 2022.")


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("In May 2022 we completed the acquisition of Tern Foods.", True),
        ("We repurchased 2,000 shares.", True),
        ("Acquisition costs are expensed as they are incurred.", False),
        ("Pump sales were $4 million.", False),
    ],
)
def test_an_event(text: str, event: bool) -> None:
    assert happened(text) is event


@pytest.mark.parametrize(
    "text",
    [
        "Refer to Note 10 – Debt for further discussion.",
        "See Item 1 of Part I, “Legal Proceedings.”",
        "For a discussion of the effect of exchange rates, see below.",
        "This section contains forward-looking statements.",
        "Any one or more of these risks may harm us.",
        "Information regarding the effect of exchange rates is provided to show results at constant rates.",
        "You should consider the risks and uncertainties described in this report.",
    ],
)
def test_a_reference(text: str) -> None:
    assert points_elsewhere(text)


@pytest.mark.parametrize(
    "text",
    [
        "As discussed in Note 10, we owe $40 million to banks.",
        "We see demand for pumps in every region.",
        "There have been no changes to our market risk.",
    ],
)
def test_no_reference(text: str) -> None:
    assert not points_elsewhere(text)


def test_what_may_go_wrong_is_a_hedge_unless_it_has_a_number() -> None:
    assert hedges("A strike could adversely affect our results.")
    assert not hedges("A strike could adversely affect sales by $3 million.")
    assert not hedges("A strike closed the mill.")


def test_a_cause_of_a_change_with_its_period_suits_more_than_one_that_may_come() -> None:
    then = suits(told("Pump sales fell in 2022, primarily due to a strike."), "cause")
    some_day = suits(told("Pump sales may fall as a result of a strike."), "cause")
    assert then == 1.0
    assert some_day == pytest.approx(0.3)


def test_a_row_a_fragment_and_a_reference_suit_nothing() -> None:
    for text in (
        "Pump sales due to strikes 40 30",
        "sales fell due to a strike in",
        "Refer to Note 4, due to its length.",
    ):
        assert suits(told(text), "cause") == 0.0


def test_the_topic_is_told_without_the_words_that_ask() -> None:
    debt, other = "Our debt matures in 2030.", "The discussion of the pumps relates to a strike."
    question = "How does the discussion of debt and interest relate to the section on risk?"
    passages = [hit(debt, ""), hit(other, "")]
    subject = subject_of(question, passages)
    assert on_topic(subject, told(other)) == 0.0
    assert on_topic(subject, statements([hit(debt, "")])[0]) == pytest.approx(1 / 3)
    assert on_topic(subject, statements([hit(debt, "Interest")])[0]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("row", "is_it"),
    [
        ("Pump sales 40 30", True),
        ("Pump sales abroad 4 3", True),
        ("Pump spare parts and rings 4 3", False),
        ("Total 44 33", False),  # what filings say for all revenue is no word of the question
        ("Wages 12 11", False),
    ],
)
def test_a_row_is_the_topic_by_most_of_its_label(row: str, is_it: bool) -> None:
    subject = subject_of("What was the main driver of the change in pump sales revenue?", [hit(row)])
    assert is_topic(subject, told(row)) is is_it
