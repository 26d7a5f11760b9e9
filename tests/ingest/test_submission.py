"""EDGAR's text files: which documents are read, fixed-width pages and tables, and what the header declares."""

from datetime import date
from pathlib import Path

import pytest

from app.errors import DocumentError
from ingest.extraction.declared import from_cover_facts, from_header, joined
from ingest.extraction.metadata import read_metadata
from ingest.formats.filing_text import Declared, FilingText
from ingest.formats.plain_text import read_text
from ingest.formats.sections import sections
from ingest.formats.submission import read_submission
from tests.ingest.edgar import ORRIN, TYPED, document, paragraph, submission

UUENCODED = "begin 644 logo.jpg\nM_]C_X``02D9)1@`!`0$`8`!@``#_VP!#``@&!@<&!0@'!P<)\n`\nend"


def read(path: Path, text: str) -> FilingText:
    path = path / "a.txt"
    path.write_text(text)
    return read_submission(path, max_pages=100)


def test_a_typed_filing(tmp_path: Path) -> None:
    text = read(tmp_path, submission("10-K405", document("10-K405", TYPED), document("EX-27", "<CASH> 5")))
    assert [page.text.split("\n")[0] for page in text.pages] == [
        "SECURITIES AND EXCHANGE COMMISSION",
        "ITEM 1. BUSINESS",
    ]
    assert text.pages[1].text == (
        "ITEM 1. BUSINESS\n\n"
        "The Company binds ledgers. See page 14 for its history.\n\n"
        "CONSOLIDATED STATEMENTS OF INCOME\n(Dollars in thousands)\n1995 1994 1993\n"
        "Net sales $ 42,118 $ 39,902 $ 37,455\n"
        "Cost of goods sold 30,007 28,865 27,310\n"
        "Interest, net (412) (388) ---\n"
        "Net income $ 4,115 $ 3,980 $ 3,712\n\n2"
    )
    assert text.tables is not None
    (table,) = text.tables[1]
    assert (table.columns, table.unit) == (("1995", "1994", "1993"), "Dollars in thousands")
    assert [row.values[2] for row in table.rows] == ["$ 37,455", "27,310", "---", "$ 3,712"]
    assert [s.title for s in sections(text.pages, text.outline)] == ["Item 1. Business"]
    assert not text.repaired


def test_the_header_says_who_filed_what_and_when(tmp_path: Path) -> None:
    text = read(tmp_path, submission("10-K405", document("10-K405", TYPED)))
    meta = read_metadata(text.pages, text.info, tmp_path / "a.txt", text.declared)
    assert (meta.company, meta.cik, meta.sector) == ("Quill & Ledger Company", "0000777777", "Manufacturing")
    assert (meta.form, meta.fiscal_year, meta.fiscal_period) == ("10-K", 1995, "FY")
    assert (meta.period_end, meta.filed) == ("1995-12-31", "1996-03-28")


@pytest.mark.parametrize(
    ("period", "year_end", "expected"),
    [("20230331", "1231", "Q1"), ("20221231", "0930", "Q1"), ("20230401", "0930", "Q2"), ("20230930", "1231", "Q3")],
)
def test_the_declared_year_end_numbers_the_quarter(tmp_path: Path, period: str, year_end: str, expected: str) -> None:
    header = submission("10-Q", document("10-Q", "A report."), period=period).replace("\t1231\n", f"\t{year_end}\n")
    text = read(tmp_path, header)
    assert read_metadata(text.pages, text.info, tmp_path / "a.txt", text.declared).fiscal_period == expected


def test_inline_xbrl_inside_a_submission(tmp_path: Path) -> None:
    parts = [document("10-K", f"<XBRL>\n{ORRIN}\n</XBRL>"), document("GRAPHIC", UUENCODED), document("EX-99.1", "no")]
    text = read(tmp_path, submission("10-K", *parts, period="20230930", name="ORRIN HARBOUR INC"))
    assert len(text.pages) == 4
    meta = read_metadata(text.pages, text.info, tmp_path / "a.txt", text.declared)
    assert (meta.company, meta.cik, meta.filed) == ("Orrin Harbour, Inc.", "0000123456", "1996-03-28")


def test_press_releases_are_read_with_their_current_report(tmp_path: Path) -> None:
    release = f"<html><body>{paragraph('Sales rose 5%.')}</body></html>"
    parts = [
        document("EX-10.1", "A contract."),
        document("8-K", "Item 2.02 Results of Operations"),
        document("EX-99.1", release),
        document("EX-99.2", UUENCODED),
    ]
    text = read(tmp_path, submission("8-K", *parts))
    assert [page.text for page in text.pages] == ["Item 2.02 Results of Operations", "Sales rose 5%."]
    assert [page.number for page in text.pages] == [1, 2]


def test_a_submission_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = submission("10-K405", document("10-K405", TYPED))
    text = read(tmp_path, whole[: whole.index("Cost of goods")])
    assert text.repaired
    assert text.pages[-1].text.endswith("Net sales $ 42,118 $ 39,902 $ 37,455")


@pytest.mark.parametrize(
    "text",
    [submission("10-K"), submission("10-K", document("GRAPHIC", UUENCODED)), submission("10-K", document("10-K", " "))],
)
def test_a_submission_without_text(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, text)
    assert caught.value.reason == "no_text"


def test_text_without_page_breaks_is_cut_between_paragraphs(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    paragraphs = [f"Paragraph {n}\n" + "of this report,\n" * 20 + "ends." for n in range(60)]
    path.write_text("\n\n".join(paragraphs) + "\f\n&lt;Last&gt; page\twith a tab")
    text = read_text(path)
    assert [p for page in text.pages for p in page.text.split("\n\n")] == [*paragraphs, "<Last> page with a tab"]
    assert len(text.pages) > 4


def test_what_is_declared_in_odd_ways_is_unknown() -> None:
    assert from_cover_facts({}) == from_header("") == Declared()
    odd = {
        "DocumentFiscalYearFocus": "FY23",
        "DocumentFiscalPeriodFocus": "H1",
        "DocumentPeriodEndDate": "soon",
        "TradingSymbol": "N/A",
        "EntityCentralIndexKey": "none",
        "CurrentFiscalYearEndDate": "--13-45",
    }
    assert from_cover_facts(odd) == Declared()
    assert from_cover_facts({"CurrentFiscalYearEndDate": "--09-30"}).year_end == (9, 30)
    assert from_cover_facts({"DocumentType": "10-KT", "AmendmentFlag": "true"}) == Declared(form="10-K", amended=True)
    assert from_header("CONFORMED PERIOD OF REPORT:\t20231399\nCONFORMED SUBMISSION TYPE:\tDEF 14A") == Declared(
        form="DEF 14A"
    )


def test_facts_win_over_the_header() -> None:
    facts, header = Declared(form="10-K", cik="1"), Declared(form="10-Q", filed=date(2024, 1, 2))
    assert joined(facts, header) == Declared(form="10-K", cik="1", filed=date(2024, 1, 2))
