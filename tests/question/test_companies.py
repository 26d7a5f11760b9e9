"""Companies by whatever spelling: the right one, or none, never another; over invented names."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.question.companies import asked_of_one, named_companies, respelt
from app.types import Document, DocumentMeta


def filings(*companies: str, tickers: Sequence[str] = ()) -> list[Document]:
    named = zip(companies, [*tickers, *[None] * len(companies)], strict=False)
    return [
        Document(company, "", DocumentMeta("t", f"{company}.pdf", company=company, ticker=ticker), 1, 1)
        for company, ticker in named
    ]


def named(question: str, *companies: str, tickers: Sequence[str] = ()) -> set[str]:
    return set(named_companies(question, filings(*companies, tickers=tickers)))


_LETTERS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=7)
WORD = _LETTERS.map(lambda letters: f"Qu{letters}")
"""No English word, and long enough to be known with a letter wrong."""
COMPANY = st.builds(
    lambda first, joined, second, suffix: f"{first}{joined}{second}{suffix}",
    WORD,
    st.sampled_from([" ", " & ", " and "]),
    WORD,
    st.sampled_from(["", ", Inc.", " Corporation", " plc", " Holdings Ltd"]),
)
PAIR = st.tuples(COMPANY, COMPANY).filter(lambda pair: not words(pair[0]) & words(pair[1]))
ASKED = st.sampled_from(
    [
        "What was {}'s revenue in 2023?",
        "revenue of {} in 2023",
        "{} revenue 2023",
        "How did {} do?",
        "Did {}' sales grow?",
    ]
)
CASES = st.sampled_from([str, str.lower, str.upper])
Pair: TypeAlias = tuple[str, str]


def words(company: str) -> set[str]:
    return {word for word in bare(company).split() if word not in ("&", "and")}


def bare(company: str) -> str:
    for suffix in (", Inc.", " Corporation", " plc", " Holdings Ltd"):
        company = company.removesuffix(suffix)
    return company


@settings(deadline=None)
@given(PAIR, ASKED, CASES)
def test_case_suffix_ampersand_and_possessive_change_nothing(
    pair: Pair, asked: str, case: Callable[[str], str]
) -> None:
    company, other = pair
    spelt = {company, bare(company), bare(company).replace(" & ", " and "), bare(company).replace(" and ", " & ")}
    spelt |= {company.split()[0], company.replace(",", "").removesuffix(".")}
    for name in spelt:
        assert named(case(asked.format(name)), company, other) == {company}


@settings(deadline=None)
@given(PAIR, ASKED, st.integers(1, 4), st.sampled_from("abcxyz"), st.integers(0, 3))
def test_a_name_with_a_letter_wrong_is_its_company_or_none(
    pair: Pair, asked: str, at: int, letter: str, how: int
) -> None:
    company, other = pair
    first = company.split()[0]
    typed = (
        first[:at] + letter + first[at + 1 :],
        first[:at] + letter + first[at:],
        first[:at] + first[at + 1 :],
        first[:at] + first[at + 1] + first[at] + first[at + 2 :],
    )[how]
    assume(typed not in {word for each in pair for word in each.split()})
    for case in (str, str.lower):
        text, note = respelt(case(asked.format(typed)), filings(company, other))
        found = named(text, company, other)
        assert found <= {company} or _near(typed, other.split()[0])
        assert bool(note) == bool(found)


def _near(a: str, b: str) -> bool:
    """As a reader would see it: at most two letters apart."""
    return abs(len(a) - len(b)) <= 1 and len(set(enumerate(a.lower())) ^ set(enumerate(b.lower()))) <= 4


@settings(deadline=None)
@given(PAIR, st.sampled_from(["QXTR", "BKLM", "TX.B"]))
def test_a_ticker_is_its_company(pair: Pair, ticker: str) -> None:
    assert named(f"How did {ticker} do in 2023?", *pair, tickers=[ticker]) == {pair[0]}
    assert named(f"{ticker}'s revenue", *pair, tickers=["ZZZ", ticker]) == {pair[1]}


@pytest.mark.parametrize(
    ("question", "companies"),
    [
        ("What was Alpha Beta's revenue?", {"Alpha Beta Inc."}),
        ("What was Alpha's revenue?", {"Alpha Corp."}),
        ("What was Alpha Gamma Inc.'s revenue?", set()),
        ("Compare Alpha and Alpha Beta.", {"Alpha Corp.", "Alpha Beta Inc."}),
        ("Which target leverage ratio does Alpha name?", {"Alpha Corp."}),
        ("What is Zorb's long-term target leverage?", set()),
        ("what is zorb's target leverage?", set()),
        ("How does Alpha compare with target?", {"Alpha Corp.", "Target Corporation"}),
        ("What is target's leverage beside Alpha's?", {"Alpha Corp.", "Target Corporation"}),
        ("what was target's revenue", {"Target Corporation"}),
        ("S and P Ratings' revenue", {"S&P Ratings, Inc."}),
        ("revenue of J.P. Moorgate", {"JP Moorgate & Co."}),
        ("What does 3T sell?", {"3T Company"}),
        ("What did O'Rourke sell?", {"O'Rourke Stores, Inc."}),
        ("What did orourkes competitors sell?", set()),
        ("What did Alpha spend on IT?", {"Alpha Corp."}),
        ("What did $IT earn?", {"Gart & Sons"}),
        ("What are IT's revenues?", {"Gart & Sons"}),
        ("what was jpmc revenue", {"JP Moorgate & Co."}),
        ("what was tgte revenue", set()),
        ("what was tgte's revenue", {"Target Corporation"}),
    ],
)
def test_the_longest_name_is_meant_and_no_common_word(question: str, companies: set[str]) -> None:
    tickers = {"Gart & Sons": "IT", "JP Moorgate & Co.": "JPMC", "Target Corporation": "TGTE"}
    index = ("Alpha Corp.", "Alpha Beta Inc.", "S&P Ratings, Inc.", "3T Company", "O'Rourke Stores, Inc.", *tickers)
    assert named(question, *index, tickers=[*[""] * 5, *tickers.values()]) == companies


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What was Pellwerth's revenue?", "What was Pellworth's revenue?"),
        ("Revenue of Pelworth Energy in 2023", "Revenue of Pellworth Energy in 2023"),
        ("what was pelworth's revenue", "what was Pellworth's revenue"),
        ("PELWORTH REVENUE", "Pellworth REVENUE"),
        ("Revenue of Pelworth Airlines in 2023", None),
        ("Revenue of Bellworth in 2023", None),
        ("revenue of pelworth in 2023", None),
        ("How does Pellworth compare with Pelworth?", None),
        ("What is the Markets' size?", None),
    ],
)
def test_a_letter_is_mended_where_one_name_alone_is_near(question: str, text: str | None) -> None:
    found, note = respelt(question, filings("Pellworth Energy Corporation", "Market Street plc"))
    assert found == (text or question)
    assert note.endswith("read as Pellworth Energy Corporation") == (text is not None)


@pytest.mark.parametrize(
    ("question", "others", "one"),
    [
        ("Which of Harrow Inc. and Pell Corp. had more debt?", ("Harrow Inc.",), "Pell Corp. had more debt?"),
        ("Which of Harrow Inc. and Pell Corp. had more debt?", ("Pell Corp.",), "Harrow Inc. had more debt?"),
        ("Compare Harrow's and Pell's revenue and debt", ("Harrow Inc.",), "Compare Pell revenue and debt"),
        ("Did Harrow or Pell grow, and why?", ("Pell Corp.",), "Did Harrow grow, and why?"),
        ("Harrow vs Pell", ("Harrow", "Pell"), "Harrow vs Pell"),
    ],
)
def test_a_question_about_several_as_asked_of_one(question: str, others: tuple[str, ...], one: str) -> None:
    assert asked_of_one(question, others) == one
