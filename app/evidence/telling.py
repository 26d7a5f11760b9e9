"""What a sentence does beside naming its topic: gives a cause, reports an event, or only points elsewhere."""

import re

from app.adapters.bm25 import tokens
from app.evidence.quantities import quantities
from app.evidence.statements import Statement, Subject, heading_terms, is_whole
from app.question.aims import Aim
from app.question.lines import LINES, label_rank

_CAUSED = re.compile(
    r"\b(?:(?:primarily|mainly|largely|principally|partially|partly|mostly) (?:due|driven|attributable|offset|because"
    r"|related|the result|as a result|reflect\w*|from|by)|due to|driven by|result(?:ed|ing)? (?:of|from|in)"
    r"|attribut(?:able|ed) to|offset(?:,? in part,?)? by|because|reflect(?:s|ed|ing)|owing to|contributed to|led to"
    r"|caused by|weaken\w+|strengthen\w+|(?:impact|affect|effect)(?:ed|s)? (?:of|by|from)"
    r"|(?:un)?favorabl[ey] (?:\w+ ){0,3}?(?:impact|effect|affect)\w*)\b",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"\b(?:increas|decreas|decline|gr[eo]w|r[io]se|fell|fall|higher|lower|improv|worsen|reduc|chang|un?favorabl)\w*",
    re.IGNORECASE,
)
_MAY = re.compile(r"\b(?:may|might|could|can)\b", re.IGNORECASE)
_WHEN = re.compile(r"\b(?:19|20)\d\d\b|\bQ[1-4]\b|\b(?:quarter|months|weeks|year)\b", re.IGNORECASE)
_HAPPENED = re.compile(
    r"\b(?:announced|completed|acquired|divested|agreed|entered into|closed|authorized|repurchased|sold|disposed"
    r"|filed|alleg\w+|settled|adopted|approved|invested|purchased|terminated|remain(?:s|ed|ing)"
    r"|expects? to (?:close|complete)|(?:agreement|decision|plans?) to (?:acquire|purchase|sell|merge|close|reduce))\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.?!:]\s)(?<!^)\b[A-Z][a-z]{2,}")
_PLACE = re.compile(
    r"\b(?:Notes? \d+|(?:Part|PART) (?:I|II|III|IV)\b|(?:Item|ITEM) \d+[A-C]?|Exhibit \d|Form (?:10-[KQ]|20-F|8-K)"
    r"|Notes to (?:the )?(?:\w+ ){0,3}?(?:Financial )?Statements)"
)
_POINTS = re.compile(
    r"\b(?:refer(?:red|ence|s)?|see|describe[sd]?|discussed|set forth|included|contained|presented|incorporated"
    r"|provided|appears?|found|disclosed|read (?:together|in conjunction))\b",
    re.IGNORECASE,
)
_OF_ITSELF = re.compile(
    r"\bforward-looking\b|\breviewed this\b|\b(?:described|discussed|set forth|listed) (?:above|below|elsewhere)\b"
    r"|^for (?:an?|further|additional|more) (?:discussion|information|description|details?)\b"
    r"|^(?:additional |further )?information (?:regarding|relating to|about|on|concerning)\b"
    r"|\b(?:this|the following) (?:section|report|quarterly report|annual report|form|discussion|table|document)\b"
    r"|\b(?:risks?|factors|uncertainties|events)\b[^.]{0,40}\b(?:described|discussed|set forth|listed|identified)\b"
    r"|\b(?:any|one) (?:one )?(?:or more )?of (?:these|the following|the foregoing|our|the)\b[^.]{0,30}"
    r"\b(?:risks?|factors|events)\b",
    re.IGNORECASE,
)
_MAY_GO_WRONG = re.compile(
    r"\b(?:may|might|could|would|can)\b[^.;]{0,60}?\b(?:advers|negativ|harm|suffer|damage|materially|fail|unable|affect)"
    r"\w*|\b(?:there can be |give |provide )?no assurances?\b|\bcannot (?:assure|guarantee|predict)\b",
    re.IGNORECASE,
)
_ASKING = frozenset(
    tokens(
        "relate relates related relation relationship correlate correlates correlation correspond corresponds align"
        " aligns connect connects connection combine data discuss discussed discussion discussions section sections"
        " statement statements financial notes report reported mention mentioned information details insight insights"
        " provided outlined shared impact impacts effect effects affect affected affecting influence influences factor"
        " factors driver drivers drive reason reasons cause caused change changes changed primary chief principal key"
        " main major significant significantly specific specifically notable any potential suggest suggests imply"
        " implications implication repercussions compare compared comparison previous quarters periods period results"
        " performance understand analyze examine assess their its management announce announced announcements"
        " engage engaged undertake activity activities make made behind contributing contribute attribute attributed"
        " shift shifts movement level levels increase decrease focus strategic strategy"
    )
)
"""Terms that ask, and do not say what about."""


