"""Lines of the financial statements: how questions call them, what to search for, how filings label them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

StatementName: TypeAlias = Literal["income", "balance", "cash"]
STATEMENTS: Mapping[StatementName, str] = {
    "income": "consolidated statements of operations income earnings",
    "balance": "consolidated balance sheets financial position",
    "cash": "consolidated statements of cash flows",
}
"""What their titles say, to search for."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a statement: how questions call it and how statements label it."""

    statement: StatementName
    query: str
    """What to search its table for."""
    asked: str
    """Pattern in a question."""
    labels: tuple[str, ...]
    """Patterns of the whole label, the most telling first."""
    outflow: bool = False
    """Printed in parentheses where it is spent: its amount counts, not its sign."""
    otherwise: str = ""
    """Formula over other lines where a company prints none of its own."""
    instead: str = ""
    """Key of the line that is quoted where this one is neither printed nor to be computed."""


TITLES: Mapping[StatementName, re.Pattern[str]] = {
    "income": re.compile(
        r"\b(?:statements? of (?:\w+ ){0,2}?(?:income|operations|earnings)|income statements?)\b", re.IGNORECASE
    ),
    "balance": re.compile(
        r"\b(?:balance sheets?|statements? of (?:\w+ ){0,2}?(?:position|condition))\b", re.IGNORECASE
    ),
    "cash": re.compile(r"\b(?:statements? of (?:\w+ ){0,2}?cash flows?|cash flows? statements?)\b", re.IGNORECASE),
}
"""A statement's title, as printed above it."""
LINES: Mapping[str, Line] = {
    "revenue": Line(
        "income",
        "total net revenues net sales",
        r"(?:total |net )*(?:revenues?|sales)",
        (r"total (?:net |operating )?(?:revenues?|sales)", r"(?:net )?(?:operating )?(?:revenues?|sales)(?:, net)?"),
    ),
    "cogs": Line(
        "income",
        "cost of sales cost of goods sold cost of revenue",
        r"cogs|costs? of (?:goods sold|sales|revenues?|products sold)",
        (
            r"total costs? of (?:goods sold|sales|revenues?|products sold)",
            r"costs? of (?:goods sold|sales|revenues?|products sold|products|merchandise sold)(?:, .*)?",
        ),
    ),
    "gross profit": Line(
        "income",
        "gross profit gross margin",
        r"gross (?:profit|margin)s?",
        (r"(?:total )?gross (?:profit|margin)s?",),
        otherwise="[revenue] - [cogs]",
    ),
    "operating income": Line(
        "income",
        "operating income income from operations",
        r"operating (?:income|profit|earnings)|ebit\b|income from operations",
        (
            r"(?:total |consolidated )?operating (?:income|profit|earnings)(?: \(loss\))?",
            r"(?:income|earnings|profit) (?:\(loss\) )?from operations",
        ),
    ),
    "net income": Line(
        "income",
        "net income net earnings",
        r"net (?:income|earnings|profits?)(?: attributable to (?:common )?(?:share|stock)(?:holders|owners))?"
        r"|bottom line|earnings(?! (?:per|before|releases?|calls?)\b)",
        (
            r"net (?:income|earnings|\(?loss\)?)(?: \(loss\))?",
            r"net (?:income|earnings)(?: \(loss\))? (?:attributable|available) to (?!.*noncontrolling).*",
            r"(?:consolidated )?net (?:income|earnings)(?!.*(?:per|continu|attributable)).*",
        ),
    ),
    "pretax income": Line(
        "income",
        "income before income taxes",
        r"pre-?tax (?:income|profit|earnings)|income before (?:income )?tax(?:es)?",
        (r"(?:income|earnings|profit)(?: \(loss\))? (?:from .*)?before .*(?:tax|taxes).*",),
    ),
    "income tax": Line(
        "income",
        "provision for income taxes",
        r"income tax (?:expense|provision)|provision for income taxes|tax expense",
        (
            r"(?:total )?(?:provision|benefit|\(?provision\)?.*) for income taxes.*",
            r"income tax(?:es)?(?: expense| provision)?.*",
        ),
    ),
    "interest expense": Line(
        "income", "interest expense", r"interest expense", (r"(?:total )?interest expense(?:, net)?.*",), outflow=True
    ),
    "sga": Line(
        "income",
        "selling general and administrative expenses",
        r"sg&?a|selling,? general,? and administrative(?: expenses?)?",
        (r"selling,? general,? and administrative.*",),
    ),
    "operating expenses": Line(
        "income",
        "total operating expenses",
        r"operat(?:ing|ional) (?:expenses?|expenditures?|costs)|opex",
        (r"total operating (?:expenses|costs)(?: and expenses)?", r"total costs and expenses", r"operating expenses"),
    ),
    "sales and marketing": Line(
        "income",
        "sales and marketing expense",
        r"(?:sales|selling) and marketing(?: expenses?| costs?| spending)?",
        (r"(?:total )?(?:sales|selling) and marketing.*",),
    ),
    "general and administrative": Line(
        "income",
        "general and administrative expense",
        r"g&a|general and administrative(?: expenses?| costs?)?",
        (r"(?:total )?general and administrative.*",),
    ),
    "rd": Line(
        "income",
        "research and development expense",
        r"(?:r&d|research and development)(?: expenses?| expenditures?| costs?| spending| investments?)?",
        (r"(?:total )?research(?:,| and) development.*",),
    ),
    "ppe": Line(
        "balance",
        "property plant and equipment net",
        r"(?:net )?(?:pp&?n?e|property,? (?:plant,? )?(?:and|&) equipment|fixed assets)(?:,? net)?",
        (
            r"(?:net |total )?property(?:, plant,?)?,? (?:and|&) equipment[ ,–—-]*net.*",
            r"net property(?:, plant,?)? (?:and|&) equipment.*",
            r"property(?:, plant,?)? (?:and|&) equipment.*",
        ),
    ),
    "total assets": Line("balance", "total assets", r"total assets|\bassets\b(?= turnover)", (r"total assets",)),
    "current assets": Line("balance", "total current assets", r"(?:total )?current assets", (r"total current assets",)),
    "current liabilities": Line(
        "balance", "total current liabilities", r"(?:total )?current liabilities", (r"total current liabilities",)
    ),
    "inventory": Line(
        "balance",
        "inventories balance sheet",
        r"inventor(?:y|ies)",
        (r"total inventories", r"(?:merchandise )?inventor(?:y|ies)(?:, net)?.*"),
    ),
    "receivables": Line(
        "balance",
        "accounts receivable net",
        r"(?:accounts |trade )?receivables?",
        (r"(?:accounts|trade) receivables?.*", r"receivables.*", r"accounts and (?:notes|other) receivables?.*"),
    ),
    "payables": Line(
        "balance",
        "accounts payable",
        r"(?:accounts |trade )?payables?",
        (r"accounts payable.*", r"trade (?:accounts )?payables?.*"),
    ),
    "goodwill": Line("balance", "goodwill", r"goodwill", (r"goodwill.*",)),
    "retained earnings": Line(
        "balance",
        "retained earnings accumulated deficit",
        r"retained earnings|accumulated deficit",
        (r"retained earnings.*", r"accumulated deficit.*"),
    ),
    "deferred revenue": Line(
        "balance",
        "deferred revenue unearned revenue",
        r"(?:deferred|unearned) revenues?",
        (r"(?:short-term |current )?(?:deferred|unearned) revenues?.*",),
    ),
    "cash": Line(
        "balance",
        "cash and cash equivalents",
        r"cash(?: (?:and|&) (?:cash )?equivalents)?(?! (?:flows?|provided|used|generated|from|dividends?|paid)\b)",
        (r"cash and cash equivalents.*", r"cash"),
    ),
    "total liabilities": Line("balance", "total liabilities", r"total liabilities", (r"total liabilities",)),
    "equity": Line(
        "balance",
        "total stockholders equity",
        r"(?:total )?(?:shareholders|stockholders)?['’]?\s?equity",
        (r"total (?:shareholders|stockholders|shareowners)?['’]? ?equity.*", r"total equity"),
    ),
    "debt": Line("balance", "total debt long-term debt", r"long-term debt", (r"long-term debt.*", r"total debt")),
    "total debt": Line(
        "balance",
        "total debt",
        r"(?<!net )(?:total )?debt|total borrowings",
        (r"total (?:debt|borrowings)",),
        otherwise="[current debt] + [debt]",
        instead="debt",
    ),
    "current debt": Line(
        "balance",
        "current portion of long-term debt short-term borrowings",
        r"current portion of (?:long-term )?debt|short-term (?:debt|borrowings)",
        (
            r"(?:short-term (?:debt|borrowings) and )?current (?:portion|maturities|installments) of"
            r" (?:long-term )?debt.*",
        ),
    ),
    "capex": Line(
        "cash",
        "purchases of property and equipment capital expenditures",
        r"cap(?:ital )?(?:ex\b|expenditures?)",
        (
            r"capital expenditures.*",
            r"(?:purchases?|additions?|payments?|acquisitions?|expenditures?) (?:of|to|for)"
            r" (?:the )?(?:(?:purchase|acquisition)s? of )?property.*",
        ),
        outflow=True,
    ),
    "operating cash flow": Line(
        "cash",
        "net cash provided by operating activities",
        r"operating cash flows?"
        r"|(?:net )?cash (?:flows? )?(?:generated |provided )?(?:by|from) operat(?:ing activities|ions)",
        (r"(?:total |net )?cash (?:flows? )?(?:provided by|from|generated by|\(?used in\)?).*operat.*",),
    ),
    "investing cash flow": Line(
        "cash",
        "net cash used in investing activities",
        r"investing cash flows?"
        r"|(?:net )?cash (?:flows? )?(?:provided |used )?(?:by|from|in|for) investing(?: activities)?",
        (r"(?:total |net )?cash (?:flows? )?(?:provided by|from|generated by|\(?used in\)?).*investing.*",),
    ),
    "financing cash flow": Line(
        "cash",
        "net cash used in financing activities",
        r"financing cash flows?"
        r"|(?:net )?cash (?:flows? )?(?:provided |used )?(?:by|from|in|for) financing(?: activities)?",
        (r"(?:total |net )?cash (?:flows? )?(?:provided by|from|generated by|\(?used in\)?).*financing.*",),
    ),
    "share repurchases": Line(
        "cash",
        "repurchases of common stock",
        r"(?:share|stock|common stock) (?:repurchases?|buybacks?)|buybacks?"
        r"|repurchases? of (?:common |treasury )?(?:stock|shares)",
        (
            r"(?:common )?(?:stock|shares) repurchased.*",
            r"(?:re)?purchases? of (?:common|treasury) (?:stock|shares).*",
            r"payments? for (?:re)?purchases? of (?:common|treasury) (?:stock|shares).*",
        ),
        outflow=True,
    ),
    "stock-based compensation": Line(
        "cash",
        "stock-based compensation expense",
        r"(?:stock|share)-based compensation(?: expenses?)?",
        (r"(?:stock|share)-based compensation.*",),
    ),
    "depreciation and amortization": Line(
        "cash",
        "depreciation and amortization",
        r"d&a|depreciation (?:and|&) amortization",
        (r"(?:total )?depreciation(?:,)? (?:and|&) amortization.*", r"depreciation.*"),
    ),
    "dividends": Line(
        "cash",
        "cash dividends paid",
        r"(?:cash )?dividends?(?: paid)?(?! (?:per|a|declared per)\b)",
        (r"(?:cash )?dividends(?: paid)?.*", r"payments? of (?:cash )?dividends.*"),
        outflow=True,
    ),
}

