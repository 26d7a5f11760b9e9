"""Tables found on typeset pages: rows, column headers, units, and nothing on prose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.types import Page
from ingest.formats.page_lines import unit
from ingest.formats.tables import Row, Table, tables
from tests.ingest.typeset import typeset

CASH_FLOWS = """
                        Consolidated Statements of Cash Flows
                                   (in millions)

                                                       Years Ended December 31,
                                                     2018        2017        2016
Operating Activities:
  Net income                                      $  5,363    $  4,869    $  5,058
  Adjustments for items that need no cash, such as
    depreciation and amortization                    1,488       1,544       1,474
  Deferred income taxes                                (57)         (6)          7
  Other, net                                             9           —          (4)

Net cash provided by operating activities            6,803       6,407       6,535
"""


def only(page: Page) -> Table:
    found = tables(page)
    assert len(found) == 1
    return found[0]


def test_rows_columns_and_unit_of_a_statement() -> None:
    page = typeset(CASH_FLOWS)
    table = only(page)
    assert table.columns == tuple(f"Years Ended December 31, {year}" for year in (2018, 2017, 2016))
    assert table.unit == "in millions"
    assert [(row.label, row.values) for row in table.rows] == [
        ("Operating Activities:", ()),
        ("Net income", ("$ 5,363", "$ 4,869", "$ 5,058")),
        (
            "Adjustments for items that need no cash, such as depreciation and amortization",
            ("1,488", "1,544", "1,474"),
        ),
        ("Deferred income taxes", ("(57)", "(6)", "7")),
        ("Other, net", ("9", "—", "(4)")),
        ("Net cash provided by operating activities", ("6,803", "6,407", "6,535")),
    ]


def test_spans_are_slices_of_the_page() -> None:
    page = typeset(CASH_FLOWS)
    table = only(page)
    assert page.text[table.start : table.header_end].startswith("Consolidated Statements of Cash Flows\n(in millions)")
    assert page.text[table.start : table.header_end].endswith("2018 2017 2016")
    assert page.text[table.rows[1].start : table.rows[1].end] == "Net income $ 5,363 $ 4,869 $ 5,058"
    assert table.end == table.rows[-1].end


def test_merged_headers_are_given_to_each_of_their_columns() -> None:
    table = only(
        typeset("""
                                  Three Months Ended          Six Months Ended
                                       June 30,                   June 30,
                                   2023        2022          2023        2022
        Product sales          $    594    $    593      $  1,723    $  1,791
        Service sales               677         799         1,924       2,256
        """)
    )
    assert table.columns == (
        "Three Months Ended June 30, 2023",
        "Three Months Ended June 30, 2022",
        "Six Months Ended June 30, 2023",
        "Six Months Ended June 30, 2022",
    )


def test_the_label_beside_the_years_dates_them() -> None:
    table = only(
        typeset("""
        (In millions)

        June 30,                          2023        2022
        Goodwill                        67,886      67,524
        Inventories                      2,500       3,742
        """)
    )
    assert table.columns == ("June 30, 2023", "June 30, 2022")
    assert table.unit == "In millions"


def test_a_period_heads_all_its_years_and_a_title_no_column() -> None:
    """However the period stands over its years; where each has a day of its own, that is its own."""
    page = """
                                        PART I. FINANCIAL INFORMATION
                                             Item 2
                                    SEGMENT RESULTS OF OPERATIONS

                                   Three Months Ended   Percentage      Nine Months Ended   Percentage
                                            March 31,       Change              March 31,       Change
                                    2023         2022                   2023         2022
      Net sales                    1,488        1,544          (4)%     5,363        4,869           10%
      Other, net                     (57)          (6)        850%        264          101          161%
    """
    (three, nine) = (f"{span} Months Ended March 31, " for span in ("Three", "Nine"))
    change = "Percentage Change"
    assert only(typeset(page)).columns == (f"{three}2023", f"{three}2022", change, f"{nine}2023", f"{nine}2022", change)
    days = page.replace("         March 31,", "April 1,  March 31,")
    (three, nine) = (three.replace("March 31", "April 1"), nine.replace("March 31", "April 1"))
    assert [only(typeset(days)).columns[n] for n in (0, 3)] == [f"{three}2023", f"{nine}2023"]


def test_a_title_above_the_unit_heads_no_column() -> None:
    page = """
                                          Summary of results
        (Dollars in millions)
                                          Years ended December 31,     Share of      Change
                                             2024         2023            total  in percent
        Looms                                 603          561            49.2%        7.5%
        Spindles                              418          447            34.1%       (6.5)%
    """
    years = ("Years ended December 31, 2024", "Years ended December 31, 2023")
    assert only(typeset(page)).columns == (*years, "Share of total", "Change in percent")


def test_a_heading_of_two_lines_beside_the_unit_is_whole() -> None:
    page = """
                                                                    Percentage
        (In millions)                      2024         2023            Change
        Looms                               603          561              7.5%
        Spindles                            418          447            (6.5)%
    """
    assert only(typeset(page)).columns == ("2024", "2023", "Percentage Change")


def test_years_in_the_first_column_are_labels() -> None:
    table = only(
        typeset("""
        Year Ending June 30,           Operating     Finance

        2024                           $   2,784    $  1,747
        2025                               2,508       2,087
        Thereafter                         6,327      11,462
        """)
    )
    assert [row.label for row in table.rows] == ["2024", "2025", "Thereafter"]
    assert table.columns == ("Operating", "Finance")


def test_percent_signs_and_footnotes_do_not_shift_columns() -> None:
    table = only(
        typeset("""
                                          2023        2022
        Organic sales                    (0.9) %      9.8  %
        Divestitures                     (0.4)          —
        Translation                      (2.6)        1.0
        Total sales change               (3.9) %     10.8  %
        """)
    )
    assert [row.values for row in table.rows] == [
        ("(0.9)%", "9.8%"),
        ("(0.4)", "—"),
        ("(2.6)", "1.0"),
        ("(3.9)%", "10.8%"),
    ]


def test_raised_marks_belong_to_no_label_value_or_header() -> None:
    page = typeset("""
                                         2023¹        2022
        Segment income³                    432¹       (321)ᵃ
        Margin                            45.6²%      44.1%
        """)
    table = only(page)
    assert table.columns == ("2023", "2022")
    assert [(row.label, row.values) for row in table.rows] == [
        ("Segment income", ("432", "(321)")),
        ("Margin", ("45.6%", "44.1%")),
    ]
    assert [page.text[slice(*span)] for row in table.rows for span in row.spans if span] == [
        "432",
        "(321)",
        "45.6²%",
        "44.1%",
    ]


def test_figures_inside_a_label_stay_there() -> None:
    table = only(
        typeset("""
                                                          2017        2016
        Unrealized losses, net of tax of $(5) and $12      (7)           9
        Receivables, net of allowances of $348            213         186
        Total                                             206         195
        """)
    )
    assert table.rows[0] == Row(
        table.rows[0].start, table.rows[0].end, "Unrealized losses, net of tax of $(5) and $12", ("(7)", "9")
    )


@pytest.mark.parametrize(
    "between",
    [
        ("See the accompanying notes.", "", "Consolidated Statements of Equity", "(In millions)"),
        ("Note 7. Income taxes", "A reconciliation follows.", "(In millions)"),
    ],
)
def test_what_begins_behind_a_table_is_no_label_in_it(between: tuple[str, ...]) -> None:
    page = typeset(
        "\n".join(
            (
                "                             2018     2017     2016",
                "Dividends paid               (21)     (20)     (19)",
                "Repurchases                  (28)     (24)     (20)",
                *between,
                "                   Paid-in  Retained  Treasury   Total",
                "                   capital  earnings     stock  equity",
                "Net income               —        70         —      70",
                "Repurchases              —         —       (28)    (28)",
            )
        )
    )
    first, second = tables(page)
    assert (first.columns, [row.label for row in first.rows]) == (
        ("2018", "2017", "2016"),
        ["Dividends paid", "Repurchases"],
    )
    assert second.columns == ("Paid-in capital", "Retained earnings", "Treasury stock", "Total equity")
    assert [row.values for row in second.rows] == [("—", "70", "—", "70"), ("—", "—", "(28)", "(28)")]


def test_two_tables_with_their_own_years_are_two() -> None:
    page = typeset("""
                                          2018        2017
        Goodwill                           100          90
        Inventories                         50          40

                                          2019        2018
        Debt                               300         280
        Leases                              20          10
        """)
    assert [table.columns for table in tables(page)] == [("2018", "2017"), ("2019", "2018")]


@pytest.mark.parametrize(
    "prose",
    [
        """
        Net sales rose 5% to $1,577 million in fiscal 2018 from $1,502 million
        in fiscal 2017, and operating income fell 3% to $120 million, of which
        $12 million came from discontinued operations in 2018 and 2017.
        The decrease was due to prices, which fell between 2% and 5% in 2018.
        """,
        """
        Item 1.   Business                                               4
        Item 1A.  Risk Factors                                          10
        Item 2.   Properties                                            12
        Item 3.   Legal Proceedings                                     12
        """,
        "Signature    Title    Date\nJane Doe    Director    February 7, 2019",
        "",
    ],
)
def test_prose_and_contents_have_no_tables(prose: str) -> None:
    assert tables(typeset(prose or " x ")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(in millions, except per share data)", "in millions, except per share data"),
        ("$ in millions, except per share amounts", "in millions, except per share amounts"),
        ("(Amounts in thousands)", "Amounts in thousands"),
        ("(Millions)", "Millions"),
        ("Net sales", None),
    ],
)
def test_unit(text: str, expected: str | None) -> None:
    found = unit(text)
    assert (found and expected and expected in found) or found == expected


@given(st.lists(st.lists(st.integers(-99_999, 99_999), min_size=3, max_size=3), min_size=2, max_size=12))
def test_every_figure_is_found_in_its_column(figures: list[list[int]]) -> None:
    shown = [[f"({abs(n):,})" if n < 0 else f"{n:,}" for n in row] for row in figures]
    # A closing parenthesis hangs over the column's edge.
    cells = [[value if value.endswith(")") else f"{value} " for value in row] for row in shown]
    lines = [f"{'':30}" + "".join(f"{year:>14}" for year in ("2021 ", "2020 ", "2019 "))]
    lines += [f"Line item {chr(97 + i):20}" + "".join(f"{cell:>14}" for cell in row) for i, row in enumerate(cells)]
    table = only(typeset("\n".join(lines)))
    assert table.columns == ("2021", "2020", "2019")
    assert [list(row.values) for row in table.rows] == shown
