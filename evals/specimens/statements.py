"""The arithmetic of an invented company: flows of a period move an opening balance sheet to a closing one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

YEARS = (2021, 2022, 2023, 2024)
Lines: TypeAlias = dict[str, int]
"""Amounts in millions by line name; `segment:<name>` and `profit:<name>` are a segment's revenue and profit."""

ASSETS = {
    "commercial": ("cash", "receivables", "inventories", "other_current", "ppe", "goodwill", "intangibles", "leased",
                   "other_assets"),
    "bank": ("cash", "securities", "loans", "allowance", "ppe", "goodwill", "leased", "other_assets"),
}  # fmt: skip
LIABILITIES = {
    "commercial": ("payables", "accrued", "deferred_revenue", "debt", "leases", "other_liabilities"),
    "bank": ("deposits", "debt", "leases", "other_liabilities"),
}
EQUITY = ("paid_in", "retained", "treasury")
OPERATING = ("receivables", "inventories", "other_current", "payables", "accrued", "deferred_revenue")


@dataclass(frozen=True, slots=True)
class Period:
    """Flows of a year or of a part of one, between two balance sheets."""

    flows: Lines
    opening: Lines
    closing: Lines


def total(lines: Mapping[str, int], names: Sequence[str]) -> int:
    return sum(lines.get(name, 0) for name in names)


def total_assets(balance: Mapping[str, int], kind: str) -> int:
    return total(balance, ASSETS[kind])


def total_liabilities(balance: Mapping[str, int], kind: str) -> int:
    return total(balance, LIABILITIES[kind])


def total_equity(balance: Mapping[str, int]) -> int:
    return total(balance, EQUITY)


def yearly_periods(company: Mapping[str, Any]) -> dict[int, Period]:
    """The four years of a company's `model` table, each opening where the last closed."""
    annual = _bank_flows if company["kind"] == "bank" else _commercial_flows
    opening = _opening(company)
    periods = {}
    for index, year in enumerate(YEARS):
        flows = complete(annual(company, index, opening), company)
        closing = close(opening, flows)
        periods[year] = Period(flows, opening, closing)
        opening = closing
    return periods


def part_of(period: Period, fraction: float, company: Mapping[str, Any], fixed: Mapping[str, int]) -> Period:
    """The first part of a year: every flow in proportion but those `fixed`, totals struck anew."""
    base = {name: round(amount * fraction) for name, amount in period.flows.items()}
    flows = complete({**base, **fixed}, company)
    return Period(flows, period.opening, close(period.opening, flows))


def _opening(company: Mapping[str, Any]) -> Lines:
    """The balance sheet before the first year; retained earnings make it balance."""
    kind, model = company["kind"], company["model"]
    balance = dict(model["opening"])
    if kind == "commercial":
        first = sum(segment["revenue"][0] for segment in company["segments"])
        balance |= _working_capital(model, round(first * 0.94))
    else:
        balance |= {name: model[name][0] for name in ("securities", "loans", "deposits")}
    balance["retained"] = 0
    balance["retained"] = total_assets(balance, kind) - total_liabilities(balance, kind) - total_equity(balance)
    return balance


def _working_capital(model: Mapping[str, Any], revenue: int) -> Lines:
    return {name: round(revenue * share) for name, share in model["working_capital"].items()}


def _commercial_flows(company: Mapping[str, Any], index: int, opening: Lines) -> Lines:
    model = company["model"]
    flows = {f"segment:{segment['name']}": segment["revenue"][index] for segment in company["segments"]}
    revenue = sum(flows.values())
    flows |= {name: model[name][index] for name in SCHEDULED if name in model}
    for expense in company["expenses"]:
        if "share" in expense:
            flows[expense["key"]] = round(revenue * expense["share"][index])
    flows["interest"] = round(opening["debt"] * model["debt_rate"][index])
    for segment in company["segments"]:
        flows[f"profit:{segment['name']}"] = round(segment["revenue"][index] * segment["margin"][index])
    targets = _working_capital(model, revenue)
    return flows | {f"change:{name}": targets[name] - opening[name] for name in targets}


SCHEDULED = (
    "depreciation", "amortization", "impairment", "restructuring", "share_based", "other_income", "capex",
    "acquisitions", "borrowed", "repaid", "dividends", "buybacks", "provision", "charge_offs",
)  # fmt: skip


def _bank_flows(company: Mapping[str, Any], index: int, opening: Lines) -> Lines:
    model = company["model"]
    flows = {name: model[name][index] for name in SCHEDULED if name in model}
    flows["change:securities"] = model["securities"][index + 1] - opening["securities"]
    flows["change:loans"] = model["loans"][index + 1] - opening["loans"]
    flows["change:deposits"] = model["deposits"][index + 1] - opening["deposits"]
    for line, account in (
        ("loan_interest", "loans"),
        ("securities_interest", "securities"),
        ("deposit_interest", "deposits"),
    ):
        average = opening[account] + flows[f"change:{account}"] / 2
        flows[line] = round(average * model[line][index])
    flows["interest"] = round(opening["debt"] * model["debt_rate"][index])
    for line in (*company["fees"], *company["expenses"]):
        flows[line["key"]] = line["amount"][index]
    revenue = _bank_revenue(flows, company)
    rest = revenue
    for segment in company["segments"][:-1]:
        flows[f"segment:{segment['name']}"] = round(revenue * segment["share"][index])
        rest -= flows[f"segment:{segment['name']}"]
    flows[f"segment:{company['segments'][-1]['name']}"] = rest
    for segment in company["segments"]:
        flows[f"profit:{segment['name']}"] = round(flows[f"segment:{segment['name']}"] * segment["margin"][index])
    return flows