def causes(text: str) -> bool:
    """Whether it says why: `Net sales fell, primarily due to ...`"""
    return bool(_CAUSED.search(text))


def happened(text: str) -> bool:
    """Whether it says what was done, with a number or a name: `We acquired Orrin for $3 million.`"""
    return bool(_HAPPENED.search(text)) and bool(quantities(text) or _NAME.search(text))


def points_elsewhere(text: str) -> bool:
    """Whether it only says where something is said, or is about the filing: `Refer to Note 10 for more.`"""
    if not _OF_ITSELF.search(text) and not (_PLACE.search(text) and _POINTS.search(text)):
        return False
    return not quantities(text)


def hedges(text: str) -> bool:
    """Whether it only says what may go wrong, without a number."""
    return bool(_MAY_GO_WRONG.search(text)) and not quantities(text)


def is_capex(statement: Statement) -> bool:
    """Whether a row is of purchases of property, which are no acquisitions of companies."""
    return statement.row is not None and label_rank(LINES["capex"], statement.row.label) is not None


def only_points(statement: Statement) -> bool:
    return statement.row is None and points_elsewhere(statement.unit.text)


def suits(statement: Statement, aim: Aim) -> float:
    """How far a statement tells what is wanted, 0 to 1; a row, a fragment and a reference do not at all."""
    text = statement.unit.text
    if statement.row is not None or not is_whole(statement) or points_elsewhere(text):
        return 0.0
    if aim == "cause":
        told = bool(_MOVED.search(text)) and not (_MAY.search(text) and not quantities(text))
        return causes(text) * (0.3 + 0.4 * told + 0.3 * bool(_WHEN.search(text) or quantities(text)))
    if aim == "event":
        return 0.6 * happened(text) + 0.4 * bool(quantities(text))
    return 0.2 + 0.4 * bool(quantities(text)) + 0.4 * (not hedges(text))


def on_topic(subject: Subject, statement: Statement) -> float:
    """Of what the question is about, the share that the statement and its headings name, 0 to 1.

    Words that ask are left out: of `how does the discussion of debt relate to interest`, `debt` and `interest` stay.
    """
    topic = _topic(subject)
    own = sum(weight for weight in topic.values() if weight == 1.0)
    if not own or not topic.keys() & statement.terms:
        return 0.0
    named = statement.terms | heading_terms(statement.chunk)
    return min(1.0, sum(weight for term, weight in topic.items() if term in named) / own)


def is_topic(subject: Subject, statement: Statement) -> bool:
    """Whether a row is of what the question is about, by two thirds of its label and the heading above it."""
    named = [weight for term, weight in _topic(subject).items() if term in statement.terms]
    return statement.row is not None and 1.0 in named and 3 * len(named) >= 2 * len(statement.terms)


def _topic(subject: Subject) -> dict[str, float]:
    return {term: weight for term, weight in subject.weights.items() if term not in _ASKING}
