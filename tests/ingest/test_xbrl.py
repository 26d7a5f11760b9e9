"""Inline XBRL: what facts declare joins the cells they stand in, and each is where it is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.types import DocumentMeta, Figure, Page
from ingest.chunking import StructureChunker
from ingest.extraction.figures import figures
from ingest.extraction.xbrl import FactReader
from ingest.formats.filing_text import FilingText
from ingest.formats.html import read_html
from tests.ingest.edgar import paragraph

MEMBER = '<xbrldi:explicitMember dimension="srt:RegionAxis">orr:NorthMember</xbrldi:explicitMember>'


def context(name: str, start: str, end: str, segment: str = "") -> str:
    period = (
        f"<xbrli:startDate>{start}</xbrli:startDate><xbrli:endDate>{end}</xbrli:endDate>"
        if start
        else f"<xbrli:instant>{end}</xbrli:instant>"
    )
    inside = f"<xbrli:segment>{segment}</xbrli:segment>" if segment else ""
    return (
        f'<xbrli:context id="{name}"><xbrli:entity><xbrli:identifier>0000123456</xbrli:identifier>{inside}'
        f"</xbrli:entity><xbrli:period>{period}</xbrli:period></xbrli:context>"
    )


UNITS = (
    '<xbrli:unit id="usd"><xbrli:measure>iso4217:USD</xbrli:measure></xbrli:unit>'
    '<xbrli:unit id="pure"><xbrli:measure>xbrli:pure</xbrli:measure></xbrli:unit>'
    '<xbrli:unit id="eps"><xbrli:divide><xbrli:unitNumerator><xbrli:measure>iso4217:USD</xbrli:measure>'
    "</xbrli:unitNumerator><xbrli:unitDenominator><xbrli:measure>xbrli:shares</xbrli:measure>"
    "</xbrli:unitDenominator></xbrli:divide></xbrli:unit>"
)


def fact(name: str, text: str, where: str = "y23", unit: str = "usd", scale: int = 6, more: str = "") -> str:
    return (
        f'<ix:nonFraction name="us-gaap:{name}" contextRef="{where}" unitRef="{unit}" scale="{scale}" decimals="-6" '
        f"{more}>{text}</ix:nonFraction>"
    )


COMMA = fact("Comma", "1.200,5", more='format="ixt:num-comma-decimal"')


def row(label: str, *cells: str) -> str:
    return f"<tr><td>{label}</td>" + "".join(f"<td></td>{cell}" for cell in cells) + "</tr>"


FILING = (
    '<html xmlns:ix="http://www.xbrl.org/2013/inlineXBRL"><body><div style="display:none"><ix:header><ix:hidden>'
    + fact("Hidden", "77")
    + "</ix:hidden><ix:resources>"
    + context("y23", "2022-10-01", "2023-09-30")
    + context("y22", "2021-10-01", "2022-09-30")
    + context("now", "", "2023-09-30")
    + context("north", "2022-10-01", "2023-09-30", MEMBER)
    + UNITS
    + "</ix:resources></ix:header></div>"
    + paragraph("Consolidated Statements of Operations")
    + "<table><tr><td></td><td></td><td>2023</td><td></td><td>2022</td></tr>"
    + row("Net sales", f"<td>$ {fact('Revenues', '4,200')}</td>", f"<td>$ {fact('Revenues', '4,100', 'y22')}</td>")
    + row("Freight paid", f"<td>({fact('Freight', '320')})</td>", f"<td>({fact('Freight', '310', 'y22')})</td>")
    + row("Net loss", f"<td>({fact('NetIncomeLoss', '15', more='sign=' + chr(34) + '-' + chr(34))})</td>", "<td>—</td>")
    + row("Loss per share", f"<td>{fact('EarningsPerShareBasic', '0.05', 'y23', 'eps', 0)}</td>", "<td>0.00</td>")
    + row("Tax rate", f"<td>{fact('Rate', '14.7', 'y23', 'pure', -2)} %</td>", "<td>16.2 %</td>")
    + row(
        "Grants", f"<td>{fact('Grants', '—', more='format=' + chr(34) + 'ixt:fixed-zero' + chr(34))}</td>", "<td>5</td>"
    )
    + "</table>"
    + paragraph(
        f"Of 320 ships, sales in the north were ${fact('Revenues', '320', 'north')} million and cash was "
        f"${fact('Cash', '1.9', 'now', scale=9)} billion. Two of "
        f"{fact('Nested', fact('Inner', '12', scale=0), scale=0)} piers hold {COMMA} tons."
    )
    + "</body></html>"
)


@pytest.fixture(scope="module")
def filing(tmp_path_factory: pytest.TempPathFactory) -> tuple[FilingText, dict[str, Figure]]:
    path = tmp_path_factory.mktemp("xbrl") / "orr.htm"
    path.write_text(FILING, "utf-8")
    text = read_html(path)
    meta = DocumentMeta("Orrin", "", form="10-K", fiscal_year=2023, fiscal_period="FY", period_end="2023-09-30")
    assert text.tables is not None
    chunks = StructureChunker().chunks("orr", meta, text.pages, [], text.tables)
    found = figures("orr", meta, text.pages, text.tables, chunks, text.facts)
    return text, {f"{f.concept or f.label} {f.period_end} {f.dimensions or ''}".strip(): f for f in found}


def test_a_fact_says_more_of_its_cell(filing: tuple[FilingText, dict[str, Figure]]) -> None:
    text, found = filing
    sales = found["us-gaap:Revenues 2022-09-30"]
    assert (sales.label, str(sales.value), sales.scale, sales.unit) == ("Net sales", "4100", 6, "USD")
    assert (sales.period_months, sales.column, sales.statement) == (12, "2022", "Consolidated Statements of Operations")
    assert text.pages[0].text[sales.start : sales.end].endswith("4,100")
    per_share = found["us-gaap:EarningsPerShareBasic 2023-09-30"]
    assert (f"{per_share.value}", per_share.scale, per_share.unit) == ("0.05", 0, "USD/share")
    rate = found["us-gaap:Rate 2023-09-30"]
    assert (str(rate.value), rate.scale, rate.unit) == ("14.7", 0, "percent")


def test_the_printed_sign_stays(filing: tuple[FilingText, dict[str, Figure]]) -> None:
    _, found = filing
    assert found["us-gaap:Freight 2023-09-30"].value == -320
    assert found["us-gaap:NetIncomeLoss 2023-09-30"].value == -15


def test_a_fact_in_prose_is_a_figure_of_its_own(filing: tuple[FilingText, dict[str, Figure]]) -> None:
    text, found = filing
    north = found["us-gaap:Revenues 2023-09-30 srt:RegionAxis=orr:NorthMember"]
    assert (north.label, str(north.value), north.scale, north.period_months) == ("Revenues", "320", 6, 12)
    assert text.pages[0].text[north.start - 6 : north.end + 8] == "were $320 million"
    cash = found["us-gaap:Cash 2023-09-30"]
    assert (str(cash.value), cash.scale, cash.period_months, cash.column) == ("1.9", 9, 0, None)


def test_what_is_not_shown_as_a_number_is_no_figure(filing: tuple[FilingText, dict[str, Figure]]) -> None:
    _, found = filing
    concepts = {figure.concept for figure in found.values()} - {None}
    assert concepts == {
        "us-gaap:Revenues",
        "us-gaap:Freight",
        "us-gaap:NetIncomeLoss",
        "us-gaap:EarningsPerShareBasic",
        "us-gaap:Rate",
        "us-gaap:Cash",
        "us-gaap:Inner",
    }


_NUMBERS = st.lists(st.tuples(st.integers(10, 99), st.booleans()), max_size=30)


def places(numbers: list[tuple[int, bool]], off: int) -> tuple[list[int], list[int]]:
    """Where the marked numbers of a text stand and where they are found, if the count of characters is off by `off`."""
    text, reader, marked = "", FactReader(), []
    for value, is_fact in numbers:
        if is_fact and (use := reader.start("ix:nonfraction", {"name": "a"}, len(text) // 5 * 2 + off, hidden=False)):
            use(f"{value}")
            marked.append(len(text))
        text += f"{value} \n "
    return marked, [fact.start for fact in reader.facts([Page(1, text)])]


@given(_NUMBERS)
def test_a_fact_is_found_among_equal_numbers(numbers: list[tuple[int, bool]]) -> None:
    marked, found = places(numbers, 0)
    assert found == marked


@given(_NUMBERS, st.integers(-50, 50))
def test_a_fact_is_found_though_characters_were_lost(numbers: list[tuple[int, bool]], off: int) -> None:
    marked, found = places(list(dict(numbers).items()), off)
    assert found == marked
