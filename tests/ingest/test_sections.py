"""Sections from headings and outlines; running headers, contents pages and references are none."""

from app.types import Page
from ingest.formats.filing_text import OutlineEntry
from ingest.formats.sections import headline, running_lines, sections

FIGURES = "Net sales 10 9\nCosts (4) (3)\nNet income 6 6\nPer share 0.6 0.5"
PROSE = "We make anvils and sell them to the trade, at home and abroad, and have done so since we began."


def document(*texts: str) -> list[Page]:
    return [Page(number, text) for number, text in enumerate(texts, start=1)]


def titles(*texts: str) -> list[str]:
    return [section.title for section in sections(document(*texts))]


ANNUAL = (
    "Acme Corp\nFORM 10-K",
    "PART I\nItem 1. Business 3\nItem 1A. Risk Factors 5\nItem 7. Management’s Discussion 12\nItem 8. Statements 20",
    f"PART I\n\nItem 1. Business.\n\n{PROSE}\nAs Item 7 of this report says, we grow.",
    f"ITEM 1A. RISK FACTORS\n\n{PROSE}\nItem 7, “Management’s Discussion”, has more.",
    f"Item 8. Financial Statements and Supplementary Data\n\n{PROSE}",
    f"Acme Corp\nCONSOLIDATED STATEMENTS OF CASH FLOWS\n\n{FIGURES}",
    f"Note 1. Summary of Significant Accounting Policies\n\n{PROSE}\n\nNote 2 — DEBT AND LEASES\n\n{PROSE}",
    f"Item 9A. Controls and Procedures\n\n{PROSE}",
)


def test_items_statements_and_notes_of_an_annual_report() -> None:
    assert titles(*ANNUAL) == [
        "Item 1. Business",
        "Item 1A. Risk Factors",
        "Item 8. Financial Statements and Supplementary Data",
        "Item 8. Financial Statements and Supplementary Data > Consolidated Statements of Cash Flows",
        "Item 8. Financial Statements and Supplementary Data > Note 1. Summary of Significant Accounting Policies",
        "Item 8. Financial Statements and Supplementary Data > Note 2. Debt and Leases",
        "Item 9A. Controls and Procedures",
    ]


def test_a_section_starts_at_its_heading() -> None:
    pages = document(*ANNUAL)
    for section in sections(pages):
        heading = section.title.rpartition(" > ")[2][:6].casefold()
        assert pages[section.page - 1].text[section.start :].casefold().startswith(heading)


def test_items_of_a_quarterly_report_name_their_part() -> None:
    assert titles(
        f"PART I — FINANCIAL INFORMATION\n\nItem 1. Financial Statements\n\n{PROSE}",
        f"Condensed Consolidated Balance Sheets (Unaudited)\n{FIGURES}",
        f"1. Basis of Presentation\n\n{PROSE}\n\n2. Debt\n\n{PROSE}",
        f"Item 2. Management’s Discussion and Analysis\n\n{PROSE}\n\n1. Drive growth everywhere we can.",
        f"PART II — OTHER INFORMATION\n\nItem 1. Legal Proceedings\n\n{PROSE}\n\nItem 2. Unregistered Sales\n\n{PROSE}",
    ) == [
        "Part I, Item 1. Financial Statements",
        "Part I, Item 1. Financial Statements > Condensed Consolidated Balance Sheets",
        "Part I, Item 1. Financial Statements > Note 1. Basis of Presentation",
        "Part I, Item 1. Financial Statements > Note 2. Debt",
        "Part I, Item 2. Management’s Discussion and Analysis",
        "Part II, Item 1. Legal Proceedings",
        "Part II, Item 2. Unregistered Sales",
    ]


def test_running_headers_are_no_sections() -> None:
    pages = [f"PART I\nItem 1\n\n{PROSE} {n}\n\n{n}" for n in range(2, 9)]
    assert titles(f"PART I\nItem 1\n\nITEM 1. BUSINESS\n\n{PROSE}", *pages) == ["Item 1. Business"]


def test_current_reports_and_releases() -> None:
    assert titles(f"Item 5.07 Submission of Matters to a Vote of Security Holders.\n\n{PROSE}") == [
        "Item 5.07. Submission of Matters to a Vote of Security Holders"
    ]
    assert titles(f"Acme Reports Results\n\n{PROSE}") == []
    assert titles(f"Acme Corp\nCONSOLIDATED BALANCE SHEETS\n{FIGURES}") == [
        "Financial Statements > Consolidated Balance Sheets"
    ]


def test_an_outline_that_lists_the_items_wins() -> None:
    pages = document("cover", f"about us\n\n{PROSE}", *[f"x\n\nITEM {n}. X\n\n{PROSE}" for n in range(2, 6)])
    outline = [OutlineEntry("Item 1. Business", 2, 1)] + [
        OutlineEntry(f"Item {n}. Chapter {n}", n + 1, 1) for n in range(2, 6)
    ]
    found = sections(pages, outline)
    assert [s.title for s in found] == ["Item 1. Business", *(f"Item {n}. Chapter {n}" for n in range(2, 6))]
    assert [(s.page, s.start) for s in found] == [(2, 0), (3, 3), (4, 3), (5, 3), (6, 3)]


def test_an_outline_helps_where_there_are_no_items() -> None:
    pages = document("To our shareholders", "x\nOur Strategy\ny")
    assert [(s.title, s.page, s.start) for s in sections(pages, [OutlineEntry("Our Strategy", 2, 1)])] == [
        ("Our Strategy", 2, 2)
    ]


def test_headlines_in_capitals_are_made_readable() -> None:
    assert headline("RISK FACTORS.") == "Risk Factors"
    assert headline("MARKET FOR REGISTRANT’S COMMON EQUITY") == "Market for Registrant’s Common Equity"
    assert headline("Busines s") == "Business"
    assert headline("Stock-Based Compensation") == "Stock-Based Compensation"


def test_running_lines_are_headers_footers_and_page_numbers() -> None:
    body = [
        f"{name} made\nanvils of {name}.\n{PROSE}\nSold {n * n} units."
        for n, name in enumerate(["Ann", "Bo", "Cy", "Di", "Ed"])
    ]
    pages = document(
        *(f"Table of Contents\n\n{b}\nSee {b[:4]}.\n\nAcme Corp | 10-K | {n}" for n, b in enumerate(body, 1))
    )
    for page, spans in zip(pages, running_lines(pages), strict=True):
        assert [page.text[a:b] for a, b in spans] == ["Table of Contents", f"Acme Corp | 10-K | {page.number}"]


def test_headers_of_tables_are_not_running() -> None:
    pages = document(*(f"Three Months Ended June 30,\n2023 2022\nNet sales {n * n} {n}\n{n}" for n in range(1, 6)))
    assert [[page.text[a:b] for a, b in spans] for page, spans in zip(pages, running_lines(pages), strict=True)] == [
        [str(n)] for n in range(1, 6)
    ]


def test_pages_of_the_same_few_lines_are_no_headers() -> None:
    pages = document(*["Nothing to report this quarter\n\nBy order of the board"] * 4)
    assert running_lines(pages) == [()] * 4
