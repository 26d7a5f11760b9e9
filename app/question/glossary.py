"""What people call a line of a statement, and what filings print: analysts' abbreviations and near synonyms."""

import re
from functools import cache

from app.adapters.bm25 import tokens

_SAME = (
    (
        "capex",
        "capital expenditure",
        "capital expenditures",
        "capital spending",
        "purchases of property plant equipment",
    ),
    ("capital expenditures", "additions to property equipment", "payments for property equipment"),
    ("ppe", "ppne", "fixed assets", "property plant equipment"),
    ("cogs", "cost of goods sold", "cost of sales", "cost of revenue", "cost of products sold"),
    ("revenue", "revenues", "net sales", "net revenues", "total revenues", "turnover"),
    ("eps", "earnings per share", "net income per share"),
    ("sga", "selling general administrative"),
    ("rd", "research development"),
    ("da", "depreciation amortization"),
    ("opex", "operating expenses"),
    ("ocf", "operating cash flow", "cash provided by operating activities", "cash from operations"),
    ("profit", "net income", "net earnings"),
    ("operating profit", "operating income", "income from operations", "ebit"),
    ("equity", "shareholders equity", "stockholders equity"),
    ("payables", "accounts payable"),
    ("receivables", "accounts receivable"),
    ("buyback", "buybacks", "share repurchase", "repurchases of common stock"),
    ("dividends", "dividends paid", "cash dividends"),
    ("headcount", "employees", "employed", "staff", "workforce"),
    ("debt", "borrowings", "notes payable"),
    ("lawsuit", "litigation", "legal proceedings"),
    ("takeover", "acquisition", "acquire", "acquired", "business combination"),
    ("divestiture", "divestment", "divest", "sale of business", "disposition", "spin off"),
)
_SHORT = {
    "eps": "earnings per share",
    "dps": "dividends per share",
    "nim": "net interest margin",
    "aum": "assets under management",
    "ffo": "funds from operations",
    "noi": "net operating income",
}
_ABBREVIATED = re.compile(rf"\b(?:{'|'.join(_SHORT)})\b", re.IGNORECASE)
"""Letters that stand for the name of a line, which filings print in full."""


def spelt_out(question: str) -> str:
    """`diluted EPS` -> `diluted earnings per share`."""
    return _ABBREVIATED.sub(lambda short: _SHORT[short[0].lower()], question)


@cache
def _entries() -> dict[tuple[str, ...], frozenset[str]]:
    """Each phrase's terms -> the terms of its synonyms."""
    entries: dict[tuple[str, ...], frozenset[str]] = {}
    for group in _SAME:
        phrases = [tuple(tokens(phrase)) for phrase in group]
        everything = frozenset(term for phrase in phrases for term in phrase)
        for phrase in phrases:
            entries[phrase] = entries.get(phrase, frozenset()) | everything - set(phrase)
    return entries


def expanded(terms: tuple[str, ...]) -> frozenset[str]:
    """Terms that filings may print where a question uses these, without the question's own."""
    found: set[str] = set()
    for phrase, others in _entries().items():
        n = len(phrase)
        if any(terms[i : i + n] == phrase for i in range(len(terms) - n + 1)):
            found |= others
    return frozenset(found) - set(terms)


def reworded(text: str, most: int) -> list[str]:
    """At most `most` wordings of the text, each with one phrase put as filings or people may put it instead."""
    found: dict[str, None] = {}
    for group in _SAME:
        for phrase in sorted(group, key=len, reverse=True):
            pattern = re.compile(rf"\b{re.escape(phrase)}\b", re.IGNORECASE)
            if pattern.search(text):
                others = [other for other in group if other not in phrase and phrase not in other]
                found |= dict.fromkeys(pattern.sub(other, text) for other in others)
                break
    return list(found)[:most]
