"""Ratios, margins and growth that questions ask for: the formula of each, over lines of the financial statements.

A formula is written over lines in brackets: `365 * avg[payables] / [cogs]`. `avg` is the mean of a line at the ends of
this year and the one before, `change` this year less the one before, `prior` the year before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.question.lines import LINES, named_lines
from app.question.periods import Period, named_periods

_RATIOS: tuple[tuple[str, str, str, bool], ...] = (
    ("Fixed asset turnover", r"fixed asset turnover|(?:ppe|pp&e) turnover", "[revenue] / avg[ppe]", False),
    ("Asset turnover", r"asset turnover", "[revenue] / avg[total assets]", False),
    ("Inventory turnover", r"inventory turnover", "[cogs] / avg[inventory]", False),
    ("Receivables turnover", r"receivables? turnover", "[revenue] / avg[receivables]", False),
    ("Days payable outstanding", r"days payables? outstanding|\bDPO\b", "365 * avg[payables] / [cogs]", False),
    ("Days inventory outstanding", r"days inventory outstanding|\bDIO\b", "365 * avg[inventory] / [cogs]", False),
    ("Days sales outstanding", r"days sales outstanding|\bDSO\b", "365 * avg[receivables] / [revenue]", False),
    ("Current ratio", r"current ratio", "[current assets] / [current liabilities]", False),
    ("Quick ratio", r"quick ratio", "([current assets] - [inventory]) / [current liabilities]", False),
    ("Working capital ratio", r"working capital ratio", "[current assets] / [current liabilities]", False),
    ("Working capital", r"(?:net )?working capital", "[current assets] - [current liabilities]", False),
    ("EBITDA less capex", r"ebitda (?:less|minus) cap\w*",
     "[operating income] + [depreciation and amortization] - [capex]", False),
    ("EBITDA margin", r"ebitda (?:%\s*)?margin",
     "([operating income] + [depreciation and amortization]) / [revenue]", True),
    ("EBITDA", r"\bebitda\b", "[operating income] + [depreciation and amortization]", False),
    ("Gross margin", r"gross (?:profit )?margin (?:%|percent|ratio)|gross margins?\b(?=.*(?:%|percent))",
     "([revenue] - [cogs]) / [revenue]", True),
    ("Operating margin", r"operating (?:income |profit )?(?:%\s*)?margin", "[operating income] / [revenue]", True),
    ("Net profit margin", r"net (?:profit|income) margin|net margin", "[net income] / [revenue]", True),
    ("Return on assets", r"return on (?:total )?assets|\bROA\b", "[net income] / avg[total assets]", False),
    ("Return on equity", r"return on (?:shareholders['’]? )?equity|\bROE\b", "[net income] / avg[equity]", False),
    ("Capex to revenue",
     r"cap(?:ital )?(?:ex|expenditures?) (?:as a (?:%|percent\w*) of|to) (?:total |net )*(?:revenue|sales)",
     "[capex] / [revenue]", True),
    ("Net debt", r"net debt", "[current debt] + [debt] - [cash]", False),
    ("Free cash flow", r"free cash flow", "[operating cash flow] - [capex]", False),
    ("Dividend payout ratio", r"(?:dividend )?payout ratio", "[dividends] / [net income]", False),
    ("Retention ratio", r"retention ratio", "1 - [dividends] / [net income]", False),
    ("Effective tax rate", r"effective tax rate(?=.*\b(?:calculat|comput|round))",
     "[income tax] / [pretax income]", True),
    ("Interest coverage", r"interest coverage", "[operating income] / [interest expense]", False),
    ("Debt to equity", r"debt[- ]to[- ]equity", "[debt] / [equity]", False),
    ("Operating cash flow ratio", r"(?:operating )?cash flow ratio",
     "[operating cash flow] / [current liabilities]", False),
)  # fmt: skip
_IF = re.compile(r"\bif\b[^.?!]*", re.IGNORECASE)
"""What to do in another case, such as where the ratio is no useful metric."""
_DEFINED = re.compile(r"\b(?:is|are) defined as:?\s*(?P<formula>.+?)(?:\.\s|\.?$)", re.IGNORECASE | re.DOTALL)
_PARTS = re.compile(r"\s*([+*/()×÷]|(?<=[\s)])[-−–](?=[\s(]))\s*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CHANGES: tuple[tuple[str, str, str, bool], ...] = (
    ("Compound annual growth of {}", r"\bCAGR\b|\bcompound(?:ed)? annual growth",
     "([LINE] / prior[LINE]) ** (1 / {years}) - 1", True),
    ("Multiple of {}", r"\bhow many times (?:larger|higher|greater|bigger|more|as)\b", "[LINE] / prior[LINE]", False),
    ("Change in {}",
     r"\b(?:year[- ]over[- ]year|yoy|growth(?: rate)?|(?:percent(?:age)?|%) (?:change|increase|decrease|growth)"
     r"|(?:what percent(?:age)?|how many percent)\b.*\b(?:change|grow|increase|decrease|rise|fall|decline)\w*"
     r"|(?:chang|increas|decreas|gr[eo]w|ris[ei]|rose|f[ae]ll|declin)\w*\b.*"
     r"\b(?:in|as an?) (?:percent(?:age)?|%)(?! of))",
     "change[LINE] / prior[LINE]", True),
    ("Change in {}",
     r"^(?=.*\b(?:by how much|how much (?:more|less|higher|lower|did)"
     r"|what was the (?:change|increase|decrease|difference)))"
     r"(?=.*\b(?:chang|differ|grow|grew|increas|decreas|rise|rose|fall|fell|declin|more|less|higher|lower))",
     "change[LINE]", False),
    ("Change in {}",
     r"^(?:has|have|had|did|does|is|was|were)\b.*\b(?:increas|decreas|grow|grew|grown|declin|ris[ei]|rose|fall|fell|chang|reduc)"
     r"\w*", "change[LINE]", False),
)  # fmt: skip
"""Name, pattern of the question, expression over a line, whether a percentage. `prior` is the year compared with."""
_SHARE = re.compile(
    r"\b(?:percent(?:age)?|%|share|proportion|fraction) of (?:the |its |their |total |net )*", re.IGNORECASE
)
_RATIO = re.compile(r"\bratio\b", re.IGNORECASE)
_TO = re.compile(r"[\s-]+to[\s-]+(?:(?:the|its|their|total|net)\s+)*", re.IGNORECASE)
_DIVIDED = re.compile(r"\s+divided by\s+(?:(?:the|its|their|total|net)\s+)*", re.IGNORECASE)
_PERCENT_OF = re.compile(r"(?:percent(?:age)?|%) of (?:the |its |their )*", re.IGNORECASE)
_SEVERAL_YEARS = re.compile(r"\b(?:three|two|four|five|[2-9])[- ]year average\b", re.IGNORECASE)
_WHY = re.compile(
    r"\b(?:why|what drove|drivers?|explain|consistent|improv|useful|meaningful|sa(?:y|id)\b|describ|discuss|attribut"
    r"|reasons?|factors?|impact|affect|expect|outlook|strateg|risks?|adjusted|non-gaap|guidance|changes? in working)",
    re.IGNORECASE,
)
"""What wants prose, whatever ratio it names."""
_PLACES = {"one": 1, "two": 2, "three": 3, "four": 4, "1": 1, "2": 2, "3": 3, "4": 4}
_ROUND = re.compile(r"\b(one|two|three|four|[1-4]) decimal places?\b", re.IGNORECASE)
_TERM = re.compile(r"(?P<mode>avg|change|prior)?\[(?P<line>[^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Term:
    """One line of one year."""

    line: str
    """Key of LINES, or words that describe a row."""
    period: Period


@dataclass(frozen=True, slots=True)
class Formula:
    name: str
    template: str
    """`{0} / (({1} + {2}) / 2)`: numbers go where their terms' positions stand."""
    terms: tuple[Term, ...]
    percent: bool
    places: int
    period: str
    """As it is told: "2019", "2015 to 2017"."""


