"""The invented companies of `world/*.toml` and the reports they file, with every figure a text may cite."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from evals.specimens.layout import Look
from evals.specimens.statements import YEARS, Lines, Period, part_of, total_assets, total_equity, yearly_periods

HERE = Path(__file__).parent
FILED_YEARS = (2023, 2024)
ORDINALS = ("first", "second", "third")
MONTHS = ("three", "six", "nine")
Company: TypeAlias = Mapping[str, Any]
"""One file of `world/`: names, model of the figures, segments, prose, risks, and the quarter of its 10-Q if any."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an income or cash flow statement."""

    group: str
    """Upper header line, such as `Three months ended`."""
    label: str
    period: Period
    shares: float
    """Diluted shares, millions."""

    @property
    def flows(self) -> Lines:
        return self.period.flows


@dataclass(frozen=True, slots=True)
class Report:
    """One filing to be written."""

    company: Company
    form: str
    year: int
    """Fiscal year, as the company counts."""
    quarter: int
    """1 to 3 for a 10-Q, 0 for a 10-K."""
    end: str
    """Last day of the period, as printed."""
    filed: str
    income: tuple[Column, ...]
    cash: tuple[Column, ...]
    balances: tuple[tuple[str, Lines], ...]
    """(date, balance sheet), latest first."""
    facts: Mapping[str, str]
    """Words and figures for format strings."""
    cash_facts: Mapping[str, str]
    """The same for the period of the cash flow statement, year to date in a 10-Q."""

    @property
    def stem(self) -> str:
        """Name of the PDF without its suffix."""
        period = f"{self.year}Q{self.quarter}" if self.quarter else str(self.year)
        return f"{self.company['slug']}_{period}_{self.form.replace('-', '')}"

    @property
    def look(self) -> Look:
        return Look(**self.company["look"])

    @property
    def title(self) -> str:
        return f"{self.company['name']} Form {self.form}, {self.facts['period']} (specimen)"


def companies() -> list[Company]:
    """Every company, by file name."""
    return [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted((HERE / "world").glob("*.toml"))]


def reports(company: Company) -> list[Report]:
    """The company's filings, oldest first."""
    periods = yearly_periods(company)
    filed = [_annual(company, periods, year) for year in FILED_YEARS]
    return [*filed, _interim(company, periods)] if "quarter" in company else filed


def money(amount: int) -> str:
    """1234 -> 1,234; -5 -> (5); 0 -> a dash, as statements print."""
    if amount == 0:
        return "—"
    return f"({-amount:,})" if amount < 0 else f"{amount:,}"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%"


def change(now: float, before: float) -> str:
    """Change in percent of the earlier amount, one decimal, without a sign."""
    return f"{100 * abs(now - before) / before:.1f}%"


def per_share(amount: int, shares: float) -> str:
    return f"{amount / shares:.2f}"


def verb(now: float, before: float) -> str:
    return "was unchanged" if now == before else "increased" if now > before else "decreased"


def _annual(company: Company, periods: Mapping[int, Period], year: int) -> Report:
    ends, calendar = company["ends"], all(end.startswith("December 31") for end in company["ends"])
    group = "Years ended December 31," if calendar else "Fiscal years ended"
    columns = tuple(
        Column(
            group,
            end_of.split(", ")[1] if calendar else end_of,
            periods[past],
            company["shares"][YEARS.index(past)],
        )
        for past in (year, year - 1, year - 2)
        for end_of in [ends[YEARS.index(past) + 1]]
    )
    balances = tuple((ends[YEARS.index(past) + 1], periods[past].closing) for past in (year, year - 1))
    words = {"period": f"{company['year_word']}{year}", "prior": f"{company['year_word']}{year - 1}"}
    facts = _facts(company, year, words, (periods[year], periods[year - 1]), columns)
    end, filed = balances[0][0], company["filed"][str(year)]
    facts |= {"end": end, "filed_year": filed[-4:]}
    return Report(company, "10-K", year, 0, end, filed, columns, columns, balances, facts, facts)


