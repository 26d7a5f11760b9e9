"""What a question wants told in sentences: causes, events, or what a filing says of figures beside the figures."""

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from app.adapters.bm25 import query_tokens
from app.question.glossary import expanded

Aim: TypeAlias = Literal["cause", "event", "discussion"]

_MOVEMENT = r"(?:chang|increas|decreas|gr[eo]w|declin|r[io]se|fall|fell|drop|improv|reduc)\w*"
_CAUSE = re.compile(
    r"\b(?:why|driv(?:ers?|ing)|drove|driven|cause[ds]?|causing|reasons?|explain\w*|due to|factors?|influences? on"
    rf"|influenced|led to|behind the|{_MOVEMENT}\b.*\battribut(?:able|ed) to|contribut\w+ to\b.*\b{_MOVEMENT}"
    r"|how (?:did|do|does|has|have|had|were|was|are|is)\b.*\b(?:affect|impact|influenc)\w*)",
    re.IGNORECASE,
)
_MADE_OF: Mapping[str, str] = {
    r"(?:net (?:income|earnings|profit)|bottom line)": "net sales revenue operating income",
    r"operating (?:income|profit|earnings)": "net sales revenue operating expenses",
}
"""Profits, as questions call them, and lines that make them up."""
_RISKS = re.compile(r"\brisks?\b", re.IGNORECASE)
_EVENT = re.compile(
    r"\b(?:did|has|have|had|does|do|was|were|is|are)\b[^?]*?\b(?:announce|report|disclose|undertake|undertook|engage"
    r"|make|made|complete|acquire|carry out|conduct|enter into|there)(?:s|d|ed)?\b[^?]*?"
    r"\b(?:acqui\w+|divest\w+|merger\w*|spin-?offs?|dispos\w+|restructur\w+|(?:re|buy)[ -]?(?:purchas|back)\w*"
    r"|lawsuits?|proceedings?|settlements?|investments?|ventures?|partnerships?|impairments?|lay-?offs?)",
    re.IGNORECASE,
)
_DISCUSSION = re.compile(
    r"\b(?:relat(?:es?|ed|ion|ions|ionship) (?:to|between|with|of|can|is|does)|relationship|correlat\w+|correspond\w*"
    r"|connect(?:s|ed|ion)?|align\w*|combin(?:e|es|ing)|reflect\w*|suggest\w*|impl(?:y|ies|ications?)|indicate about"
    r"|discuss(?:es|ed|ions?)?|strateg\w+|details?|focus(?:es)?|insights?|repercussions?"
    r"|(?:impact|effect|consequence)s? (?:of|on)|what (?:\w+ )?changes?\b.*\b(?:disclos|describ|mention|outlin)\w*)\b",
    re.IGNORECASE,
)


def aim_of(question: str) -> Aim | None:
    """The first that it wants; None where figures, a name or a list are all."""
    if _CAUSE.search(question) and not _RISKS.search(question):
        return "cause"
    if _EVENT.search(question):
        return "event"
    return "discussion" if _DISCUSSION.search(question) else None


def said_for(question: str) -> str:
    """Words to search for beside the question's own: events go by many names, profits are explained by what makes them.

    "" where none are needed.
    """
    aim = aim_of(question)
    if aim == "event":
        return " ".join(sorted(expanded(tuple(query_tokens(question)))))
    return made_of(question) if aim == "cause" else ""


def made_of(question: str) -> str:
    """Lines whose causes are a profit's, in filings that explain those alone."""
    return next((lines for profit, lines in _MADE_OF.items() if re.search(rf"\b{profit}\b", question, re.I)), "")
