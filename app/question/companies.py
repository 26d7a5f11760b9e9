"""Which companies of the index a question names, however it spells them, and whom else it names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import dropwhile, pairwise
from typing import TypeVar

from app.question.periods import MONTHS
from app.types import Document

K = TypeVar("K")
_SUFFIXES = frozenset(
    "ag bancorp co communications companies company corp corporation enterprises group holding holdings inc "
    "incorporated industries international limited llc lp ltd nv of plc sa se technologies the trust".split()
)
_GENERIC = frozenset(
    "advanced allied american applied bank best capital central city consolidated eastern energy federal first general "
    "global great international national new north northern old pacific public royal south southern standard state "
    "union united universal us western world".split()
)
"""First words of names that do not stand for the company alone."""
_WORD = re.compile(r"[^\W_]+")
_NAME_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_PROPER = r"[A-Z][\w&.-]*(?:\s+(?:&\s+)?[A-Z][\w&.-]*){0,4}?"
_TITLED = re.compile(
    rf"(?P<name>{_PROPER}\s+(?:Corporation|Corp|Incorporated|Inc|Company|Limited|Ltd|PLC|plc|LLC|N\.V|S\.A|AG|SE)\b)"
)
_OWNER = re.compile(rf"(?P<name>{_PROPER})['’][sS]?(?=\s)")
_OWNER_IN_SMALL = re.compile(
    r"(?<!\bthe )(?<!\bthat )(?<!\bits )(?<!\bour )(?<!\ban )(?<!\ba )\b(?P<name>[a-z]\w+)['’]s(?=\s)"
)
_SUBJECT = re.compile(r"\b(?:[Dd]oes|[Dd]id|[Hh]as|[Ii]s|[Ww]as|[Ww]ill|[Cc]an) (?P<name>(?:[A-Z][a-z]+)+)\b")
_NO_NAMES = frozenset(MONTHS) | frozenset(
    "a about according an analyse analyze and are as assess at based between by calculate can compare compute could "
    "describe did discuss do does each evaluate everyone explain find fiscal for form from give given had has have he "
    "here how identify in is it item let list name note of on one or part regarding she show since so someone "
    "summarise summarize tell that the there this to today tomorrow under using was were what when where which who "
    "whose why will with would yesterday".split()
)
"""Words before a name, or in the place of one."""
_PERIOD = re.compile(r"Q[1-4]|FY\d*", re.I)
_COMMON = frozenset(
    "assets audit board capex cash ceo cfo chairman cogs committee company compensation congress costs country debt "
    "demand directors earnings ebitda equity fed goodwill government gross growth headcount income industry inflation "
    "inventories inventory liabilities liquidity management margin market nation net of operating president profit "
    "revenue revenues sales sec spending treasury world year".split()
)
"""Words of which no company's name is made alone, however they are written."""
_ABBREVIATIONS = frozenset(
    "AI ALL AND ARE CAN CEO CFO COO COST DATA DID EBIT EPS ESG EU EUR FASB FCF FDA FOR FX GAAP GDP HAS IFRS IP IR IRS "
    "IT LLC LOW MD NET NEW NOW OLD ONE OUT PE PPE PR RD ROA ROE SEC SG THE UK US USA USD WAS WELL WHO".split()
)
"""Capitals that are a ticker only where a question says so: "$IT", "(IT)", "IT's"."""
_TICKER = re.compile(r"\b[A-Z][A-Z.]{1,5}\b")
_SAID_TICKER = re.compile(
    r"(?:\$|\(|\b(?i:NYSE|NASDAQ|ticker(?: symbol)?)[: ]+)(?P<said>[A-Z][A-Z.]{0,5})\b"
    r"|\b(?P<owner>[A-Z]{2,6})['’][sS]\b"
)
_TICKER_IN_SMALL = re.compile(r"\b(?P<owner>[a-z]{2,6})['’]s\b|\b(?P<said>[b-df-hj-np-tv-xz]{3,6})\b")
"""As an owner, or without a vowel, as no word is."""
_POSSESSIVE = re.compile(r"['’][sS]?\b")
_OWNING = re.compile(r"['’](?:[sS]\b|(?!\w))")
_LEAST_SPELT = 6
"""Letters of a word from which on a name is known with one of them wrong."""
_JOINED = re.compile(r"(?:,|&|\b(?:and|or|vs\.?|versus|than|with))\s+$", re.IGNORECASE)
_JOINING = re.compile(r"(?:,|\s+&|\s+(?:and|or|vs\.?|versus)\b)", re.IGNORECASE)
_JOINERS = frozenset({"and", "or", "vs", "vs.", "versus", "&"})
_WHICH_OF = re.compile(r"^(?:which|who)(?: one)? (?:of|between|among) (?:the )?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    """In small letters."""
    start: int
    end: int
    """In the question, its possessive left out."""


@dataclass(frozen=True, slots=True)
class _Named:
    companies: frozenset[str]
    """Several where the name fits them alike."""
    words: tuple[_Word, ...]


@dataclass(frozen=True, slots=True)
class _Spellings:
    """How the companies of an index are spoken of, in words of small letters."""

    whole: Mapping[tuple[str, ...], frozenset[str]]
    """With and without the legal suffix."""
    short: Mapping[str, frozenset[str]]
    """First words that tell."""
    tickers: Mapping[str, frozenset[str]]
    longest: int
    """Words of the longest name."""


def named_companies(question: str, catalogue: Iterable[Document]) -> frozenset[str]:
    """Companies of the catalogue whose name, short name or ticker stands in the question.

    The longest name that fits a place is meant: "Alpha Beta" is not Alpha. What a legal suffix ends is a name as a
    whole: "Alpha Gamma Inc." is not Alpha either. A word in small letters is not taken for a company beside a name with
    a capital, "Acme's target", unless it owns something or is joined to it.
    """
    known = _spellings(frozenset((d.meta.company, d.meta.ticker) for d in catalogue if d.meta.company))
    found = [_less_others(each, question) for each in _places(_words(question), known)]
    found = [each for each in found if each.companies]
    certain = [each for each in found if not _may_be_a_word(each, question)]
    capital = any(not _is_small(each.words[0], question) for each in certain)
    if len(certain) < len(found) and not capital and not _others(question, _companies(found)):
        certain = found
    return _companies(certain) | _by_ticker(question, known, alone=not certain)


def _companies(found: Sequence[_Named]) -> frozenset[str]:
    return frozenset(company for each in found for company in each.companies)


def _others(question: str, companies: Iterable[str]) -> set[str]:
    """Words of the names of others than these."""
    return {word for name in strangers(question) for word in _texts(name)} - _words_of(companies)


def _is_small(word: _Word, question: str) -> bool:
    return question[word.start : word.end].islower()


def _places(words: Sequence[_Word], known: _Spellings) -> list[_Named]:
    found, at = [], 0
    while at < len(words):
        texts = tuple(word.text for word in words[at : at + known.longest])
        length = next((n for n in range(len(texts), 0, -1) if texts[:n] in known.whole), 0)
        companies = known.whole[texts[:length]] if length else known.short.get(texts[0], frozenset())
        length = max(length, 1)
        if companies:
            found.append(_Named(companies, tuple(words[at : at + length])))
        at += length
    return found


def _less_others(named: _Named, question: str) -> _Named:
    """Without the companies that are not of the whole name, where its legal suffix is given."""
    first, last = named.words[0], named.words[-1]
    titled = next((m for m in _TITLED.finditer(question) if m.start() <= first.start < m.end()), None)
    if titled is None:
        return named
    behind = set(_texts(question[last.end : titled.end()])) - _SUFFIXES
    return replace(named, companies=frozenset(each for each in named.companies if behind <= _words_of([each])))


def _may_be_a_word(named: _Named, question: str) -> bool:
    """One in small letters that neither owns anything nor is joined to another."""
    first, last = named.words[0], named.words[-1]
    if len(named.words) > 1 or not _is_small(first, question) or question[last.end : last.end + 1] in ("'", "’"):
        return False
    return not (_JOINED.search(question[: first.start]) or _JOINING.match(question[last.end :]))


def _by_ticker(question: str, known: _Spellings, *, alone: bool) -> frozenset[str]:
    """In capitals; where nobody is named also in small letters, as an owner or if it can be no word."""
    said = {match["said"] or match["owner"] for match in _SAID_TICKER.finditer(question)}
    if question != question.upper():
        said |= set(_TICKER.findall(question)) - _ABBREVIATIONS
    if alone and (small := {(m["said"] or m["owner"]).upper() for m in _TICKER_IN_SMALL.finditer(question.lower())}):
        named = small & known.tickers.keys()
        said |= set() if named and _others(question, named) else named
    return frozenset(company for ticker in said for company in known.tickers.get(ticker, ()))


def respelt(question: str, catalogue: Iterable[Document]) -> tuple[str, str]:
    """The question with a company's name in place of one that differs in a letter, and a note on it; "" where none is.

    Only where it names nobody of the catalogue, one name alone is near, and what stands behind it is no other name's.
    """
    known = _spellings(frozenset((d.meta.company, d.meta.ticker) for d in catalogue if d.meta.company))
    if any(each.companies for each in _places(_words(question), known)):
        return question, ""
    for word, behind in pairwise([*_words(question), None]):
        if word is None or len(word.text) < _LEAST_SPELT or not _can_be_a_name(word, question):
            continue
        near = {company for name, own in known.short.items() if _one_off(word.text, name) for company in own}
        if len(near) == 1:
            [company] = near
            name = next(company[own.start : own.end] for own in _words(company) if _one_off(word.text, own.text))
            if not _is_another(behind, question, company):
                text = question[: word.start] + name + question[word.end :]
                return text, f"{question[word.start : word.end]!r} is no company of the index; it was read as {company}"
    return question, ""


def _can_be_a_name(word: _Word, question: str) -> bool:
    """With a capital, or as an owner, and no word of every filing."""
    common = word.text in _COMMON | _GENERIC | _SUFFIXES | _NO_NAMES
    return not common and (not _is_small(word, question) or bool(_OWNING.match(question[word.end :])))


def _is_another(behind: _Word | None, question: str, company: str) -> bool:
    """Whether a word with a capital stands behind that is neither of the company's name nor of every filing."""
    if behind is None or _is_small(behind, question) or behind.text in _words_of([company]):
        return False
    return not (behind.text in _COMMON | _NO_NAMES | _SUFFIXES or any(ch.isdigit() for ch in behind.text))


def _one_off(a: str, b: str) -> bool:
    """Whether a letter is wrong, missing, too many or in its neighbour's place: not the first, nor a plural's."""
    if a == b or a[0] != b[0] or min(len(a), len(b)) < _LEAST_SPELT:
        return False
    a, b = sorted((a, b), key=len)
    at = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    if len(a) < len(b):
        return a[at:] == b[at + 1 :] and b != f"{a}s"
    swapped = a[at + 1 : at + 2] + a[at] + a[at + 2 :]
    return a[at + 1 :] == b[at + 1 :] or swapped == b[at:]


def strangers(question: str) -> tuple[str, ...]:
    """What stands as a company's name in a question: with a suffix (Acme Corp.), as an owner (Acme's), after "does".

    Of a question all in small letters, its owners.
    """
    patterns = (_OWNER_IN_SMALL,) if question[1:] == question[1:].lower() else (_TITLED, _OWNER, _SUBJECT)
    found = [_proper(match["name"]) for pattern in patterns for match in pattern.finditer(question)]
    names = dict.fromkeys(name for name in found if not _COMMON.issuperset(name.lower().split()))
    return tuple(name for name in names if not any(name in other and name != other for other in names))


def _proper(name: str) -> str:
    """Without what only stands before it: `Is Acme` -> `Acme`; "" where nothing is left."""
    words = dropwhile(lambda word: word.lower() in _NO_NAMES or _PERIOD.fullmatch(word), name.split())
    return " ".join(words)


@lru_cache(maxsize=16)
def _spellings(companies: frozenset[tuple[str, str | None]]) -> _Spellings:
    whole: dict[tuple[str, ...], set[str]] = {}
    short: dict[str, set[str]] = {}
    tickers: dict[str, set[str]] = {}
    for company, ticker in companies:
        names, first = _names(company)
        for name in names:
            whole.setdefault(name, set()).add(company)
        if first:
            short.setdefault(first, set()).add(company)
        if ticker:
            tickers.setdefault(ticker, set()).add(company)
    return _Spellings(_frozen(whole), _frozen(short), _frozen(tickers), max(map(len, whole), default=1))


def _frozen(sets: Mapping[K, set[str]]) -> dict[K, frozenset[str]]:
    return {key: frozenset(value) for key, value in sets.items()}


def _names(company: str) -> tuple[list[tuple[str, ...]], str]:
    """The name with and without its suffix, and its first word if that tells, else ""."""
    words = _texts(company)
    while len(words) > 1 and words[0] == "the":
        words.pop(0)
    words = [word for word in words if word != "com"] or words
    core = list(words)
    while len(core) > 1 and core[-1] in _SUFFIXES:
        core.pop()
    names = [tuple(words)] if not words or " ".join(core) in _GENERIC | _SUFFIXES else [tuple(words), tuple(core)]
    first = core[0] if core and len(core[0]) >= 3 and core[0] not in _GENERIC else ""
    return [name for name in names if name], first


def _words_of(companies: Iterable[str]) -> set[str]:
    return {word for company in companies for word in _texts(company)}


def _texts(text: str) -> list[str]:
    return [word.text for word in _words(text)]


def _words(text: str) -> list[_Word]:
    """Without possessives and "and"; "&" is no word, and letters that stand alone are one: "S&P", "J. P."."""
    found: list[_Word] = []
    alone = False
    for match in _NAME_WORD.finditer(_OWNING.sub(lambda own: " " * len(own[0]), text)):
        word = _Word(re.sub("['’]", "", match[0].lower()), match.start(), match.end())
        if word.text == "and":
            continue
        single = len(word.text) == 1 and word.text.isalpha()
        if single and alone:
            found[-1] = replace(found[-1], text=found[-1].text + word.text, end=word.end)
        else:
            found.append(word)
        alone = single
    return found


def _without_possessive(text: str) -> str:
    return _POSSESSIVE.sub("", text)


def without_names(question: str, companies: Sequence[str]) -> str:
    """The question less the words of these companies' names; whole where nothing else would be left."""
    kept = [word for word, named in _marked(question, companies) if not named]
    return " ".join(kept) if any(_WORD.search(word) for word in kept) else question


def asked_of_one(question: str, others: Sequence[str]) -> str:
    """A question about several companies as asked of one: less the others' names and the words that joined them.

    "Which of Harrow and Pell carried more debt?" less Harrow is "Pell carried more debt?".
    """
    words = _marked(question, others)
    gone = [False, *(named for _, named in words), False]
    kept = [
        word
        for (word, named), before, behind in zip(words, gone, gone[2:], strict=False)
        if not named and not ((before or behind) and word.lower() in _JOINERS)
    ]
    return _WHICH_OF.sub("", " ".join(kept)) if any(_WORD.search(word) for word in kept) else question


def _marked(question: str, companies: Sequence[str]) -> list[tuple[str, bool]]:
    """The question's words, each with whether it is one of these companies' names."""
    names = {word.lower() for company in companies for word in _WORD.findall(_without_possessive(company))}
    words = _without_possessive(question).split()
    return [(word, not names.isdisjoint(_WORD.findall(word.lower()))) for word in words]