def _bank_revenue(flows: Mapping[str, int], company: Mapping[str, Any]) -> int:
    interest = flows["loan_interest"] + flows["securities_interest"] - flows["deposit_interest"] - flows["interest"]
    return interest + sum(flows[fee["key"]] for fee in company["fees"])


def complete(base: Lines, company: Mapping[str, Any]) -> Lines:
    """The flows with every total of the income and cash flow statements struck."""
    flows = dict(base)
    names = [f"segment:{segment['name']}" for segment in company["segments"]]
    if company["kind"] == "bank":
        flows["interest_income"] = flows["loan_interest"] + flows["securities_interest"]
        flows["interest_expense"] = flows["deposit_interest"] + flows["interest"]
        flows["net_interest"] = flows["interest_income"] - flows["interest_expense"]
        flows["fees"] = sum(flows[fee["key"]] for fee in company["fees"])
        flows["revenue"] = flows["net_interest"] + flows["fees"]
        flows[names[-1]] = flows["revenue"] - total(flows, names[:-1])
        flows["expenses"] = total(flows, [expense["key"] for expense in company["expenses"]])
        flows["pretax"] = flows["revenue"] - flows["provision"] - flows["expenses"]
        flows["operating_income"] = flows["pretax"]
    else:
        flows["revenue"] = total(flows, names)
        flows["depreciation_amortization"] = flows["depreciation"] + flows["amortization"]
        keys = [expense["key"] for expense in company["expenses"]]
        flows["cost"] = flows[keys[0]]
        flows["gross_profit"] = flows["revenue"] - flows["cost"]
        flows["expenses"] = total(flows, keys)
        flows["operating_income"] = flows["revenue"] - flows["expenses"]
        flows["pretax"] = flows["operating_income"] - flows["interest"] + flows["other_income"]
    flows["tax"] = round(flows["pretax"] * company["model"]["tax_rate"])
    flows["net_income"] = flows["pretax"] - flows["tax"]
    profits = total(flows, [f"profit:{segment['name']}" for segment in company["segments"]])
    flows["corporate"] = flows["operating_income"] - profits
    return flows | _cash_flows(flows, company["kind"])


def _cash_flows(flows: Lines, kind: str) -> Lines:
    added = ("net_income", "depreciation", "amortization", "impairment", "share_based", "provision")
    operating = total(flows, added)
    for name in OPERATING:
        change = flows.get(f"change:{name}", 0)
        operating += change if name in LIABILITIES["commercial"] else -change
    investing = -total(flows, ("capex", "acquisitions"))
    financing = total(flows, ("borrowed",)) - total(flows, ("repaid", "dividends", "buybacks"))
    if kind == "bank":
        # Charge-offs leave loans and allowance together, so cash lent is the change in loans before them.
        lent = flows["change:loans"] + flows["charge_offs"]
        investing -= flows["change:securities"] + lent
        financing += flows["change:deposits"]
        return {"lent": lent, **_cash_totals(operating, investing, financing)}
    return _cash_totals(operating, investing, financing)


def _cash_totals(operating: int, investing: int, financing: int) -> Lines:
    return {
        "cash_operating": operating,
        "cash_investing": investing,
        "cash_financing": financing,
        "cash_change": operating + investing + financing,
    }


def close(opening: Lines, flows: Lines) -> Lines:
    """The closing balance sheet; three quarters of what an acquisition cost is goodwill, the rest intangibles."""
    closing = dict(opening)
    for name in (*OPERATING, "securities", "loans", "deposits"):
        if f"change:{name}" in flows:
            closing[name] += flows[f"change:{name}"]
    goodwill = round(flows.get("acquisitions", 0) * 0.75)
    closing["cash"] += flows["cash_change"]
    closing["ppe"] += flows["capex"] - flows["depreciation"]
    closing["goodwill"] += goodwill - flows.get("impairment", 0)
    if "intangibles" in closing:
        closing["intangibles"] += flows.get("acquisitions", 0) - goodwill - flows["amortization"]
    if "allowance" in closing:
        closing["allowance"] -= flows["provision"] - flows["charge_offs"]
    closing["debt"] += flows["borrowed"] - flows["repaid"]
    closing["paid_in"] += flows["share_based"]
    closing["retained"] += flows["net_income"] - flows["dividends"]
    closing["treasury"] -= flows["buybacks"]
    return closing
