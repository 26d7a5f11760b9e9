"""Figures: what a printed number is, what twelve layouts of tables give, and that each is where it says."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.types import DocumentMeta, Figure
from evals.specimens.documents import pdf
from evals.specimens.reports import companies, reports
from ingest.chunking import StructureChunker
from ingest.extraction.column_periods import FiscalYears, fiscal_years, period_of, row_period
from ingest.extraction.figures import figures, read_number
from ingest.extraction.metadata import read_metadata
from ingest.formats.filing_text import FilingText
from ingest.formats.reading import read_filing
from ingest.formats.sections import sections
from ingest.formats.tables import tables
from tests.conftest import DEV_DATA
from tests.ingest.typeset import typeset

GOLDEN = Path(__file__).parents[1] / "data" / "figures"
FILINGS = DEV_DATA / "filings-dev" / "pdfs"


@pytest.mark.parametrize(
    ("printed", "value", "unit", "scale"),
    [
        ("$ 32,765", "32765", "USD", 0),
        ("(1,577)", "-1577", None, 0),
        ("$ (0.07)", "-0.07", "USD", 0),
        ("($12)", "-12", "USD", 0),
        ("-1,100", "-1100", None, 0),
        ("−3", "-3", None, 0),
        ("(69.8)%", "-69.8", "percent", 0),
        ("28 %", "28", "percent", 0),
        (".5", "0.5", None, 0),
        ("1,234(a)", "1234", None, 0),
        ("€ 5.2 billion", "5.2", "EUR", 9),
        ("25 bps", "25", "basis points", 0),
        ("45.6²%", "45.6", "percent", 0),
        ("5 years", "5", "years", 0),
        ("C$ 5", "5", None, 0),
    ],
)
def test_a_number_as_printed(printed: str, value: str, unit: str | None, scale: int) -> None:
    found = read_number(printed)
    assert found is not None
    assert (found.value, found.unit, found.scale) == (Decimal(value), unit, scale)


@pytest.mark.parametrize("printed", ["—", "N/M", "", "$", "1,23", "12,34,567", "Q3", "1234567890123456", "COVID-19x"])
def test_what_is_no_number(printed: str) -> None:
    assert read_number(printed) is None


@given(st.integers(0, 10**12), st.integers(0, 3), st.booleans(), st.sampled_from(["", "$", "$ ", "€"]))
def test_a_number_is_read_back(units: int, places: int, negative: bool, sign: str) -> None:
    value = Decimal(units).scaleb(-places)
    printed = f"{value:,}"
    found = read_number(f"{sign}({printed})" if negative else f"{sign}{printed}")
    assert found is not None
    assert found.value == (-value if negative else value)


CALENDAR = fiscal_years(
    DocumentMeta("", "", form="10-K", fiscal_year=2022, fiscal_period="FY", period_end="2022-12-31"), ()
)
QUARTERLY = fiscal_years(
    DocumentMeta("", "", form="10-Q", fiscal_year=2023, fiscal_period="Q1", period_end="2022-12-31"), ()
)


@pytest.mark.parametrize(
    ("header", "head", "statement", "expected"),
    [
        ("Three Months Ended March 31, 2023", "", None, ("2023-03-31", 3)),
        ("Thirty-Nine Weeks Ended October 28, 2023", "", None, ("2023-10-28", 9)),
        ("52 weeks ended January 28, 2023", "", None, ("2023-01-28", 12)),
        ("December 31, 2022", "", None, ("2022-12-31", 0)),
        ("December 31, 2022", "Consolidated Statements of Income", None, ("2022-12-31", 12)),
        ("2021", "Years ended December 31 (Millions)", None, ("2021-12-31", 12)),
        ("2021", "At December 31,", "Consolidated Balance Sheet", ("2021-12-31", 0)),
        ("2021", "", None, ("2021-12-31", 12)),
        ("Fiscal 2020", "", None, ("2020-12-31", 12)),
        ("FY21", "", None, ("2021-12-31", 12)),
        ("Q3 2021", "", None, ("2021-09-30", 3)),
        ("3Q21", "", None, ("2021-09-30", 3)),
        ("First quarter 2022", "", None, ("2022-03-31", 3)),
        ("Level 1", "The fair values as of December 31, 2022 were:", None, ("2022-12-31", 0)),
        ("Level 1", "As of December 31, 2022 and June 30, 2022", None, (None, None)),
        ("Three Months Ended 2022", "", None, (None, 3)),
        ("Change", "", None, (None, None)),
        ("$ 2,022", "", None, (None, None)),
    ],
)  # fmt: skip
def test_the_period_of_a_column(header: str, head: str, statement: str | None, expected: tuple[Any, Any]) -> None:
    assert period_of(header, head, statement, CALENDAR) == expected


def test_a_bare_year_in_a_quarterly_report_is_not_guessed() -> None:
    assert period_of("2022", "", None, QUARTERLY) == (None, None)
    assert QUARTERLY.end(2023) == date(2023, 9, 30)
    assert QUARTERLY.end(2023, 1) == date(2022, 12, 31)


@pytest.mark.parametrize(
    ("heading", "label", "column", "expected"),
    [
        ("", "Balance at December 31, 2021", (None, None), ("2021-12-31", 0)),
        ("", "Outstanding as of June 30, 2022", ("2022-12-31", 12), ("2022-06-30", 0)),
        ("September 30, 2022", "Cash", (None, None), ("2022-09-30", 0)),
        ("Year ended January 28, 2017", "Charges", (None, None), ("2017-01-28", 12)),
        ("", "April 1, 2016 – April 30, 2016", (None, None), ("2016-04-30", 1)),
        ("", "Second quarter", ("2021-12-31", 12), ("2021-06-30", 3)),
        ("", "2021", (None, None), ("2021-12-31", 12)),
        ("", "4.5% notes due June 15, 2027", ("2022-12-31", 0), ("2022-12-31", 0)),
        ("", "Notes due 2027", (None, None), (None, None)),
    ],
)
def test_the_period_of_a_row(heading: str, label: str, column: tuple[Any, Any], expected: tuple[Any, Any]) -> None:
    assert row_period(heading, label, column, CALENDAR) == expected


def test_years_of_52_weeks_end_on_the_days_that_are_printed() -> None:
    meta = DocumentMeta("", "", form="10-K", fiscal_year=2023, fiscal_period="FY", period_end="2023-01-28")
    years = fiscal_years(meta, ["January 28, 2023 January 29, 2022", "January 30, 2021 March 4, 2020"])
    assert years == FiscalYears({2023: date(2023, 1, 28), 2022: date(2022, 1, 29), 2021: date(2021, 1, 30)}, True)
    assert years.end(2020) is None
    assert years.end(2022, 1) is None


def of_art(text: str) -> tuple[str, list[Figure]]:
    """The page's text and its figures; the first line says what the filing is: form, year, period and its end."""
    described, _, art = text.partition("\n")
    form, year, period, end = described.split()
    meta = DocumentMeta("Acme", "", form=form, fiscal_year=int(year), fiscal_period=period, period_end=end)
    page = typeset(art)
    found = tables(page)
    chunks = StructureChunker().chunks("acme", meta, [page], [], [found])
    return page.text, figures("acme", meta, [page], [found], chunks)


