"""How comparisons are split."""

import pytest

from app.question.decomposition import companies_in, decompose
from app.types import Document, DocumentMeta


def filing(company: str, form: str, year: int, period: str, end: str) -> Document:
    meta = DocumentMeta(
        f"{company} {form} {period} {year}", f"{company}.pdf", company=company, form=form, fiscal_year=year,
        fiscal_period=period, period_end=end,
    )  # fmt: skip
    return Document(f"{company.split()[0]}-{period}-{year}".lower(), "0" * 64, meta, 1, 1)


CATALOGUE = (
    filing("Acme Corp", "10-K", 2020, "FY", "2020-12-31"),
    filing("Acme Corp", "10-K", 2022, "FY", "2022-12-31"),
    filing("Acme Corp", "10-Q", 2023, "Q1", "2023-03-31"),
    filing("Acme Corp", "10-Q", 2023, "Q2", "2023-06-30"),
    filing("Acme Corp", "10-Q", 2023, "Q3", "2023-09-30"),
    filing("Best Globex Inc", "10-K", 2022, "FY", "2022-12-31"),
)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Was Acme's or Best Globex's revenue higher in 2022?",
            [("Acme Corp", ("acme-fy-2022",)), ("Best Globex Inc", ("best-fy-2022",))],
        ),
        (
            "How did Acme's debt change between 2020 and 2022?",
            [("2020", ("acme-fy-2020",)), ("2022", ("acme-fy-2022",))],
        ),
        (
            "How has Acme's revenue changed over time?",
            [
                ("Acme Corp 10-Q Q1 2023", ("acme-q1-2023",)),
                ("Acme Corp 10-Q Q2 2023", ("acme-q2-2023",)),
                ("Acme Corp 10-Q Q3 2023", ("acme-q3-2023",)),
            ],
        ),
        (
            "How did Acme's headcount develop over the years?",
            [("Acme Corp 10-K FY 2020", ("acme-fy-2020",)), ("Acme Corp 10-K FY 2022", ("acme-fy-2022",))],
        ),
        ("What was Acme's revenue in 2022?", []),
        ("How did Acme's revenue change from 2021 to 2022?", []),
        ("What is the weather over time?", []),
        ("What did Acme pay when it bought Best Globex?", []),
    ],
)
def test_parts(question: str, parts: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(part.about, part.documents) for part in decompose(question, CATALOGUE, most=5)] == parts


def test_a_part_says_nothing_of_the_others() -> None:
    first, second = decompose("How did Acme's debt change between 2020 and Q1 2023?", CATALOGUE, most=5)
    assert (first.text, first.terms) == (
        "How did Acme's debt change between 2020 and ?",
        "How did debt change between 2020 and ?",
    )
    assert second.text == "How did Acme's debt change between and Q1 2023?"


def test_the_newest_are_kept() -> None:
    found = decompose("How has Acme's revenue changed over time?", CATALOGUE, most=2)
    assert [part.about for part in found] == ["Acme Corp 10-Q Q2 2023", "Acme Corp 10-Q Q3 2023"]


def test_a_passage_s_names_are_capitalised() -> None:
    assert companies_in("We buy steel from Best Globex and acme of no name.", CATALOGUE) == {"Best Globex Inc"}
    assert companies_in("Best of all, Globex sells to Acme.", CATALOGUE) == {"Acme Corp"}
