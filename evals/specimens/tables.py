"""Every table of a report: those of the notes, made here, and the financial statements."""

from collections.abc import Sequence

from evals.specimens.layout import Row, Table
from evals.specimens.reports import FILED_YEARS, Column, Report, money, percent
from evals.specimens.statement_tables import (
    MILLIONS,
    Lister,
    balance,
    cash_flows,
    equity,
    header,
    income,
    label_lines,
    title,
    width,
)


def tables(report: Report) -> dict[str, Table]:
    """Every table by name: income, balance, cash_flows and, by form and kind, those of the notes."""
    made = {
        "income": income(report),
        "balance": balance(report),
        "cash_flows": cash_flows(report),
        "segments": _segments(report),
        "results": _results(report),
        "debt": _debt(report),
        "repurchases": _repurchases(report),
    }
    if report.form == "10-K":
        made |= {"equity": equity(report), "goodwill": _goodwill(report), "leases": _leases(report)}
        made |= {"taxes": _taxes(report), "properties": _properties(report)}
    if report.company["kind"] == "bank":
        made["loans"] = _by_kind(report, "loans", "loan_kinds")
        made["deposits"] = _by_kind(report, "deposits", "deposit_kinds")
        made["allowance"] = _allowance(report)
        made["rate_shocks"] = _rate_shocks(report)
    return made


def segment_names(report: Report) -> list[str]:
    return [segment["name"] for segment in report.company["segments"]]


def _segments(report: Report) -> Table:
    make = Lister(column.flows for column in report.income)
    names, word = segment_names(report), title(report, "revenue").removeprefix("Total ")
    rows = [Row(f"{word[0].upper()}{word[1:]}:", kind="heading")]
    rows += [make.row(name, f"segment:{name}", indent=1, dollar=name == names[0]) for name in names]
    rows += [make.row(f"Total {_lower(word)}", "revenue", "total", dollar=True), Row("Segment profit:", kind="heading")]
    rows += [make.row(name, f"profit:{name}", indent=1, dollar=name == names[0]) for name in names]
    rows.append(make.row("Corporate and unallocated", "corporate", indent=1))
    label = "Income before income taxes" if report.company["kind"] == "bank" else "Operating income"
    rows.append(make.row(label, "operating_income", "total", dollar=True))
    return Table(header(report.income), tuple(rows), "", MILLIONS, width(report.income))


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _results(report: Report) -> Table:
    """Two periods, share of revenue in the later one and change in percent."""
    now, before = report.income[0], report.income[1]
    lines = [(name, f"segment:{name}") for name in segment_names(report)]
    lines.append((title(report, "revenue"), "revenue"))
    if report.company["kind"] == "bank":
        lines.append(("Net interest income", "net_interest"))
    else:
        lines += [("Gross profit", "gross_profit")] if report.company.get("gross_profit", True) else []
        lines.append(("Operating income", "operating_income"))
    lines.append((title(report, "net_income"), "net_income"))
    rows = []
    for label, key in lines:
        a, b = now.flows[key], before.flows[key]
        moved = 100 * (a - b) / b
        move = f"{moved:.1f}%" if moved >= 0 else f"({-moved:.1f})%"
        cells = (money(a), money(b), percent(a, now.flows["revenue"]), move)
        rows.append(Row(label, cells, "total" if key == "revenue" else "plain", 0, key == "revenue"))
    *upper, lower = label_lines([now.label, before.label])
    first = ((now.group, 0, 1), *(("Share of", 2, 2), ("Change", 3, 3)) * (not upper))
    second = ((*line, ("Share of", 2, 2), ("Change", 3, 3)) for line in upper)
    header_lines = (first, *second, (*lower, ("total", 2, 2), ("in percent", 3, 3)))
    return Table(header_lines, tuple(rows), "Summary of results", "(Dollars in millions)", 72.0)


