"""What a question asks of the graph: to follow names, to count, or to look at the whole, and why it is taken so."""

import re
from dataclasses import dataclass
from typing import Literal

Mode = Literal["local", "global", "drift", "count"]
Unit = Literal["sector", "company", "filing", "form", "fiscal_year"]

_UNITS: tuple[tuple[Unit, str], ...] = (
    ("sector", r"sectors?|industr(?:y|ies)"),
    ("company", r"compan(?:y|ies)|issuers?|registrants?|firms?|banks?|members?|businesses"),
    ("filing", r"filings?|documents?|reports?|10-[KQ]s?|8-Ks?|annual reports"),
    ("fiscal_year", r"(?:fiscal )?years?"),
    ("form", r"forms?"),
)
_UNIT = "|".join(pattern for _, pattern in _UNITS)
_ROLES: tuple[tuple[str, str], ...] = (
    ("auditor", r"audit(?:ors?|ing)?(?: firms?)?|accounting firms?|independent (?:registered )?(?:public )?account\w+"),
    ("subsidiary", r"subsidiar(?:y|ies)"),
    ("supplier", r"suppliers?|vendors?"),
    ("customer", r"customers?|clients?"),
    ("competitor", r"competitors?|rivals?"),
    ("lender", r"lenders?|administrative agents?|trustees?"),
    ("acquisition", r"acquisitions?|acquired|acquires?|takeovers?"),
    ("litigant", r"litigants?|plaintiffs?|suing"),
    ("partner", r"partners?"),
    ("segment", r"segments?"),
    ("product", r"products?|brands?"),
    ("headquarters", r"headquarter\w*"),
    (
        "officer",
        r"officers?|executives?|directors?|chief \w+(?: officer)?|CEOs?|CFOs?|presidents?|chair(?:man|woman|person|s)?",
    ),
)
_ABOUT = re.compile(
    r"\b(?:risk factors? (?:on|about|of|for|related to|relating to|regarding|concerning)"
    r"|risks? (?:of|from|related to|relating to)|exposure to|(?:are |is )?exposed to|affected by|refer(?:s|red)? to"
    r"|warn(?:s|ed|ing)? (?:of|about)|talk(?:s|ed)? about|concern(?:s|ed)? (?:about|with)"
    r"|discuss(?:es|ed|ing)?|mention(?:s|ed|ing)?|cite[sd]?|report(?:s|ed|ing)?|disclos(?:es?|ed|ing)"
    r"|address(?:es|ed|ing)?"
    r"|fac(?:es?|ing)|name[sd]?|identif(?:y|ies|ied)|describ(?:es?|ed|ing)|about|on) (?P<what>.+)",
    re.I,
)
_TAIL = re.compile(
    r"(?:,? (?:the )?(?:most|least)(?: often)?\b.*|,? as (?:a|an|one of)\b.*|\?.*"
    r"|,? (?:in|across|within|among|from|of) (?:the|their|its|our|each|all|any)\b.*"
    r"| (?:in|for|during) (?:fiscal |FY ?)?(?:19|20)\d\d.*)$",
    re.I,
)
_SAID = (
    "most|discuss|mention|cite|name|report|disclose|warn|address|describe|face|refer|identify|exposed|(?:a )?risk|share"
    "|use|companies|filings|are audited|rel(?:y|ies)"
)
_GROUP = "asks to group"
_COUNTED = (
    (
        "asks how many",
        rf"\b(?:how many|number of|count of)(?: of)?(?: the)?(?: other| different)? (?:{_UNIT})\b",
    ),
    (_GROUP, rf"\b(?:group|break down|tabulate)\b.*\bby\b|\b(?:{_UNIT}) by (?:\w+ ){{0,2}}audit"),
    (
        "asks which of many",
        r"\b(?:which|what|list|name|find|show)(?: all| every| are)?(?: of)?(?: the)?(?: other| different)?"
        rf" (?:{_UNIT})\b"
        r"(?: in (?:the|this) \w+)?(?: (?:has|have|that|which|who|most|more|do|does|with))*"
        rf" ?(?:the )?(?:{_SAID})",
    ),
    ("asks for the most", rf"\b(?:which|what) (?:{_UNIT})\b.*\bmost\b"),
    ("asks for a ranking", rf"\brank (?:the )?(?:{_UNIT})\b.*\bby (?:how (?:much|often)|mentions)"),
)
_WHOLE = re.compile(
    r"\b(?:(?:main|common|recurring|key|major|principal|shared) (?:themes?|topics?|risks?|concerns?|issues)|themes"
    r"|landscape|overview|outline|summar(?:y|ies|i[sz]e)|in general|across (?:all|the whole|the entire)"
    r"|the (?:whole|entire) (?:collection|corpus))\b",
    re.I,
)
_LATEST = re.compile(r"\b(?:latest|most recent|newest|last)\b", re.I)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a question is taken."""

    mode: Mode
    why: str
    unit: Unit = "company"
    """What is counted, or listed."""
    what: str = ""
    """Of a count: the theme, name or phrase, as the question has it."""
    role: str | None = None
    """Of a count: the relation that is grouped or looked for."""
    grouping: bool = False
    """The relation is what to group by; `what` says how the question words it."""
    risk: bool = False
    """Only risk factors are meant."""
    latest: bool = False
    """Only each company's newest filing of its kind is meant."""


def asked(question: str) -> Asked:
    """Counting is recognised first, then questions about the whole; all else follows names."""
    for why, pattern in _COUNTED:
        if re.search(pattern, question, re.I):
            return _count(question, why)
    if match := _WHOLE.search(question):
        return Asked("global", f"asks about the whole: {match[0]!r}")
    return Asked("local", "follows what it names")


def _count(question: str, why: str) -> Asked:
    grouped = re.search(r"\bby (?:the )?(?P<what>[^?.]+)", question, re.I) if why == _GROUP else None
    found = grouped or _ABOUT.search(question)
    what = _TAIL.sub("", found["what"]).strip(" .?,") if found else ""
    return Asked(
        mode="count",
        why=why,
        unit=_unit(question),
        what=what,
        role=role_of(what if grouped else question),
        grouping=grouped is not None,
        risk=bool(re.search(r"\brisk factors?\b", question, re.I)),
        latest=bool(_LATEST.search(question)),
    )


def _unit(question: str) -> Unit:
    """The unit named first after which, how many, number of, ..., else the first named at all."""
    found = []
    for unit, pattern in _UNITS:
        for match in re.finditer(rf"\b(?:{pattern})\b", question, re.I):
            leads = re.search(
                r"(?:which|what|how many|number of|group|list|rank)(?: \w+){0,3} *$", question[: match.start()], re.I
            )
            found.append((0 if leads else 1, match.start(), unit))
    return min(found)[2] if found else "company"


def role_of(text: str) -> str | None:
    """The relation whose words come first in a text."""
    found = [(match.start(), role) for role, words in _ROLES if (match := re.search(rf"\b(?:{words})\b", text, re.I))]
    return min(found)[1] if found else None
