"""Company, form and fiscal period as covers and text state them."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from app.types import DocumentMeta, Page
from ingest.extraction.metadata import read_metadata
from ingest.formats.pdf import read_pdf
from tests.conftest import DEV_DATA

COVER = """UNITED STATES
SECURITIES AND EXCHANGE COMMISSION
Washington, D.C. 20549
FORM {form}
For the {period}
Commission File Number 1-2345
ACME ROCKET CO., INC.
(Exact name of registrant as specified in its charter)
Securities registered pursuant to Section 12(b) of the Act:
Title of each class Trading Symbol Name of each exchange on which registered
Common Stock, $0.10 par value per share ARC New York Stock Exchange"""


def read(*texts: str, file: str = "a.pdf", **info: str) -> DocumentMeta:
    return read_metadata([Page(n, text) for n, text in enumerate(texts, start=1)], info, Path(file))


def annual(end: str, *texts: str) -> DocumentMeta:
    return read(COVER.format(form="10-K", period=f"fiscal year ended {end}"), *texts)


def quarterly(end: str, *texts: str) -> DocumentMeta:
    return read(COVER.format(form="10-Q", period=f"quarterly period ended {end}"), *texts)


def test_the_cover_of_an_annual_report() -> None:
    meta = annual(
        "December 31, 2022", "Acme Rocket Co., Inc. makes rockets.", "CIK: 0000012345 is in the text, not here"
    )
    assert meta == DocumentMeta(
        title="Acme Rocket Co., Inc. 10-K FY2022",
        source="a.pdf",
        company="Acme Rocket Co., Inc.",
        ticker="ARC",
        form="10-K",
        fiscal_year=2022,
        fiscal_period="FY",
        period_end="2022-12-31",
    )


@pytest.mark.parametrize("apart", ["\n", "\n\n"])
def test_a_short_report_without_the_prescribed_cover(apart: str) -> None:
    lines = ["FORM 10-K", "Annual report", "For the fiscal year ended December 31, 2025", "ACME ROCKET CO., INC."]
    prose = "Acme Rocket Co., Inc. makes rockets. On December 31, 2025 Acme Rocket Co., Inc. employed 8 people."
    meta = read(apart.join([*lines, prose]))
    assert (meta.title, meta.company) == ("Acme Rocket Co., Inc. 10-K FY2025", "Acme Rocket Co., Inc.")


def test_a_name_in_capitals_alone_is_given_case() -> None:
    assert annual("December 31, 2022").company == "Acme Rocket Co., Inc."


@pytest.mark.parametrize(
    ("end", "text", "year"),
    [
        ("January 28, 2017", "fiscal 2017 ended January 28, 2017 and fiscal 2016 ended January 30, 2016", 2017),
        ("January 28, 2017", "Fiscal 2016 ended on January 28, 2017 and included 52 weeks", 2016),
        ("January 28, 2017", "the year ended January 30, 2016 (“fiscal 2015”)", 2016),
        ("February 2, 2019", "In fiscal 2019, against fiscal 2018 and fiscal 2017, and in fiscal 2019", 2019),
        ("February 2, 2019", "In fiscal 2018, against fiscal 2017 and fiscal 2016, and in fiscal 2018", 2018),
        ("January 1, 2023", "", 2022),
        ("January 31, 2023", "", 2023),
        ("June 30, 2023", "", 2023),
    ],
)
def test_the_fiscal_year_is_the_companys_own(end: str, text: str, year: int) -> None:
    assert annual(end, text).fiscal_year == year


@pytest.mark.parametrize(
    ("end", "text", "year", "period"),
    [
        ("December 31, 2022", "Three Months Ended\nDecember 31,\n2022 2021", 2023, "Q1"),
        ("December 31, 2022", "Three Months Ended Six Months Ended\nDecember 31, December 31,", 2023, "Q2"),
        ("September 30, 2023", "Nine Months Ended\nSeptember 30,\n2023 2022", 2023, "Q3"),
        (
            "July 29, 2023",
            "Six Months Ended\nJuly 29, 2023. The fiscal year ended January 28, 2023 (“fiscal 2023”)",
            2024,
            "Q2",
        ),
        ("October 28, 2023", "thirty-nine weeks ended October 28, 2023", 2024, "Q3"),
        ("March 31, 2023", "Three Months Ended\nMarch 31,\nin the nine months ended September 30, 2022", 2023, "Q1"),
    ],
)
def test_quarters_in_the_companys_calendar(end: str, text: str, year: int, period: str) -> None:
    meta = quarterly(end, text)
    assert (meta.fiscal_year, meta.fiscal_period) == (year, period)
    assert meta.title == f"Acme Rocket Co., Inc. 10-Q {period} FY{year}"


def test_a_current_report() -> None:
    cover = COVER.format(form="8-K", period="record").replace(
        "Commission", "March 10, 2023\nDate of Report\nCommission"
    )
    meta = read(cover)
    assert (meta.form, meta.period_end, meta.fiscal_year, meta.fiscal_period) == ("8-K", "2023-03-10", 2023, None)
    assert meta.title == "Acme Rocket Co., Inc. 8-K March 10, 2023"


def test_an_earnings_release() -> None:
    meta = read(
        "Acme Announces First Quarter 2023 Results\nHUNTSVILLE – April 25, 2023 – Acme Rocket Inc. (NASDAQ: ARC, ARCB) "
        "today announced financial results for the quarter ended March 31, 2023."
    )
    assert (meta.company, meta.ticker, meta.form) == ("Acme Rocket Inc.", "ARC", "ER")
    assert (meta.fiscal_year, meta.fiscal_period, meta.period_end) == (2023, "Q1", "2023-03-31")


def test_an_annual_report_with_the_filing_inside() -> None:
    letter = "Dear Shareholders: it was a good year."
    cover = COVER.format(form="10-K", period="fiscal year ended October 31, 2009")
    assert read(letter, letter, letter, cover).form == "AR"


def test_document_information_and_file_name_come_last() -> None:
    described = read("x", Subject="Form 10-Q filed on 2022-07-29 for the period ending 2022-06-25")
    assert (described.form, described.filed, described.period_end) == ("10-Q", "2022-07-29", "2022-06-25")
    named = read("x", file="ACME_2021_10K.pdf")
    assert (named.title, named.form, named.fiscal_year, named.company) == (
        "ACME 2021 10K 10-K FY2021",
        "10-K",
        2021,
        None,
    )
    assert read("x", file="notes.pdf") == DocumentMeta("notes", "notes.pdf")


def test_impossible_dates_are_unknown() -> None:
    assert annual("February 31, 2022").period_end is None


@pytest.mark.slow
def test_development_filings() -> None:
    listing = DEV_DATA / "filings-dev" / "docs.jsonl"
    if not listing.is_file():
        pytest.skip(f"needs the development filings in {listing.parent}")
    right: Counter[str] = Counter()
    forms = {"annual report": "AR", "earnings release": "ER"}
    for line in listing.read_text().splitlines():
        expected = json.loads(line)
        pdf = read_pdf(listing.parent / expected["file"])
        meta = read_metadata(pdf.pages, pdf.info, Path("unnamed.pdf"))
        end = expected["period_end"] or expected["report_date"]
        right["company"] += expected["company"].casefold() in (meta.company or "").casefold()
        right["form"] += forms.get(expected["form"], expected["form"]) == meta.form
        right["period_end"] += end is None or datetime.strptime(end, "%B %d, %Y").date().isoformat() == meta.period_end
        right["fiscal_year"] += expected["fiscal_year"] == meta.fiscal_year
    # Two quarterly reports are listed under a calendar year that is not the company's fiscal year.
    assert right == {"company": 26, "form": 26, "period_end": 26, "fiscal_year": 24}
