"""What a question is read to be about, over a small catalogue of invented filings."""

import pytest

from app.question.companies import without_names
from app.question.periods import named_periods
from app.question.reading import read
from app.types import Document, DocumentMeta


def filing(name: str, company: str, form: str, year: int, period: str, end: str, ticker: str | None = None) -> Document:
    meta = DocumentMeta(
        name,
        f"{name}.pdf",
        company=company,
        ticker=ticker,
        form=form,
        fiscal_year=year,
        fiscal_period=period,
        period_end=end,
    )
    return Document(name, "", meta, 1, 1)


CATALOGUE = [
    filing("orrin-2021", "Orrin & Vale, Inc.", "10-K", 2021, "FY", "2021-12-31", "ORV"),
    filing("orrin-2022", "Orrin & Vale, Inc.", "10-K", 2022, "FY", "2022-12-31", "ORV"),
    filing("orrin-2022q3", "Orrin & Vale, Inc.", "10-Q", 2022, "Q3", "2022-09-30", "ORV"),
    filing("tessel-2022", "Tessel.com, Inc.", "10-K", 2022, "FY", "2022-06-30", "TSL"),
    filing("tessel_2022Q3", "Tessel.com, Inc.", "10-Q", 2023, "Q1", "2022-09-30", "TSL"),
    filing("general-2022", "General Quarry Holdings plc", "20-F", 2022, "FY", "2022-12-31"),
]


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        ("What were Orrin & Vale's net sales in FY2021?", ["orrin-2021"]),
        ("What was ORV's debt at the end of fiscal 2022?", ["orrin-2022"]),
        ("Orrin & Vale 2022 10-K: capital expenditure?", ["orrin-2022"]),
        ("How did Tessel do in the third quarter of 2022?", ["tessel_2022Q3"]),
        ("How did Tessel do in Q1 2023?", ["tessel_2022Q3"]),
        ("Tessel's revenue for the quarter ended September 30, 2022", ["tessel_2022Q3"]),
        ("Compare Tessel and Orrin & Vale in FY22", ["orrin-2022", "tessel-2022"]),
        ("What did General Quarry report for 2022?", ["general-2022"]),
        ("What does the latest 10-Q of Orrin say?", ["orrin-2022q3"]),
        ("How large is revenue beside the cost of sales in the latest 10-Q of Orrin?", ["orrin-2022q3"]),
        ("How does the latest 10-K of Orrin compare with the previous year?", ["orrin-2021", "orrin-2022"]),
        (
            "How does debt in Orrin's latest report compare to the year before?",
            ["orrin-2021", "orrin-2022", "orrin-2022q3"],
        ),
        ("How did Orrin's inventories move over these quarters?", ["orrin-2022q3"]),
        ("How did ORV's margin change quarter to quarter?", ["orrin-2022q3"]),
        ("How did General Quarry's margin change quarter to quarter?", ["general-2022"]),
        ("How did Orrin do in the last quarter of its business?", ["orrin-2022"]),
        ("Which company discusses water risk?", []),
        ("General quarrying risks in 2022", []),
        ("the or of", []),
        ("", []),
    ],
)
def test_documents(question: str, documents: list[str]) -> None:
    assert list(read(question, CATALOGUE).documents) == documents


def test_a_year_without_a_filing_falls_to_those_that_restate_it() -> None:
    reading = read("What was Orrin & Vale's revenue in 2020?", CATALOGUE)
    assert reading.documents == ("orrin-2021", "orrin-2022")
    assert reading.relaxed == ()


def test_what_nothing_matches_is_left_out_and_said() -> None:
    reading = read("What did Orrin & Vale's 2015 8-K say?", CATALOGUE)
    assert reading.documents == ("orrin-2021", "orrin-2022", "orrin-2022q3")
    assert reading.relaxed == ("2015", "8-K")


def test_each_company_is_narrowed_for_itself() -> None:
    reading = read("Tessel's 20-F and General Quarry's 20-F", CATALOGUE)
    assert reading.documents == ("general-2022", "tessel-2022", "tessel_2022Q3")
    assert reading.relaxed == ()


@pytest.mark.parametrize(
    ("question", "periods"),
    [
        ("FY2018 and fy19", ["2018", "2019"]),
        ("from 2016 to 2018", ["2016", "2018"]),
        ("Q2 2023, 2022 Q4, the first quarter of fiscal 2021", ["Q2 2023", "Q1 2021", "Q4 2022"]),
        ("three months ended July 1, 2023 and in 2022", ["2023-07-01", "2022"]),
        ("assets in 1887? And in 2150", ["1887", "2150"]),
        ("sold in 1500 stores, in 1500 of them", []),
        ("no period: 10-K, $1,577, 20190", []),
    ],
)
def test_periods(question: str, periods: list[str]) -> None:
    assert [str(p) for p in named_periods(question)] == periods


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What was Orrin & Vale's backlog?", "What was & backlog?"),
        ("Orrin-made valves of ORRIN", "valves of"),
        ("Orrin?", "Orrin?"),
        ("What was Tessel's backlog?", "What was Tessel backlog?"),
    ],
)
def test_terms_are_what_is_left_without_the_companies(question: str, rest: str) -> None:
    assert without_names(question, ["Orrin & Vale, Inc."]) == rest