def _debt(report: Report) -> Table:
    """Instruments at the two balance sheet dates; the last one named takes the rest of the total."""
    debt, place = report.company["debt"], FILED_YEARS.index(report.year) + 1
    amounts = [(values[place], values[place - 1]) for _, values in debt["instruments"]]
    if report.quarter and "debt" in report.company["quarter"]:
        amounts = [(now, before) for now, (_, before) in zip(report.company["quarter"]["debt"], amounts, strict=True)]
    totals = [lines["debt"] for _, lines in report.balances]
    amounts.append((totals[0] - sum(now for now, _ in amounts), totals[1] - sum(before for _, before in amounts)))
    labels = [*(label for label, _ in debt["instruments"]), debt["rest"]]
    rows = [
        Row(label, tuple(map(money, held)), currency=label == labels[0])
        for label, held in zip(labels, amounts, strict=True)
    ]
    rows.append(Row("Total debt", tuple(map(money, totals)), "total", 0, True))
    return Table((_dates(report),), tuple(rows), "", MILLIONS, 96.0)


def _spread(amount: int, shares: Sequence[float]) -> list[int]:
    """Whole amounts in proportion to all shares but the last, which takes the rest."""
    parts = [round(amount * share) for share in shares[:-1]]
    return [*parts, amount - sum(parts)]


def _goodwill(report: Report) -> Table:
    """Goodwill by segment over the last year; the company says which segment bought or was written down."""
    segments = report.company["segments"]
    target = report.company.get("goodwill_moves", len(segments) - 1)
    first = report.income[report.year - FILED_YEARS[0]].period.opening["goodwill"]
    held = _spread(first, [segment["goodwill"] for segment in segments])
    for column in report.income[1 : report.year - FILED_YEARS[0] + 1]:
        held[target] += sum(_goodwill_moves(column))
    rows = [Row(f"Balance at {report.balances[1][0]}", tuple(map(money, [*held, sum(held)])), currency=True)]
    for label, amount in zip(("Acquisitions", "Impairment"), _goodwill_moves(report.income[0]), strict=True):
        if amount:
            moves = [amount if number == target else 0 for number in range(len(segments))]
            rows.append(Row(label, tuple(map(money, [*moves, amount]))))
            held[target] += amount
    rows.append(Row(f"Balance at {report.balances[0][0]}", tuple(map(money, [*held, sum(held)])), "total", 0, True))
    words = [*(segment["name"] for segment in segments), "Total"]
    split = [("", word) if " " not in word else tuple(word.rsplit(" ", 1)) for word in words]
    lines = tuple(tuple((part[line], n, n) for n, part in enumerate(split)) for line in (0, 1))
    return Table(lines, tuple(rows), "", MILLIONS, 92.0)


def _goodwill_moves(column: Column) -> tuple[int, int]:
    return round(column.flows.get("acquisitions", 0) * 0.75), -column.flows.get("impairment", 0)


def _leases(report: Report) -> Table:
    liability = report.balances[0][1]["leases"]
    payments = _spread(round(liability * 1.14), (0.23, 0.2, 0.17, 0.13, 0.1, 0.17))
    first = int(report.end[-4:]) + 1
    labels = [f"{report.company['year_word'].title()}{first + number}" for number in range(5)] + ["Thereafter"]
    rows = [
        Row(label, (money(paid),), currency=label == labels[0]) for label, paid in zip(labels, payments, strict=True)
    ]
    rows.append(Row("Total lease payments", (money(sum(payments)),), "subtotal"))
    rows.append(Row("Less: imputed interest", (money(liability - sum(payments)),)))
    rows.append(Row("Present value of lease liabilities", (money(liability),), "total", 0, True))
    return Table(((("Payments", 0, 0),),), tuple(rows), "", MILLIONS, 96.0)