def _interim(company: Company, periods: Mapping[int, Period]) -> Report:
    quarter, year = company["quarter"], FILED_YEARS[-1]
    number: int = quarter["number"]
    ends = {year: quarter["current_end"], year - 1: quarter["prior_end"]}
    weights = {year: quarter["current"], year - 1: quarter["prior"]}
    shares = {past: company["shares"][YEARS.index(past)] for past in ends}
    fixed = {year: quarter.get("fixed", {}), year - 1: {}}
    last = {past: part_of(periods[past], weights[past][-1], company, fixed[past]) for past in ends}
    to_date = {past: part_of(periods[past], sum(weights[past]), company, fixed[past]) for past in ends}

    def columns(group: str, parts: Mapping[int, Period]) -> tuple[Column, ...]:
        return tuple(Column(group, ends[past], parts[past], shares[past]) for past in ends)

    three, since = columns("Three months ended", last), columns(f"{MONTHS[number - 1].title()} months ended", to_date)
    opening_date = company["ends"][YEARS.index(year)]
    balances = ((quarter["current_end"], to_date[year].closing), (opening_date, periods[year].opening))
    word = company["year_word"]
    names = [f"the {ORDINALS[number - 1]} quarter of {word}{past}" for past in ends]
    words = {"period": names[0], "prior": names[1]}
    facts = _facts(company, year, words, (last[year], last[year - 1]), three)
    spans = [f"the first {MONTHS[number - 1]} months of {word}{past}" for past in ends]
    words = {"period": spans[0], "prior": spans[1]} if number > 1 else words
    cash_facts = _facts(company, year, words, (to_date[year], to_date[year - 1]), since)
    facts |= {
        "statements": "Part I, Item 1",
        "end": quarter["current_end"],
        "filed_year": quarter["filed"][-4:],
        "prior_year": str(year - 1),
    }
    income = three if number == 1 else three + since
    end, filed = quarter["current_end"], quarter["filed"]
    return Report(company, "10-Q", year, number, end, filed, income, since, balances, facts, cash_facts)


def _facts(
    company: Company, year: int, words: Mapping[str, str], periods: tuple[Period, Period], columns: tuple[Column, ...]
) -> dict[str, str]:
    now, before = periods
    facts = {
        **words,
        "fy": words["period"],
        "year": str(year),
        "statements": "Item 8",
        "name": company["name"],
        "short": company["short"],
    }
    facts |= {name: company[name] for name in ("auditor", "ticker", "exchange")}
    facts |= {"holders": f"{1100 + 37 * (len(company['name']) + year % 7):,}"}
    for key, amount in (now.flows | now.closing).items():
        earlier = (before.flows | before.closing)[key]
        facts |= {key: f"{abs(amount):,}", f"{key}_prior": f"{abs(earlier):,}", f"{key}_verb": verb(amount, earlier)}
        facts |= {f"{key}_change": f"{abs(amount - earlier):,}"}
        facts[f"{key}_pct"] = change(amount, earlier) if earlier else "n/m"
    for name, flows in (("", now.flows), ("_prior", before.flows)):
        revenue = flows["revenue"]
        facts[f"operating_margin{name}"] = percent(flows["operating_income"], revenue)
        if company["kind"] == "bank":
            facts[f"efficiency{name}"] = percent(flows["expenses"], revenue)
        else:
            facts[f"gross_margin{name}"] = percent(flows["gross_profit"], revenue)
            facts[f"cost_share{name}"] = percent(flows["cost"], revenue)
    facts |= {
        "eps": per_share(columns[0].flows["net_income"], columns[0].shares),
        "eps_prior": per_share(columns[1].flows["net_income"], columns[1].shares),
        "total_assets": f"{total_assets(now.closing, company['kind']):,}",
        "total_equity": f"{total_equity(now.closing):,}",
    }
    for key, (earlier, latest) in company.get("facts", {}).items():
        facts |= {key: latest if year == FILED_YEARS[1] else earlier, f"{key}_prior": earlier}
    return facts