def asked_formula(question: str, current: Period | None = None, described: str = "") -> Formula | None:
    """What the question wants computed, by its own definition if it gives one; None where it wants nothing computed.

    A change or an average is understood of whole years alone, a ratio of one year: of several it is one for each.
    Other formulas may be over `current`, the one period of
    the filing that the question means where it names a quarter, or no period. With `described`, words for a row that is
    no line known here, the change of that.
    """
    years = _years(question)
    if not (years or current) or _WHY.search(_IF.sub("", question)):
        return None
    named = _change(question, described) if described else _named(question)
    if named is None:
        return None
    name, expression, percent = named
    if not percent and re.search(r"percent|%", question):
        expression, percent = _in_percent(expression, question)
    round_to = _ROUND.search(question)
    usual = 1 if percent else 0 if "/" not in expression else 2
    places = _PLACES[round_to[1].lower()] if round_to else usual
    if not years:
        return at(current, name, expression, percent, places) if current else None
    first, last = min(years), max(years)
    several = range(first, last + 1) if _SEVERAL_YEARS.search(question) else range(last, last + 1)
    compared = len(years) == 2 and re.search(r"(?:change|prior)\[", expression)
    if first != last and len(several) == 1 and not compared and not _DEFINED.search(question):
        return None
    base = first if len(years) == 2 and len(several) == 1 else None
    template, terms = _over(expression, several, base)
    told = str(last) if len(several) == 1 and base is None else f"{first} to {last}"
    return Formula(name, template.replace("{years}", str(last - first)), terms, percent, places, told)


