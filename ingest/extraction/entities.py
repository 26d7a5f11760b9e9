"""The entities and relations of one filing: whom and what it names, what it says of them, which risks it writes about.

Names come from a statistical tagger and from rules; words that the filing also writes in small letters are no names.
Nothing here asks a model on a server, and nothing depends on other filings.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from app.graph.names import (
    company_aliases,
    company_key,
    normalised,
    person_aliases,
    person_key,
    person_words,
    stated_lei,
    words,
)
from app.graph.themes import BY_NAME, mentions_of, theme_key, themes_of_factor
from app.types import Chunk, DocumentMeta, Entity, EntityType, Mention, Page, Relation
from ingest.extraction.ner import names
from ingest.extraction.phrases import concepts
from ingest.extraction.relations import Stated, stated, subsidiaries
from ingest.extraction.sentences import first_sentence

_MOST_MENTIONS = 100
"""Kept of one entity in one filing; all are counted."""
_BOILERPLATE = frozenset(
    normalised(name)
    for name in (
        "aoci|asc|asu|audit committee|board|board of directors|bylaws|ceo|cfo|code|code of conduct|commission|"
        "committee of sponsoring organizations of the treadway commission|common stock|company|coso|ebitda|edgar|"
        "employer|eps|esg|exchange act|fasb|fasb asc|financial accounting standards board|form|gaap|group|incorporated|"
        "internal control integrated framework|internal revenue code|internal revenue service|irs|isda|libor|"
        "management|md&a|nasdaq|new york stock exchange|nyse|pcaob|public company accounting oversight board|r&d|"
        "registrant|report|rsu|rsus|sarbanes oxley|sec|securities act|securities and exchange commission|"
        "securities exchange act|sg&a|sofr|state|supplementary data|treasury|trustee|u s|"
        "u s securities and exchange commission|united states securities and exchange commission|us|us gaap|xbrl"
    ).split("|")
)
_NOT_A_NAME = re.compile(
    r"\d{4}|\b(?:Act|Law|Form|Rule|Section|Item|Note|Exhibit|Schedule|Part|Table|Statements?|Plan|Agreement|Index|Proceedings"
    r"|Disclosures|Framework|Department)\b|[•·|©®/]"
)
_LEGAL_ALONE = re.compile(
    r"(?:(?:Inc|Corp|Co|Company|Corporation|LLC|LLP|L\.?P|Ltd|N\.A|S\.A|Trust|Bank|Group)\b\.?,? ?)+(?:[A-Z]\w+)?"
)
_NOT_A_PERSON = re.compile(
    r"\b(?:Vice|Senior|Executive|President|Chief|Officer|Director|Chair\w*|Corporate|Treasurer|Secretary|Counsel|Company|Board"
    r"|Committee|Inc|Corp|LLC|Group|Date|Title|Signature|Name|Principal|Former|Independent|Vice)\b",
    re.I,
)
_PROSE = ("text",)
_DEFINED = re.compile(
    r",?(?: [A-Z][\w.]+){0,2}[ ]\((?:the |collectively,? |together[\w ,]*)?[“\"]([A-Z][^”\"]{1,40})[”\"]"
)
_RISKS = "risk factors"
_APPENDED = re.compile(r"\bexhibits?\b|\bform 10-k summary\b", re.I)
"""Sections in which contracts follow: rules read them, the tagger does not."""
_HEADING_CHARS = 240
_COVER = 20
"""First chunks, in which a filing says who files it."""
_STARTS = re.compile(r"[A-Z“\"*]")
"""A bullet or a small letter continues what is above."""


@dataclass(slots=True)
class _Found:
    """What is known of one entity so far."""

    type: EntityType
    names: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, None] = field(default_factory=dict)
    mentions: dict[tuple[int, int, int], Mention] = field(default_factory=dict)


def extract(
    document_id: str, meta: DocumentMeta, pages: Sequence[Page], chunks: Sequence[Chunk]
) -> list[Entity | Relation]:
    """Records of one filing, the same for the same text."""
    return _Extraction(document_id, meta, chunks).records(pages)


class _Extraction:
    """One filing's names gathered by key."""

    def __init__(self, document_id: str, meta: DocumentMeta, chunks: Sequence[Chunk]) -> None:
        self._document_id = document_id
        self._meta = meta
        self._chunks = chunks
        self._found: dict[str, _Found] = {}
        self._relations: dict[tuple[str, str, str], Relation] = {}
        self._small = _small_words(chunks)
        self._shorts: dict[str, str] = {}
        """Short name -> key of the company for which the text defines it."""
        self._registrant = meta.company or meta.title
        self._lei = next((lei for chunk in chunks[:_COVER] if (lei := stated_lei(chunk.text))), None)
        self._self = company_key(self._registrant, meta.cik, self._lei)

    def records(self, pages: Sequence[Page]) -> list[Entity | Relation]:
        self._add_registrant()
        self._add_stated()
        self._add_named()
        self._add_themes()
        self._add_risks({page.number: page.text for page in pages})
        self._settle()
        self._anchor()
        for phrase, mentions in concepts(self._chunks):
            for mention in mentions:
                self._add(f"concept:{phrase}", "concept", phrase, (phrase,), mention)
        return [*self._entities(), *self._relations.values()]

    def _add_registrant(self) -> None:
        aliases = company_aliases(self._registrant, self._meta.ticker)
        aliases += (self._lei.casefold(),) if self._lei else ()
        own = self._entry(self._self, "company", self._registrant, aliases)
        spoken = sorted(
            {self._registrant, *(" ".join(p.capitalize() for p in aliases[0].split()),)}, key=len, reverse=True
        )
        pattern = re.compile("|".join(rf"\b{re.escape(name)}" for name in spoken), re.I)
        for chunk in self._chunks:
            for match in pattern.finditer(chunk.text):
                mention = _mention(chunk, *match.span())
                own.mentions[mention.page, mention.start, mention.end] = mention
        for alias in aliases:
            self._shorts.setdefault(alias, self._self)

    def _add_stated(self) -> None:
        for chunk in self._chunks:
            for each in (*stated(chunk.text), *subsidiaries(chunk.text)):
                key, name = self._key(each.type, each.name)
                if key is None or (key == self._self and each.predicate != "officer"):
                    continue
                mention = _mention(chunk, each.start, each.end)
                place = chunk.text[each.start : each.end].replace("\n", " ").find(each.name)
                at = _mention(chunk, each.start + place, each.start + place + len(each.name)) if place >= 0 else mention
                self._add(key, each.type, name, self._aliases(each.type, name), at)
                self._relate(each, key, name, mention)

    def _relate(self, each: Stated, key: str, name: str, mention: Mention) -> None:
        subject, object_ = (self._self, self._registrant), (key, name)
        if each.predicate == "officer":
            subject, object_ = object_, subject
        known = self._relations.get((subject[0], each.predicate, object_[0]))
        if known is None or (each.detail and len(each.detail) > len(known.detail or "")):
            self._relations[subject[0], each.predicate, object_[0]] = Relation(
                document_id=self._document_id,
                subject=subject[0],
                predicate=each.predicate,
                object=object_[0],
                subject_name=subject[1],
                object_name=object_[1],
                detail=each.detail,
                mention=mention,
                meta=self._meta,
            )

    def _add_named(self) -> None:
        prose = [c for c in self._chunks if c.kind in _PROSE and not _APPENDED.search(c.section or "")]
        for chunk, found in zip(prose, names([chunk.text for chunk in prose]), strict=True):
            for each in found:
                raw = chunk.text[each.start : each.end]
                if "\n\n" in raw or (each.kind == "person" and not self._personal(raw)):
                    continue
                key, name = self._key(each.kind, raw)
                if key is None:
                    continue
                short = _DEFINED.match(chunk.text[each.end : each.end + 80].replace("\n", " "))
                defined = (short[1],) if short and each.kind == "company" else ()
                if defined:
                    self._shorts.setdefault(normalised(defined[0]), key)
                aliases = (*self._aliases(each.kind, name), *map(normalised, defined))
                self._add(key, each.kind, name, aliases, _mention(chunk, each.start, each.end))

    def _settle(self) -> None:
        """One kind for one name: what the tagger calls a place here and a company there is what it is more often."""
        by_name: dict[str, list[str]] = defaultdict(list)
        for key in self._found:
            kind, _, name = key.partition(":")
            if kind in ("company", "place", "person"):
                by_name[name.rpartition("/")[2]].append(key)
        related = {end for relation in self._relations.values() for end in (relation.subject, relation.object)}
        for keys in by_name.values():
            best = max(keys, key=lambda key: (key == self._self, key in related, len(self._found[key].mentions)))
            for key in keys:
                if key != best and not (key in related and best in related):
                    del self._found[key]

    def _anchor(self) -> None:
        """Both ends of a relation are entities: one that is nowhere named is mentioned by what states the relation."""
        for r in self._relations.values():
            for key, name in ((r.subject, r.subject_name), (r.object, r.object_name)):
                kind: Any = key.partition(":")[0]
                found = self._found.get(key) or self._entry(key, kind, name, self._aliases(kind, name))
                if not found.mentions:
                    found.mentions[r.mention.page, r.mention.start, r.mention.end] = r.mention

    def _add_themes(self) -> None:
        for chunk in self._chunks:
            if chunk.kind in _PROSE:
                for theme, start, end in mentions_of(chunk.text):
                    label = BY_NAME[theme].label
                    self._add(theme_key(theme), "theme", label, (label,), _mention(chunk, start, end))

    def _add_risks(self, pages: dict[int, str]) -> None:
        """A relation from the registrant to each theme of each of its risk factors; a heading is the detail."""
        risky = [chunk for chunk in self._chunks if _RISKS in (chunk.section or "").casefold() and chunk.kind in _PROSE]
        for number, group in groupby(sorted(risky, key=lambda c: (c.page, c.start)), key=lambda c: c.page):
            on_page = list(group)
            starts = [chunk.start for chunk in on_page]
            for start, heading_end, end in risk_factors(pages[number], starts[0], on_page[-1].end):
                heading = " ".join(pages[number][start:heading_end].split())
                chunk = on_page[bisect_right(starts, start) - 1]
                mention = Mention(chunk.id, number, start, min(heading_end, chunk.end))
                for theme in themes_of_factor(heading, pages[number][heading_end:end]):
                    self._add_risk(theme, heading[:_HEADING_CHARS], mention)

    def _add_risk(self, theme: str, heading: str, mention: Mention) -> None:
        key = (self._self, f"risk/{mention.page}/{mention.start}", theme_key(theme))
        label = BY_NAME[theme].label
        self._entry(theme_key(theme), "theme", label, (label,))
        self._relations[key] = Relation(
            self._document_id,
            self._self,
            "risk",
            theme_key(theme),
            self._registrant,
            label,
            heading,
            mention,
            self._meta,
        )

    def _key(self, kind: EntityType, raw: str) -> tuple[str | None, str]:
        """The key and the name to show; no key for what is not a name."""
        name = _shown(raw)
        plain = normalised(name)
        if kind == "person":
            known = len(person_words(name)) >= 2 and not _NOT_A_PERSON.search(name) and not _NOT_A_NAME.search(name)
            return (person_key(name, self._self), name) if known and not self._ordinary(name) else (None, name)
        if kind in ("segment", "product"):
            usable = len(plain) > 2 and plain not in _BOILERPLATE and (kind == "segment" or not self._ordinary(name))
            return (f"{kind}:{self._self.partition(':')[2]}/{plain}" if usable else None), name
        if not is_name(name) or self._ordinary(name):
            return None, name
        if kind == "place":
            return f"place:{plain}", name
        return self._shorts.get(plain) or company_key(name), name

    def _personal(self, raw: str) -> bool:
        parts = [word for word in words(raw) if len(word) > 1]
        return 2 <= len(parts) <= 4 and len(set(parts)) == len(parts) and self._small.isdisjoint(parts)

    def _ordinary(self, name: str) -> bool:
        """Whether all its words stand in the filing in small letters too, or it is a heading in capitals."""
        parts = [word for word in words(name) if len(word) > 1]
        return not parts or all(word in self._small for word in parts)

    def _aliases(self, kind: EntityType, name: str) -> tuple[str, ...]:
        if kind == "person":
            return person_aliases(name)
        return company_aliases(name) if kind == "company" else (normalised(name),)

    def _entry(self, key: str, kind: EntityType, name: str, aliases: Sequence[str]) -> _Found:
        found = self._found.setdefault(key, _Found(kind))
        found.names[name] += 1
        found.aliases |= dict.fromkeys(aliases)
        return found

    def _add(self, key: str, kind: EntityType, name: str, aliases: Sequence[str], mention: Mention) -> None:
        found = self._entry(key, kind, name, aliases)
        found.mentions.setdefault((mention.page, mention.start, mention.end), mention)

    def _entities(self) -> Iterator[Entity]:
        for key, found in self._found.items():
            if mentions := sorted(found.mentions.values(), key=lambda m: (m.page, m.start)):
                name = self._registrant if key == self._self else _commonest(found.names)
                kept = tuple(mentions[:_MOST_MENTIONS])
                yield Entity(
                    self._document_id, key, found.type, name, tuple(found.aliases), kept, len(mentions), self._meta
                )