def _taxes(report: Report) -> Table:
    columns = report.income[:2]
    federal = [round(column.flows["pretax"] * 0.21) for column in columns]
    state = [round(column.flows["pretax"] * 0.031) for column in columns]
    other = [c.flows["tax"] - f - s for c, f, s in zip(columns, federal, state, strict=True)]
    rate = [percent(column.flows["tax"], column.flows["pretax"]) for column in columns]
    rows = (
        Row("Tax at the federal rate", tuple(map(money, federal)), currency=True),
        Row("State taxes, net of federal benefit", tuple(map(money, state))),
        Row("Credits and other", tuple(map(money, other))),
        Row("Provision for income taxes", tuple(money(c.flows["tax"]) for c in columns), "total", 0, True),
        Row("Effective tax rate", tuple(rate)),
    )
    return Table(header(columns), rows, "", MILLIONS, 80.0)


def _properties(report: Report) -> Table:
    rows = tuple(Row(place, (use, area, tenure)) for place, use, area, tenure in report.company["prose"]["properties"])
    shifted = tuple(Row(row.label, (row.cells[0], "", row.cells[2], row.cells[1])) for row in rows)
    header = ((("Use", 0, 0), ("", 1, 1), ("Tenure", 2, 2), ("Square feet", 3, 3)),)
    return Table(header, shifted, "", "", 92.0, left=3)


def _repurchases(report: Report) -> Table:
    """Shares bought in the last quarter, by month."""
    months = report.company.get("months", ["October", "November", "December"])
    if report.quarter:
        months = report.company["quarter"].get("months", ["April", "May", "June"])
    spent = report.income[0].flows["buybacks"] / (1 if report.quarter else 4)
    price = float(report.company["price"][str(report.year)])
    counts = [round(1000 * spent * share / price) for share in (0.38, 0.29, 0.33)]
    rows = [
        Row(month, (f"{count:,}" if count else "—", f"{price * (0.97 + 0.02 * number):.2f}" if count else "—"))
        for number, (month, count) in enumerate(zip(months, counts, strict=True))
    ]
    rows.append(Row("Total", (f"{sum(counts):,}" if sum(counts) else "—", ""), "total"))
    header = ((("Shares bought", 0, 0), ("Average price", 1, 1)), (("(thousands)", 0, 0), ("per share ($)", 1, 1)))
    return Table(header, tuple(rows), "", "", 96.0)


def _by_kind(report: Report, account: str, kinds: str) -> Table:
    """A bank's loans or deposits by kind; an interim balance takes the shares of its fiscal year's end."""
    parts = report.company[kinds]
    place = FILED_YEARS.index(report.year) + 1
    spread = [
        _spread(lines[account], [part["share"][place - back] for part in parts])
        for back, (_, lines) in enumerate(report.balances)
    ]
    rows = [
        Row(part["label"], tuple(money(column[number]) for column in spread), currency=number == 0)
        for number, part in enumerate(parts)
    ]
    rows.append(Row(f"Total {account}", tuple(money(sum(column)) for column in spread), "total", 0, True))
    return Table((_dates(report),), tuple(rows), "", MILLIONS, 96.0)


def _dates(report: Report) -> tuple[tuple[str, int, int], ...]:
    return tuple((date, number, number) for number, (date, _) in enumerate(report.balances))


def _allowance(report: Report) -> Table:
    columns = report.cash[:1]
    flows, opening = columns[0].flows, report.balances[1][1]["allowance"]
    rows = (
        Row("Allowance at beginning of period", (money(-opening),), currency=True),
        Row("Provision for credit losses", (money(flows["provision"]),)),
        Row("Net charge-offs", (money(-flows["charge_offs"]),)),
        Row("Allowance at end of period", (money(-report.balances[0][1]["allowance"]),), "total", 0, True),
    )
    return Table(header(columns), rows, "", MILLIONS, 110.0)


def _rate_shocks(report: Report) -> Table:
    shocks = report.company["rate_shocks"]
    place = 0 if report.year == 2023 else 1
    rows = tuple(Row(shock["label"], (shock["income"][place], shock["equity"][place])) for shock in shocks)
    header = (
        (("Change over twelve months", 0, 1),),
        (("Net interest income", 0, 0), ("Value of equity", 1, 1)),
    )
    return Table(header, rows, "", "", 120.0)
