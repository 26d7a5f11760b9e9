"""Counts over the graph's records: who discusses a theme, who names an entity, who shares an auditor; by what unit."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.graph.asking import Asked, Unit
from app.graph.meaning import near
from app.graph.names import normalised, spans_of_words
from app.graph.sectors import assigned
from app.graph.themes import Theme, named_theme, theme_key
from app.question.reading import ANNUAL
from app.tools import Tools
from app.types import Condition, Document, DocumentMeta, Entity, Filter, Mention, Question, Relation

UNKNOWN = "unknown"
_PASSING = 2
"""Mentions from which a filing discusses a theme, rather than touching it."""
_WORDS = 5
"""Of a theme in a question's own words at most; what is longer, or has a number, asks for more than a theme."""


@dataclass(frozen=True, slots=True)
class Member:
    """One filing that counts, and the text that makes it."""

    document_id: str
    meta: DocumentMeta
    mention: Mention
    weight: int
    """Mentions; 1 of a relation."""
    group: str = ""
    """Of a grouping by a relation: whom it leads to."""

    @property
    def company(self) -> str:
        return self.meta.company or self.meta.title


@dataclass(frozen=True, slots=True)
class Tally:
    """Members by the value of the unit that was asked for; the largest first, then by name."""

    what: str
    """What was counted, in words."""
    groups: Mapping[str, Sequence[Member]]

    @property
    def members(self) -> list[Member]:
        return [member for members in self.groups.values() for member in members]


async def scope(question: Question, asked: Asked, tools: Tools) -> Filter:
    """The question's filter, narrowed to each company's newest filing of its kind where only that is meant."""
    if not asked.latest:
        return question.where
    documents = await tools.catalogue()
    newest: dict[str, Document] = {}
    pool = [d for d in documents if d.meta.form in ANNUAL] or documents
    for document in sorted(pool, key=lambda d: (d.meta.period_end or "", d.meta.filed or "", d.id)):
        newest[document.meta.company or document.meta.title] = document
    ids = tuple(sorted(document.id for document in newest.values()))
    return question.where.narrowed(Condition("document_id", "$in", ids))


async def counted(asked: Asked, where: Filter, tools: Tools) -> Tally | None:
    """None where the graph knows neither the relation, the theme nor the name, nor a phrase that means it."""
    theme = named_theme(asked.what) if asked.what else None
    if asked.role and not asked.risk:
        found = await tools.records(Relation, where, {"predicate": [asked.role]})
        if asked.grouping:
            return _by_relation(asked, found) if found else None
        named = set(spans_of_words(asked.what))
        if of_name := [r for r in found if _called(r.object_name) & named]:
            of_both = [r for r in of_name if r.subject != r.object and _called(r.subject_name) & named]
            return _by_relation(asked, of_both or of_name)
    if theme is not None:
        return await _by_theme(asked, theme, where, tools)
    if not asked.what:
        return None
    return await _by_name(asked, where, tools) or await _by_meaning(asked, where, tools)


async def resectored(tally: Tally, names: Sequence[str], where: Filter, tools: Tools) -> Tally:
    """A tally by sector anew, by the sectors that the question names; companies of no such sector are left out."""
    known = {member.company: member.meta.sector for member in tally.members}
    everyone = {d.meta.company or d.meta.title: d.meta.sector for d in await tools.catalogue()}
    sectors = await assigned(names, everyone | known, where, tools)
    tools.note("sectors", **{name: sorted(c for c, sector in sectors.items() if sector == name) for name in names})
    members = [member for member in tally.members if member.company in sectors]
    return Tally(tally.what, _grouped(members, lambda member: sectors[member.company]))


def _called(name: str) -> set[str]:
    """Its whole name and its first word, unless that is short."""
    full = normalised(name)
    first = full.partition(" ")[0]
    return {full, first} if len(first) > 4 else {full}


def _by_relation(asked: Asked, relations: Iterable[Relation]) -> Tally:
    members = []
    for r in relations:
        who = r.subject_name if asked.role == "officer" else r.object_name
        members.append(Member(r.document_id, r.meta, r.mention, 1, who))
    if asked.grouping:
        return Tally(f"{asked.role}s", _grouped(members, lambda member: member.group))
    return Tally(f"{asked.role}: {asked.what}", _grouped(members, lambda member: _value(member.meta, asked.unit)))