_BEFORE = frozenset(
    "a about actual against amount an and annual any are as at average be between bigger biggest both by change "
    "changes combined company compare consolidated did difference do does fewer fiscal for from generated greater "
    "greatest had has have higher highest how in increase incurred invest invested is its larger largest latest "
    "less level levels lower lowest many more most much net of on or our over overall quarter quarterly recent "
    "recorded report reported reporting reports show shown smaller smallest spend spent than that the their these "
    "this those to total versus vs was were what which whose will with would year year-end yearly".split()
)
"""Words before a line's name that leave it the whole company's: others make it a segment's or another measure."""
_LINKS = frozenset(
    "from by of for across attributed attributable generated contributed derived within in at on to per under outside "
    "before after excluding without".split()
)
"""Words after it that do the same, with what follows them: "revenue from services", "sales to dealers"."""
_AUXILIARIES = frozenset("are can could did do does had has have is was were will would".split())
"""Before a line, they leave a verb behind it: "did revenue climb"."""
_AMOUNTS = frozenset(
    "activities activity amount amounts balance balances changed changes cost costs decline decreases dollars during "
    "evolve exceed expense expenses figure figures fluctuate growth higher increases information larger less levels "
    "lower movement percent percentage performance program programs respectively than total totals trend trends value "
    "values what year-over-year yoy".split()
)
"""Nouns and comparatives behind a line that leave it the same amount: "revenue growth", "the inventory balance"."""
_WHEN = frozenset(
    "first second third fourth same period periods three six nine twelve months full prior previous each every ended "
    "ending last newest change changed grow grew rise rose fall fell decrease decline compare compared compares "
    "differ do does it they s fy years quarters filing filings beginning start close date relation comparison "
    "contrast terms total percent percentage million millions billion billions thousand thousands usd us dollars "
    "balance sheet sheets statement statements income cash flow flows table form note end year quarter latest recent "
    "fiscal most january february march april may june july august september october november december calendar".split()
)
"""Words that may follow those without naming a part."""
_PARTS = re.compile(
    r"\b(?:segments?|divisions?|business(?:es)? units?|product (?:lines?|categor\w+)|categor(?:y|ies)|regions?"
    r"|geograph\w*|subsidiar\w+|per share|breakdown|broken down|comparable|organic|same-store|adjusted|non-gaap)\b",
    re.IGNORECASE,
)
"""What speaks of a part of the company, or of another measure."""
_WORD = re.compile(r"[\w&-]+")
_BEHIND = re.compile(r"[ -]+([\w&-]+)")
_FOOTNOTE = re.compile(r"\s*\((?:\d|[a-z]|see[^)]*|note[^)]*)\)|[*†‡:.]+$", re.IGNORECASE)
_GAP = re.compile(r"\s+")


