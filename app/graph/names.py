"""Under which key an entity is kept, and under which names it is found; merges are read from names, never written."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.types import Entity

_LEGAL = frozenset(
    "ab ag asa bhd bv co company corp corporation gmbh inc incorporated kg kgaa kk lllp llc llp lp ltd limited na nv "
    "oy oyj plc pte pty sa sab sarl sas se spa srl".split()
)
_GENERIC = frozenset(
    "advanced allied american applied bank best capital central city consolidated digital eastern energy federal first "
    "financial general global great home international life national new north northern old pacific public royal south "
    "southern standard state union united universal us western world".split()
)
"""First words of names that do not stand for the company alone."""
_WORD = re.compile(r"[^\W_]+(?:[&.][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s?\b")
_HONORIFIC = frozenset("mr mrs ms miss dr sir prof jr sr ii iii iv".split())
_CODE = r"\b([A-Z0-9]{18}[0-9]{2})\b"
_LEI = re.compile(rf"\b(?:LEI|Legal Entity Identifier)\b[^\n]{{0,40}}?{_CODE}|{_CODE}(?=[^\n]{{0,30}}\bLEI\b)")
_LONGEST = 7
"""Words of a name at most."""


def words(text: str) -> list[str]:
    """Lower-case words without accents, possessives and the dots of abbreviations: `S.A.` is `sa`."""
    folded = unicodedata.normalize("NFKD", _POSSESSIVE.sub("", text)).casefold()
    plain = "".join(c for c in folded if not unicodedata.combining(c))
    return [word.replace(".", "") for word in _WORD.findall(re.sub(r"\.(?=\s|,|$)", "", plain))]


def normalised(name: str) -> str:
    """`The Ünion & Sons Co., Ltd.` -> `union sons`; the whole name where nothing but legal forms would be left."""
    parts = words(name)
    while len(parts) > 1 and parts[0] == "the":
        parts.pop(0)
    core = list(parts)
    while len(core) > 1 and (core[-1] in _LEGAL or core[-1] in ("&", "and")):
        core.pop()
    return " ".join(part for part in core if part != "and") or " ".join(core)


def company_key(name: str, cik: str | None = None, lei: str | None = None) -> str:
    """By a registry's number where one is known, EDGAR's before the LEI, else by the name."""
    number = cik or (lei and lei.casefold())
    return f"company:{number or normalised(name)}"


def stated_lei(text: str) -> str | None:
    """The first Legal Entity Identifier that a text calls one and whose check digits are right (ISO 17442)."""
    for match in _LEI.finditer(text):
        found = match[1] or match[2]
        if is_lei(found):
            return found
    return None


def is_lei(code: str) -> bool:
    """Twenty letters and digits that, letters counted from A = 10, leave 1 when divided by 97 (ISO 7064, MOD 97-10)."""
    if not re.fullmatch("[A-Z0-9]{18}[0-9]{2}", code):
        return False
    return int("".join(str(int(character, 36)) for character in code)) % 97 == 1


def person_key(name: str, company: str) -> str:
    """Within the company in whose filing the person stands: two of one name in two companies are two."""
    parts = person_words(name)
    return f"person:{company.partition(':')[2]}/{parts[0]} {parts[-1]}"


def person_words(name: str) -> list[str]:
    """Without titles, initials and generations: `Dr. Jane Q. Doe, Jr.` -> jane, doe; raises no error on a lone word."""
    parts = [word for word in words(name) if word not in _HONORIFIC]
    return [word for word in parts if len(word) > 1] or parts or words(name)


def company_aliases(name: str, ticker: str | None = None, short: Iterable[str] = ()) -> tuple[str, ...]:
    """The name, its telling first word, the ticker, and short names that the text defines."""
    full = normalised(name)
    first = full.partition(" ")[0]
    found = [full, *map(normalised, short), *([ticker.casefold()] if ticker else [])]
    if len(first) >= 4 and first not in _GENERIC and not first.isdigit():
        found.append(first)
    return tuple(dict.fromkeys(alias for alias in found if alias))


def person_aliases(name: str) -> tuple[str, ...]:
    parts = person_words(name)
    return tuple(dict.fromkeys((f"{parts[0]} {parts[-1]}", " ".join(words(name)))))


def spans_of_words(text: str) -> tuple[str, ...]:
    """Every run of up to seven words of a question: what may be the name of an entity."""
    found = words(text)
    runs = [" ".join(found[i : i + n]) for n in range(_LONGEST, 0, -1) for i in range(len(found) - n + 1)]
    return tuple(dict.fromkeys([*runs, *(run.replace(" and ", " ") for run in runs)]))


@dataclass(frozen=True, slots=True)
class Merge:
    """Two keys that are one entity, as long as these records are read together."""

    kept: str
    merged: str
    alias: str
    """The name they share."""


def merges(entities: Iterable[Entity]) -> tuple[Merge, ...]:
    """Company keys made of a name that is an alias of exactly one other company with a telling key.

    `company:acme` goes to `company:0000012345`, whose aliases hold `acme`; where two companies are called so, neither
    takes it. Nothing is stored: without the records that support a merge there is none.
    """
    held: dict[str, set[str]] = defaultdict(set)
    sizes: dict[str, int] = defaultdict(int)
    for entity in entities:
        if entity.type == "company":
            sizes[entity.key] += entity.count
            for alias in entity.aliases:
                held[alias].add(entity.key)
    found = []
    for key in sorted(sizes):
        name = key.partition(":")[2]
        others = [other for other in held.get(name, ()) if other != key and _outranks(other, key)]
        if len(others) == 1:
            found.append(Merge(others[0], key, name))
    return tuple(found)


def _outranks(other: str, key: str) -> bool:
    """EDGAR's number before an LEI, an LEI before a name, a longer name before a shorter."""
    return _standing(other) > _standing(key)


def _standing(key: str) -> tuple[int, int]:
    name = key.partition(":")[2]
    return (2, 0) if name.isdigit() else (1, 0) if is_lei(name.upper()) else (0, len(name))


def canonical(entities: Iterable[Entity]) -> Mapping[str, str]:
    """Merged key -> key it is kept under, chains followed to their end."""
    steps = {merge.merged: merge.kept for merge in merges(entities)}
    ends = {}
    for key in steps:
        end = key
        while end in steps:
            end = steps[end]
        ends[key] = end
    return ends