async def _by_theme(asked: Asked, theme: Theme, where: Filter, tools: Tools) -> Tally:
    key = theme_key(theme.name)
    if asked.risk:
        risks = await tools.records(Relation, where, {"predicate": ["risk"], "keys": [key]})
        members = [Member(r.document_id, r.meta, r.mention, 1) for r in risks]
        what = f"risk factors on {theme.label}"
    else:
        entities = await tools.records(Entity, where, {"keys": [key]})
        members = [_of_entity(e) for e in entities if e.count >= _PASSING]
        what = f"mentions of {theme.label}"
    return Tally(what, _grouped(members, lambda member: _value(member.meta, asked.unit)))


async def _by_name(asked: Asked, where: Filter, tools: Tools) -> Tally | None:
    """Filings that name an entity; of several in the phrase, those that name all of them."""
    entities = await tools.records(Entity, where, {"aliases": spans_of_words(asked.what)})
    by_alias: dict[str, list[Entity]] = defaultdict(list)
    longest = _longest([alias for e in entities for alias in e.aliases], asked.what)
    for entity in entities:
        for alias in longest & set(entity.aliases):
            by_alias[alias].append(entity)
    if not by_alias:
        return None
    common = set.intersection(*({e.document_id for e in found} for found in by_alias.values()))
    rarest = min(by_alias.values(), key=lambda found: len({e.document_id for e in found}))
    members = [_of_entity(e) for e in rarest if e.document_id in common]
    return Tally(f"mentions of {asked.what}", _grouped(members, lambda member: _value(member.meta, asked.unit)))


async def _by_meaning(asked: Asked, where: Filter, tools: Tools) -> Tally | None:
    """Filings that keep speaking of what means the same, in other words than the question's."""
    if len(asked.what.split()) > _WORDS or any(character.isdigit() for character in asked.what):
        return None
    found = [entity for entity in await near(asked.what, where, tools) if entity.count >= _PASSING]
    if not found:
        return None
    phrases = sorted({entity.name for entity in found})
    what = f"mentions of what is near to {asked.what!r} in meaning ({', '.join(phrases)})"
    return Tally(what, _grouped([_of_entity(e) for e in found], lambda member: _value(member.meta, asked.unit)))


def _longest(aliases: Iterable[str], phrase: str) -> set[str]:
    """Aliases that stand in the phrase and in no longer one that does."""
    runs = set(spans_of_words(phrase))
    there = {alias for alias in aliases if alias in runs}
    return {a for a in there if not any(a != b and f" {a} " in f" {b} " for b in there)}


def _of_entity(entity: Entity) -> Member:
    return Member(entity.document_id, entity.meta, entity.mentions[0], entity.count)


def _value(meta: DocumentMeta, unit: Unit) -> str:
    if unit == "filing":
        return meta.title
    if unit == "company":
        return meta.company or meta.title
    return str(getattr(meta, unit) or UNKNOWN)


def _grouped(members: Sequence[Member], value: Callable[[Member], str]) -> dict[str, list[Member]]:
    """One member per filing and group, with the weights of all; groups by companies, then by weight, then by name."""
    merged: dict[tuple[str, str], Member] = {}
    for member in members:
        key = (value(member), member.document_id)
        known = merged.get(key)
        merged[key] = replace(known, weight=known.weight + member.weight) if known else member
    groups: dict[str, list[Member]] = defaultdict(list)
    for (name, _), member in merged.items():
        groups[name].append(member)
    for found in groups.values():
        found.sort(key=lambda m: (m.company, -(m.meta.fiscal_year or 0), -m.weight, m.document_id))
    return dict(sorted(groups.items(), key=lambda item: (item[0] == UNKNOWN, *_size(item[1]), item[0])))


def _size(members: Sequence[Member]) -> tuple[int, int]:
    return -len({m.company for m in members}), -sum(m.weight for m in members)