def _years(question: str) -> list[int]:
    """Whole years that it names; empty where it names a quarter or a day as well."""
    periods = named_periods(question)
    years = [period.year for period in periods if period.quarter is None and period.day is None]
    return years if len(years) == len(periods) else []


def at(period: Period, name: str, expression: str, percent: bool = False, places: int = 0) -> Formula | None:
    """The expression over one period; None where it needs another."""
    if any(match["mode"] for match in _TERM.finditer(expression)):
        return None
    keys = list(dict.fromkeys(match["line"] for match in _TERM.finditer(expression)))
    template = _TERM.sub(lambda match: f"{{{keys.index(match['line'])}}}", expression)
    return Formula(name, template, tuple(Term(key, period) for key in keys), percent, places, str(period))


def _named(question: str) -> tuple[str, str, bool] | None:
    """Name, expression, whether it is a percentage."""
    found = [
        (match.start(), -len(match[0]), ratio) for ratio in _RATIOS if (match := re.search(ratio[1], question, re.I))
    ]
    ratio = min(found)[2] if found else None
    if stated := _DEFINED.search(question):
        expression = _stated(stated["formula"])
        return (ratio[0] if ratio else "Result", expression, bool(ratio and ratio[3])) if expression else None
    if ratio:
        return ratio[0], ratio[2], ratio[3]
    if quotient := _quotient(question):
        return quotient
    lines = _lines(question)
    if not lines:
        return None
    if share := _share(question, lines):
        return share
    return _change(question, min(lines, key=lambda one: one[1] - one[2])[0])


def _change(question: str, line: str) -> tuple[str, str, bool] | None:
    return next(
        (
            (name.format(line), expression.replace("LINE", line), percent)
            for name, pattern, expression, percent in _CHANGES
            if re.search(pattern, question, re.IGNORECASE)
        ),
        None,
    )


def _in_percent(expression: str, question: str) -> tuple[str, bool]:
    """A quotient as it is; a change by the year before; an amount by the line that it is said to be a percentage of."""
    if "/" in expression:
        return expression, True
    if re.fullmatch(r"change\[[^\]]+\]", expression):
        return f"{expression} / {expression.replace('change', 'prior')}", True
    of = _PERCENT_OF.search(question)
    whole = next((key for key, start, _ in _lines(question) if of and start == of.end()), None)
    return (f"({expression}) / [{whole}]", True) if whole else (expression, False)


