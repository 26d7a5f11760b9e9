"""Which of several filings of a company is meant where a question names no period."""

from dataclasses import replace

import pytest

from app.evidence.recency import years_behind
from app.evidence.statements import statements, subject_of
from app.types import Chunk, DocumentMeta, Hit


def filed(form: str, end: str, rank: int, *, company: str = "Orrin, Inc.", day: str | None = None) -> Hit:
    text = "We had 300 people and net sales of $10 million, cash of $4 million and debt of $2 million."
    meta = DocumentMeta("t", "s", company, form=form, fiscal_year=int(end[:4]), period_end=end, filed=day)
    return Hit(Chunk(f"c{rank}", f"d{rank}", 0, 1, 0, len(text), text, "", "text", "Item 1", meta), rank, 1.0)


YEARS = (filed("10-K", "2021-12-31", 1), filed("10-K", "2022-12-31", 2), filed("10-Q", "2023-03-31", 3))
OLDER = (filed("10-Q", "2022-09-30", 1), filed("10-K", "2022-12-31", 2))


def behind(question: str, *hits: Hit) -> list[int]:
    return years_behind(question, subject_of(question, hits), statements(hits))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What are Orrin's net sales?", [1, 0, 1]),
        ("Which segment of Orrin is the largest?", [1, 0, 1]),
        ("How many people does Orrin employ?", [2, 1, 0]),
        ("What are Orrin's total assets?", [2, 1, 0]),
        ("What are Orrin's total assets and net income?", [1, 0, 1]),
        ("What were Orrin's net sales in 2021?", [0, 0, 0]),
        ("How have Orrin's net sales evolved over time?", [0, 0, 0]),
        ("What were Orrin's net sales in these quarters?", [0, 0, 0]),
        ("How did net sales of Orrin compare with the previous year's?", [0, 0, 0]),
        ("When did Orrin open its mill?", [0, 0, 0]),
        ("What are the net sales of the mills?", [0, 0, 0]),
    ],
)
def test_an_amount_is_the_newest_years_and_a_balance_or_a_count_the_newest(question: str, expected: list[int]) -> None:
    assert behind(question, *YEARS) == expected


def test_an_older_quarter_stands_behind_the_year() -> None:
    assert behind("How many people does Orrin employ?", *OLDER) == [1, 0]
    assert behind("What are Orrin's net sales?", *OLDER) == [1, 0]


def test_each_company_has_a_newest_filing_of_its_own() -> None:
    both = (*YEARS[:2], filed("10-K", "2020-12-31", 3, company="Tessel Corp."))
    assert behind("What are the net sales of Orrin and Tessel?", *both) == [1, 0, 0]


def test_of_one_period_that_filed_last_is_the_newest() -> None:
    amended = (
        filed("10-K", "2022-12-31", 1, day="2023-02-01"),
        filed("10-K", "2022-12-31", 2, day="2023-06-01"),
    )
    assert behind("What are Orrin's net sales?", *amended) == [1, 0]


def test_quarterly_filings_alone_give_the_newest_of_them() -> None:
    quarters = (filed("10-Q", "2023-03-31", 1), filed("10-Q", "2023-06-30", 2))
    assert behind("What are Orrin's net sales?", *quarters) == [1, 0]


def test_more_than_four_years_are_as_far_as_four_and_so_is_no_period() -> None:
    ends = ("2012-12-31", "2019-12-31", "2022-12-31", "2021-12-31")
    hits = [filed("10-K", end, n) for n, end in enumerate(ends)]
    undated = replace(hits[0], chunk=replace(hits[0].chunk, meta=replace(hits[0].chunk.meta, period_end=None)))
    assert behind("What are Orrin's net sales?", *hits, undated) == [4, 3, 0, 1, 4]


def test_a_quarter_more_than_a_year_after_the_last_annual_filing_is_meant_itself() -> None:
    late = (filed("10-K", "2019-12-31", 1), filed("10-Q", "2023-06-30", 2), filed("10-Q", "2023-09-30", 3))
    assert behind("What are Orrin's net sales?", *late) == [3, 1, 0]