def is_name(name: str) -> bool:
    """Whether it may name a company or place, rather than what every filing speaks of."""
    plain = normalised(name)
    barred = plain in _BOILERPLATE or _NOT_A_NAME.search(name) or _LEGAL_ALONE.fullmatch(name)
    return not barred and 1 < len(plain) <= 70


def risk_factors(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(start, end of heading, end) of the risk factors in a page's text[start:end], first in reading order.

    A factor begins after a blank line, or with a heading: a line in title case above prose.
    """
    breaks = [m.end() for m in re.finditer(r"\n\s*\n", text[start:end])]
    lines = list(re.finditer(r"[^\n]+", text[start:end]))
    titled = [line.start() for line, below in pairwise(lines) if _is_heading(line[0], below[0])]
    begins = sorted(begin for begin in {0, *breaks, *titled} if _STARTS.match(text, start + begin))
    for a, b in zip(begins, [*begins[1:], end - start], strict=bool(begins)):
        body = text[start + a : start + b]
        if len(body.split()) >= 12:
            yield start + a, start + a + first_sentence(body), start + b


def _is_heading(line: str, below: str) -> bool:
    parts = line.split()
    capitals = sum(part[:1].isupper() for part in parts if len(part) > 3)
    long = sum(len(part) > 3 for part in parts)
    return (
        3 <= len(parts) <= 30
        and not line.rstrip().endswith((".", ",", ";"))
        and capitals >= 0.8 * long
        and below[:1].isupper()
    )


def _small_words(chunks: Sequence[Chunk]) -> frozenset[str]:
    """Words that the filing writes without a capital, more than once."""
    seen = Counter(word for chunk in chunks for word in re.findall(r"(?<![\w.@/-])[a-z][a-z]+\b", chunk.text))
    return frozenset(word for word, count in seen.items() if count > 1)


def _mention(chunk: Chunk, start: int, end: int) -> Mention:
    """From a slice of the chunk to one of its page."""
    return Mention(chunk.id, chunk.page, chunk.start + start, chunk.start + end)


def _shown(raw: str) -> str:
    """On one line, without a possessive; a name all in capitals as it is otherwise spelled."""
    name = " ".join(re.sub(r"['’]s$", "", raw.strip()).split()).strip(" ,;:")
    if name.isupper() and len(name) > 5:
        return " ".join(
            part if part in ("LLP", "LLC", "LP", "N.A.", "AG", "SE") else part.capitalize() for part in name.split()
        )
    return name


def _commonest(names: Counter[str]) -> str:
    return min(names, key=lambda name: (-names[name], -len(name), name))
