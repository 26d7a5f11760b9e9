"""The financial statements of a report as tables, drawn from its figures alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from evals.specimens.layout import Row, RowKind, Table
from evals.specimens.reports import Column, Report, money, per_share
from evals.specimens.statements import (
    LIABILITIES,
    OPERATING,
    YEARS,
    Lines,
    total,
    total_assets,
    total_equity,
    total_liabilities,
)

UNITS = "(In millions, except per share data)"
MILLIONS = "(In millions)"
TITLES = {
    "income": "Consolidated Statements of Income",
    "balance": "Consolidated Balance Sheets",
    "cash_flows": "Consolidated Statements of Cash Flows",
    "equity": "Consolidated Statements of Shareholders' Equity",
    "revenue": "Revenue",
    "net_income": "Net income",
    "cash": "Cash and cash equivalents",
    "receivables": "Accounts receivable, net",
    "inventories": "Inventories",
    "other_current": "Prepaid expenses and other current assets",
    "ppe": "Property, plant and equipment, net",
    "goodwill": "Goodwill",
    "intangibles": "Intangible assets, net",
    "leased": "Operating lease right-of-use assets",
    "other_assets": "Other assets",
    "payables": "Accounts payable",
    "accrued": "Accrued liabilities",
    "deferred_revenue": "Deferred revenue",
    "leases": "Operating lease liabilities",
    "other_liabilities": "Other liabilities",
    "debt": "Borrowings",
}


def title(report: Report, name: str) -> str:
    label: str = report.company["titles"].get(name, TITLES.get(name, ""))
    return f"Condensed {label}" if report.quarter and name in ("income", "balance", "cash_flows") else label


def header(columns: Sequence[Column]) -> tuple[tuple[tuple[str, int, int], ...], ...]:
    """Group line and label line; neighbours of one group share a merged cell."""
    groups: list[tuple[str, int, int]] = []
    for number, column in enumerate(columns):
        if groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1], number)
        else:
            groups.append((column.group, number, number))
    return tuple(groups), *label_lines([column.label for column in columns])


def label_lines(labels: Sequence[str]) -> tuple[tuple[tuple[str, int, int], ...], ...]:
    """One header line, or two where a label such as `September 30, 2024` is too long for a column."""
    if max(map(len, labels)) <= 14:
        return (tuple((label, number, number) for number, label in enumerate(labels)),)
    parts = [label.rsplit(" ", 1) for label in labels]
    return tuple(tuple((part[line], number, number) for number, part in enumerate(parts)) for line in (0, 1))


def width(columns: Sequence[object]) -> float:
    return 72.0 if len(columns) > 3 else 80.0


class Lister:
    """Makes rows over a fixed set of line dictionaries."""

    def __init__(self, columns: Iterable[Lines]) -> None:
        self.columns = list(columns)

    def row(
        self, label: str, key: str, kind: RowKind = "plain", *, sign: int = 1, indent: int = 0, dollar: bool = False
    ) -> Row:
        cells = tuple(money(sign * lines.get(key, 0)) for lines in self.columns)
        return Row(label, cells, kind, indent, dollar)

    def sum(
        self, label: str, amount: Callable[[Lines], int], kind: RowKind = "subtotal", *, dollar: bool = False
    ) -> Row:
        return Row(label, tuple(money(amount(lines)) for lines in self.columns), kind, 0, dollar)

    def present(self, entries: Iterable[tuple[str, str, int]]) -> list[Row]:
        """A line for each (label, flow, sign) that is not zero in every column."""
        return [self.row(label, key, sign=sign, indent=1) for label, key, sign in entries if self.any(key)]

    def any(self, key: str) -> bool:
        return any(lines.get(key, 0) for lines in self.columns)


def income(report: Report) -> Table:
    make = Lister(column.flows for column in report.income)
    body = _bank_income(report, make) if report.company["kind"] == "bank" else _commercial_income(report, make)
    shares = [column.shares for column in report.income]
    eps = tuple(per_share(column.flows["net_income"], column.shares) for column in report.income)
    basic = tuple(per_share(column.flows["net_income"], column.shares * 0.99) for column in report.income)
    rows = [
        *body,
        make.row("Income before income taxes", "pretax", "subtotal"),
        make.row("Provision for income taxes", "tax"),
        make.row(title(report, "net_income"), "net_income", "total", dollar=True),
        Row("Earnings per share:", kind="heading"),
        Row("Basic", basic, indent=1, currency=True),
        Row("Diluted", eps, indent=1, currency=True),
        Row("Weighted-average shares outstanding:", kind="heading"),
        Row("Basic", tuple(f"{value * 0.99:.1f}" for value in shares), indent=1),
        Row("Diluted", tuple(f"{value:.1f}" for value in shares), indent=1),
    ]
    units = UNITS if report.form == "10-K" else "(In millions, except per share data; unaudited)"
    return Table(header(report.income), tuple(rows), title(report, "income"), units, width(report.income))


def _commercial_income(report: Report, make: Lister) -> list[Row]:
    expenses = report.company["expenses"]
    gross = report.company.get("gross_profit", True)
    rows = [make.row(title(report, "revenue"), "revenue", dollar=True)]
    if not gross:
        rows.append(Row("Operating expenses:", kind="heading"))
    for number, expense in enumerate(expenses):
        if number == 0 or make.any(expense["key"]):
            rows.append(make.row(expense["label"], expense["key"], indent=int(number > 0 or not gross)))
        if number == 0 and gross:
            rows += [make.row("Gross profit", "gross_profit", "subtotal"), Row("Operating expenses:", kind="heading")]
    if not gross:
        rows.append(make.row("Total operating expenses", "expenses", "subtotal"))
    rows.append(make.row("Operating income", "operating_income", "subtotal"))
    rows.append(make.row("Interest expense", "interest", sign=-1))
    if make.any("other_income"):
        rows.append(make.row("Other income (expense), net", "other_income"))
    return rows


def _bank_income(report: Report, make: Lister) -> list[Row]:
    rows = [
        Row("Interest income:", kind="heading"),
        make.row("Loans, including fees", "loan_interest", indent=1, dollar=True),
        make.row("Securities", "securities_interest", indent=1),
        make.row("Total interest income", "interest_income", "subtotal"),
        Row("Interest expense:", kind="heading"),
        make.row("Deposits", "deposit_interest", indent=1),
        make.row("Borrowings", "interest", indent=1),
        make.row("Total interest expense", "interest_expense", "subtotal"),
        make.row("Net interest income", "net_interest", "subtotal"),
        make.row("Provision for credit losses", "provision"),
        Row("Noninterest income:", kind="heading"),
        *(make.row(fee["label"], fee["key"], indent=1) for fee in report.company["fees"]),
        make.row("Total noninterest income", "fees", "subtotal"),
        Row("Noninterest expense:", kind="heading"),
        *(make.row(expense["label"], expense["key"], indent=1) for expense in report.company["expenses"]),
        make.row("Total noninterest expense", "expenses", "subtotal"),
    ]
    return rows


def balance(report: Report) -> Table:
    balances = [dict(lines) for _, lines in report.balances]
    rows = (
        _bank_balance(report, balances) if report.company["kind"] == "bank" else _commercial_balance(report, balances)
    )
    dates = tuple((date, number, number) for number, (date, _) in enumerate(report.balances))
    units = MILLIONS if report.form == "10-K" else "(In millions; December figures audited)"
    units = "(In millions; current period unaudited)" if report.quarter else units
    return Table((dates,), tuple(rows), title(report, "balance"), units, 96.0)


def _commercial_balance(report: Report, balances: list[Lines]) -> list[Row]:
    for lines, current in zip(balances, _current_debt(report), strict=True):
        lines |= {"current_debt": current, "long_debt": lines["debt"] - current}
    make = Lister(balances)
    current_assets = ("cash", "receivables", "inventories", "other_current")
    current_liabilities = ("current_debt", "payables", "accrued", "deferred_revenue")

    def row(key: str, *, dollar: bool = False) -> list[Row]:
        return [make.row(title(report, key), key, indent=1, dollar=dollar)] if make.any(key) else []

    rows = [Row("Assets", kind="heading"), *row("cash", dollar=True)]
    for key in current_assets[1:]:
        rows += row(key)
    rows.append(make.sum("Total current assets", lambda lines: total(lines, current_assets)))
    for key in ("ppe", "leased", "goodwill", "intangibles", "other_assets"):
        rows += row(key)
    rows.append(make.sum("Total assets", lambda lines: total_assets(lines, "commercial"), "total", dollar=True))
    rows.append(Row("Liabilities and shareholders' equity", kind="heading"))
    if make.any("current_debt"):
        rows.append(make.row("Current portion of long-term debt", "current_debt", indent=1, dollar=True))
    for key in current_liabilities[1:]:
        rows += row(key)
    rows.append(make.sum("Total current liabilities", lambda lines: total(lines, current_liabilities)))
    rows.append(make.row("Long-term debt, less current portion", "long_debt", indent=1))
    for key in ("leases", "other_liabilities"):
        rows += row(key)
    rows.append(make.sum("Total liabilities", lambda lines: total_liabilities(lines, "commercial")))
    return [*rows, *_equity_rows(report, make, "commercial")]


def _current_debt(report: Report) -> list[int]:
    due = report.company["model"].get("current_debt", [0] * 5)
    index = YEARS.index(report.year) + 1
    if report.quarter:
        return [report.company["quarter"].get("current_debt", due[index - 1]), due[index - 1]]
    return [due[index], due[index - 1]]


def _equity_rows(report: Report, make: Lister, kind: str) -> list[Row]:
    return [
        Row("Shareholders' equity", kind="heading"),
        make.row("Common stock and additional paid-in capital", "paid_in", indent=1),
        make.row("Retained earnings" if not _deficit(report) else "Accumulated deficit", "retained", indent=1),
        make.row("Treasury stock, at cost", "treasury", indent=1),
        make.sum("Total shareholders' equity", total_equity),
        make.sum(
            "Total liabilities and shareholders' equity",
            lambda lines: total_liabilities(lines, kind) + total_equity(lines),
            "total",
            dollar=True,
        ),
    ]


def _deficit(report: Report) -> bool:
    return report.balances[0][1]["retained"] < 0


def _bank_balance(report: Report, balances: list[Lines]) -> list[Row]:
    for lines in balances:
        lines["net_loans"] = lines["loans"] + lines["allowance"]
    make = Lister(balances)
    return [
        Row("Assets", kind="heading"),
        make.row("Cash and balances with the Federal Reserve", "cash", indent=1, dollar=True),
        make.row("Securities", "securities", indent=1),
        make.row("Loans", "loans", indent=1),
        make.row("Allowance for credit losses", "allowance", indent=1),
        make.row("Net loans", "net_loans", "subtotal"),
        make.row("Premises and equipment, net", "ppe", indent=1),
        make.row("Operating lease right-of-use assets", "leased", indent=1),
        make.row("Goodwill", "goodwill", indent=1),
        make.row("Other assets", "other_assets", indent=1),
        make.sum("Total assets", lambda lines: total_assets(lines, "bank"), "total", dollar=True),
        Row("Liabilities and shareholders' equity", kind="heading"),
        make.row("Deposits", "deposits", indent=1, dollar=True),
        make.row("Borrowings", "debt", indent=1),
        make.row("Operating lease liabilities", "leases", indent=1),
        make.row("Other liabilities", "other_liabilities", indent=1),
        make.sum("Total liabilities", lambda lines: total_liabilities(lines, "bank")),
        *_equity_rows(report, make, "bank"),
    ]


ADJUSTMENTS = (
    ("Depreciation", "depreciation", 1),
    ("Amortization of intangible assets", "amortization", 1),
    ("Impairment of goodwill", "impairment", 1),
    ("Provision for credit losses", "provision", 1),
    ("Share-based compensation", "share_based", 1),
)
"""Lines of the cash flow statement: label, flow, and the sign with which the flow enters."""
INVESTING = (
    ("Purchases of property, plant and equipment", "capex", -1),
    ("Acquisitions, net of cash acquired", "acquisitions", -1),
    ("Securities, net of maturities", "change:securities", -1),
    ("Loans made, net of repayments", "lent", -1),
)
FINANCING = (
    ("Net change in deposits", "change:deposits", 1),
    ("Proceeds from borrowings", "borrowed", 1),
    ("Repayment of borrowings", "repaid", -1),
    ("Dividends paid", "dividends", -1),
    ("Repurchases of common stock", "buybacks", -1),
)


def cash_flows(report: Report) -> Table:
    make = Lister(column.flows for column in report.cash)
    changes = [
        (title(report, name), f"change:{name}", 1 if name in LIABILITIES["commercial"] else -1) for name in OPERATING
    ]
    moved = make.present(changes)
    rows = [
        Row("Operating activities", kind="heading"),
        make.row(title(report, "net_income"), "net_income", indent=1, dollar=True),
        *make.present(ADJUSTMENTS),
        *([Row("Changes in operating assets and liabilities:", indent=1)] if moved else []),
        *moved,
        make.row(_used("operating", make), "cash_operating", "subtotal"),
        Row("Investing activities", kind="heading"),
        *make.present(INVESTING),
        make.row(_used("investing", make), "cash_investing", "subtotal"),
        Row("Financing activities", kind="heading"),
        *make.present(FINANCING),
        make.row(_used("financing", make), "cash_financing", "subtotal"),
        make.row("Net increase (decrease) in cash", "cash_change", "subtotal"),
        *_cash_ends(report),
    ]
    units = MILLIONS if report.form == "10-K" else "(In millions; unaudited)"
    return Table(header(report.cash), tuple(rows), title(report, "cash_flows"), units, width(report.cash))


def _used(activity: str, make: Lister) -> str:
    """The label of a subtotal, which depends on the signs of its figures."""
    amounts = [lines[f"cash_{activity}"] for lines in make.columns]
    if all(amount > 0 for amount in amounts):
        return f"Net cash provided by {activity} activities"
    if all(amount < 0 for amount in amounts):
        return f"Net cash used in {activity} activities"
    return f"Net cash provided by (used in) {activity} activities"


def _cash_ends(report: Report) -> list[Row]:
    opening = tuple(money(column.period.opening["cash"]) for column in report.cash)
    closing = tuple(money(column.period.closing["cash"]) for column in report.cash)
    return [Row("Cash at beginning of period", opening), Row("Cash at end of period", closing, "total", 0, True)]


def equity(report: Report) -> Table:
    balances = [lines for _, lines in report.balances]
    opening = {**balances[1]}
    flows = report.income[0].flows
    keys = ("paid_in", "retained", "treasury")

    def row(label: str, amounts: Mapping[str, int], kind: RowKind = "plain") -> Row:
        cells = [amounts.get(key, 0) for key in keys]
        return Row(label, tuple(money(cell) for cell in [*cells, sum(cells)]), kind, 0, kind != "plain")

    rows = (
        row(f"Balance at {report.balances[1][0]}", opening, "subtotal"),
        row("Net income", {"retained": flows["net_income"]}),
        row("Dividends declared", {"retained": -flows["dividends"]}),
        row("Share-based compensation", {"paid_in": flows["share_based"]}),
        row("Repurchases of common stock", {"treasury": -flows["buybacks"]}),
        row(f"Balance at {report.balances[0][0]}", balances[0], "total"),
    )
    header = (
        (("Paid-in", 0, 0), ("Retained", 1, 1), ("Treasury", 2, 2), ("Total", 3, 3)),
        (("capital", 0, 0), ("earnings", 1, 1), ("stock", 2, 2), ("equity", 3, 3)),
    )
    return Table(header, rows, title(report, "equity"), MILLIONS, 74.0)