def _share(question: str, lines: Sequence[tuple[str, int, int]]) -> tuple[str, str, bool] | None:
    """One line as a percentage of another: "R&D as a percentage of revenue", "what share of assets was goodwill"."""
    of = _SHARE.search(question)
    whole = next((key for key, start, end in lines if of and start <= of.end() < end), None)
    part = next((key for key, _, _ in lines if key != whole), None)
    return (f"{_told(part)} to {whole}", f"[{part}] / [{whole}]", True) if part and whole else None


def _quotient(question: str) -> tuple[str, str, bool] | None:
    """One line over another: "ratio of total debt to total assets", "net income divided by revenue"."""
    bare = _RATIO.sub(",", question)
    for (first, _, end), (second, start, _) in pairwise(_lines(bare)):
        if _DIVIDED.fullmatch(bare[end:start]) or (bare != question and _TO.fullmatch(bare[end:start])):
            return f"{_told(first)} to {second}", f"[{first}] / [{second}]", False
    return None


def _lines(question: str) -> list[tuple[str, int, int]]:
    """As `named_lines`; a ratio of total debt is of the debt that is printed."""
    return [("debt" if key == "total debt" else key, start, end) for key, start, end in named_lines(question)]


def _told(line: str) -> str:
    return {"rd": "R&D", "sga": "SG&A", "ppe": "PP&E", "cogs": "COGS"}.get(line, line.capitalize())


def _stated(formula: str) -> str | None:
    """A definition in words as an expression; None where a part of it is no line known here."""
    out = ""
    for part in _PARTS.split(formula):
        if not part or part in "+*/()×÷-−–" or _NUMBER.fullmatch(part):
            out += {"×": "*", "÷": "/", "−": "-", "–": "-"}.get(part, part)
            continue
        line = _line(part)
        if line is None:
            return None
        mode = (
            "avg"
            if re.search(r"\baverage\b", part, re.I)
            else "change"
            if re.search(r"\bchange in\b", part, re.I)
            else ""
        )
        out += f"{mode}[{line}]"
    return re.sub(r"([+*/-])", r" \1 ", out) if out.count("(") == out.count(")") else None


def _line(text: str) -> str | None:
    """The line whose name in the text is longest."""
    found = [
        (len(match[0]), -match.start(), key)
        for key, line in LINES.items()
        for match in re.finditer(rf"\b(?:{line.asked})", text, re.IGNORECASE)
    ]
    return max(found)[2] if found else None


def _over(expression: str, years: range, base: int | None) -> tuple[str, tuple[Term, ...]]:
    """The expression over one year, or its mean over several, with its terms numbered.

    `base` is the year compared with; None is the one before.
    """
    terms: list[Term] = []

    def place(line: str, year: int) -> str:
        term = Term(line, Period(year))
        if term not in terms:
            terms.append(term)
        return f"{{{terms.index(term)}}}"

    def written(match: re.Match[str], year: int) -> str:
        line, mode = match["line"], match["mode"]
        before = year - 1 if base is None or mode == "avg" else base
        this = place(line, before if mode == "prior" else year)
        if mode == "avg":
            return f"(({place(line, before)} + {this}) / 2)"
        return f"({this} - {place(line, before)})" if mode == "change" else this

    each = [_TERM.sub(lambda match, year=year: written(match, year), expression) for year in years]  # type: ignore[misc]
    each = [re.sub(r"\((\([^()]*\([^()]*\)[^()]*\))\)", r"\1", one) for one in each]
    each = [re.sub(r"^\(([^()]*)\)$", r"\1", one) for one in each]
    template = each[0] if len(each) == 1 else f"({' + '.join(f'({one})' for one in each)}) / {len(each)}"
    return template, tuple(terms)