def named_lines(question: str) -> list[tuple[str, int, int]]:
    """The lines that a question names for the company as a whole, in its order: key of LINES, start, end.

    The question comes without the company's name. "Freight revenue", "comparable sales" and "revenue from services" are
    no lines of a statement.
    """
    if _PARTS.search(question):
        return []
    matches = [
        (match.start() - match.end(), match.start(), match.end(), key)
        for key, line in LINES.items()
        for match in re.finditer(rf"\b(?:{line.asked})(?!\w)", question, re.IGNORECASE)
    ]
    taken: list[tuple[str, int, int]] = []
    for _, start, end, key in sorted(matches):
        if all(end <= a or b <= start for _, a, b in taken):
            taken.append((key, start, end))
    taken.sort(key=lambda one: one[1])
    whole = [one for one in taken if not _narrowed(question, *one[1:], taken)]
    firsts = {key: (key, start, end) for key, start, end in reversed(whole)}
    return sorted(firsts.values(), key=lambda one: one[1])


def _narrowed(question: str, start: int, end: int, lines: Sequence[tuple[str, int, int]]) -> bool:
    """Whether the words around the line, those of other lines aside, make it a part's or another measure."""
    before = _WORD.findall(question[:start])
    if before and before[-1].lower() not in _BEFORE and not any(ch.isdigit() for ch in before[-1]):
        return True
    rest = question[end:]
    for _, other, its_end in reversed(lines):
        if other >= end:
            rest = f"{rest[: other - end]},{rest[its_end - end :]}"
    behind = _BEHIND.match(rest)
    if behind and not (before and before[-1].lower() in _AUXILIARIES) and _is_another(behind[1].lower()):
        return True
    after = [word.lower() for word in _WORD.findall(rest)]
    while after and after[0] in ("is", "was", "were", "that"):
        after.pop(0)
    if not after or after[0] not in _LINKS:
        return False
    named = next((word for word in after if word in _WHEN or word not in _BEFORE | _LINKS), "")
    return bool(named) and named not in _WHEN and not any(ch.isdigit() for ch in named)


def _is_another(word: str) -> bool:
    """Whether a word right behind a line is a noun of its own: "sales tax", "inventory warehouses"."""
    plain = word in _BEFORE | _LINKS | _WHEN | _AMOUNTS | _AUXILIARIES
    return not plain and not word.endswith("ed") and not any(ch.isdigit() for ch in word)


def label_rank(line: Line, label: str) -> int | None:
    """Position of the line's pattern that is a row's whole label, footnotes aside; None where none is."""
    label = _GAP.sub(" ", _FOOTNOTE.sub("", label)).strip(" .:,$—–-")
    for position, pattern in enumerate(line.labels):
        if re.fullmatch(pattern, label, re.IGNORECASE):
            return position
    return None
