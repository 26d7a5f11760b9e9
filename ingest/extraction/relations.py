"""Relations that a filing's text states outright: who signed, audits, supplies, buys, competes, lends, was acquired."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.types import EntityType

_CAP = r"[A-Z][\w&’'-]*(?:\.(?:com|ai|io))?"
_FORM = (
    r"(?:Inc|Incorporated|Corp|Corporation|Co|Company|Ltd|Limited|LLC|L\.L\.C|LLP|L\.L\.P|LP|L\.P|PLC|plc|N\.A|S\.A|AG|SE|N\.V|B\.V"
    r"|GmbH|Bancorp|National Association)"
)
_JOINED = r"(?:of|and|&|de|for|the)"
_FORMAL = rf"{_CAP}(?:,? (?:{_JOINED} )?{_CAP}){{0,6}}?,? {_FORM}\b\.?"
"""A name with its legal form."""
_SHORT = rf"{_CAP}(?: (?:(?:of|&) )?{_CAP}){{0,4}}"
_NAME = rf"(?:{_FORMAL}|{_SHORT})"
_LIST = rf"(?:{_NAME})(?:, (?:and )?(?:{_NAME}))*(?:,? and (?:{_NAME}))?"
_PERSON = r"[A-Z][\w’'-]+(?: (?:[A-Z]\.|[A-Z][\w’'-]+|de|van|von)){1,3}(?:,? (?:Jr|Sr|II|III)\.?)?"
_TITLED = (
    r"(?:Co-|Vice |Executive |Senior |Interim |Corporate |Lead |Independent |Group |Principal |First )*"
    r"(?:Chief [A-Z]\w+(?: [A-Z]\w+)* Officer|Chief Executive|President|Chair(?:man|woman|person)?(?: of the Board)?"
    r"|Vice President|Director|Treasurer|Controller|Secretary|General Counsel|Trustee)"
)
_TITLE = rf"{_TITLED}(?:(?:,| and|,? and|;| &)? {_TITLED}|(?: of| for)? [A-Z][\w,&’ ]{{2,40}}?(?=[.;\n)]|$|,? and ))*"
_AUDIT = rf"{_CAP}(?:,? (?:{_JOINED} )?{_CAP}){{0,5}}?,? (?:LLP|L\.L\.P\.|LLC|P\.C\.|& Co\.(?: LLP)?|PLLC)"


@dataclass(frozen=True, slots=True)
class Stated:
    """The registrant, or `subject` where there is one, has this relation to `name`."""

    predicate: str
    type: EntityType
    name: str
    start: int
    end: int
    """What states it, a slice of the text; the name stands in it."""
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    predicate: str
    type: EntityType
    pattern: re.Pattern[str]
    """Group `names` is one name or a list; group `detail` may be missing."""


def _rules(text: str) -> tuple[_Rule, ...]:
    names = {"LIST": _LIST, "NAME": _NAME, "FORMAL": _FORMAL, "AUDIT": _AUDIT}
    found = []
    for raw in tomllib.loads(text)["rule"]:
        pattern: str = raw["pattern"]
        for name, what in names.items():
            pattern = pattern.replace(f"{{{name}}}", f"(?P<names>{what})")
        found.append(_Rule(raw["predicate"], raw["type"], re.compile(pattern)))
    return tuple(found)


_RULES = _rules(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SIGNED = re.compile(rf"/s/ *(?P<name>{_PERSON})\s*(?:,|\n)\s*(?:(?i:(?P=name))\s*,?\s*)?(?P<title>{_TITLE})")
_LISTED = re.compile(rf"^(?P<name>{_PERSON}),?\s+(?:age )?\d{{2}},?\s+(?P<title>{_TITLE})", re.M)
_STYLED = re.compile(rf"\b(?P<name>{_PERSON}),? (?:is |was |our |the Company[’']s |as )*(?:our )?(?P<title>{_TITLE})")
_SUBSIDIARIES = re.compile(r"\bsubsidiaries of (?:the )?(?:registrant|company|[A-Z])|^exhibit 21\b", re.I | re.M)
_SUBSIDIARY_LINE = re.compile(
    rf"^[ •·]*(?P<name>{_FORMAL}|{_CAP}(?: {_CAP}){{0,6}} (?:{_FORM}|Trust))\b[^\n]{{0,80}}$", re.M
)
_DATED = re.compile(
    r",? (?:Date\b|January|February|March|April|May|June|July|August|September|October|November|December|/s/).*"
)
_FULL_STOP = re.compile(r"\b(LLC|LLP|LP|PLC|AG|SE|GmbH|Company|Corporation|Limited|Bancorp|Association)\.$")
_SPLIT = re.compile(r",? and |, ")


def stated(text: str) -> Iterator[Stated]:
    """All relations of a text, in no order; a name that is a list gives one for each."""
    flat = text.replace("\n", " ")
    for rule in _RULES:
        for match in rule.pattern.finditer(flat):
            detail = (match.groupdict().get("detail") or "").strip() or None
            listed = rule.predicate not in ("auditor", "headquarters")
            for name in _members(match["names"]) if listed else [match["names"].rpartition(" of ")[2]]:
                yield Stated(rule.predicate, rule.type, name, *match.span(), detail)
    yield from _officers(text)


def _officers(text: str) -> Iterator[Stated]:
    for pattern in (_SIGNED, _LISTED, _STYLED):
        for match in pattern.finditer(text):
            title = _DATED.sub("", " ".join(match["title"].split())).strip(" ,;")
            yield Stated("officer", "person", match["name"], *match.span(), title)


def subsidiaries(text: str) -> Iterator[Stated]:
    """Lines of an exhibit that lists a registrant's subsidiaries; none from a text that is not one."""
    if _SUBSIDIARIES.search(text):
        for match in _SUBSIDIARY_LINE.finditer(text):
            yield Stated("subsidiary", "company", match["name"], *match.span("name"))


def _members(names: str) -> list[str]:
    """`A, Inc., B and C` -> A, Inc. · B · C: a comma before a legal form parts nothing."""
    marked = re.sub(rf", (?={_FORM}\b)", "\0", names)
    return [_FULL_STOP.sub(r"\1", part.replace("\0", ", ").strip()) for part in _SPLIT.split(marked) if part.strip()]