def described(figure: Figure, text: str) -> str:
    printed, period = text[figure.start : figure.end], f"{figure.period_end} {figure.period_months}"
    amount = f"{figure.value} e{figure.scale} {figure.unit}"
    return f"{figure.label} | {figure.column} | {printed} | {amount} | {period}"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.txt")), ids=lambda file: file.stem)
def test_tables_of_many_layouts(file: Path) -> None:
    """After a wanted change: UPDATE_GOLDEN=1 python -m pytest tests/ingest/test_figures.py, and read the difference."""
    text, found = of_art(file.read_text("utf-8"))
    rows = [described(figure, text) for figure in found]
    golden = file.with_suffix(".json")
    now = json.dumps({"statement": found[0].statement, "figures": rows}, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(now, "utf-8")
    assert now == golden.read_text("utf-8")
    assert all(figure.chunk_id for figure in found)


CHANGES = """10-K 2022 FY 2022-12-31
Sales change by segment in 2022:

                                   Organic sales     Translation     Stores
Grain                                       1.0%          (4.2)%         5%
Flour                                       1.2           (4.6)         12
Bread                                      (0.9)          (3)            7
Total                                       1.4%          (4.1)%         9%
"""


def test_a_column_with_the_mark_at_its_ends_is_of_percent_where_it_has_decimal_places() -> None:
    units = [(figure.column, figure.value, figure.unit) for figure in of_art(CHANGES)[1] if "Flour" in figure.label]
    assert units == [
        ("Organic sales", Decimal("1.2"), "percent"),
        ("Translation", Decimal("-4.6"), None),
        ("Stores", Decimal(12), None),
    ]


def test_there_are_twelve() -> None:
    assert len(list(GOLDEN.glob("*.txt"))) == len(list(GOLDEN.glob("*.json"))) == 12


def read(path: Path) -> tuple[FilingText, list[Figure]]:
    text = read_filing(path)
    meta = replace(read_metadata(text.pages, text.info, path, text.declared), source=path.as_uri())
    found = text.tables if text.tables is not None else [tables(page) for page in text.pages]
    chunks = StructureChunker().chunks("d", meta, text.pages, sections(text.pages, text.outline), found)
    return text, figures("d", meta, text.pages, found, chunks, text.facts)


def check_round_trip(text: FilingText, found: list[Figure]) -> None:
    """Every figure's number is printed on its page, at its place; no place is taken twice."""
    for figure in found:
        printed = text.pages[figure.page - 1].text[figure.start : figure.end]
        digits = re.search(r"\d[\d,]*(?:\.\d+)?|\.\d+", printed)
        assert digits is not None
        assert Decimal(digits[0].replace(",", "")) == abs(figure.value)
        assert (figure.value < 0) == (re.search(r"[(−–-]", printed[: digits.start()]) is not None)
        assert figure.label
        assert figure.chunk_id
    assert len({(figure.page, figure.start) for figure in found}) == len(found)


def specimens() -> Iterator[Any]:
    for variant, company in enumerate(companies()):
        for report in reports(company):
            yield pytest.param(report, variant, id=report.stem)


@pytest.mark.parametrize(("report", "variant"), list(specimens()))
def test_each_number_of_the_specimens_is_on_its_page(report: Any, variant: int, tmp_path: Path) -> None:
    path = tmp_path / f"{report.stem}.pdf"
    path.write_bytes(pdf(report, variant))
    text, found = read(path)
    check_round_trip(text, found)
    assert len(found) > 100
    known = [f for f in found if f.period_end and f.unit]
    assert len(known) > 0.8 * len(found)


@pytest.mark.slow
@pytest.mark.skipif(not FILINGS.is_dir(), reason="the development filings are not here")
def test_each_number_of_real_filings_is_on_its_page() -> None:
    for path in sorted(FILINGS.glob("*.pdf")):
        text, found = read(path)
        check_round_trip(text, found)
        assert len(found) > 20, path.name
