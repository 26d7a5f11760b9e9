"""A tally in words: who comes first, and each member with the text that makes it one."""

from collections.abc import Mapping, Sequence

from app.evidence.quotes import units
from app.graph.asking import Asked
from app.graph.counting import Member, Tally
from app.types import Chunk, Hit

_PLURAL = {
    "sector": "sectors",
    "company": "companies",
    "filing": "filings",
    "form": "forms",
    "fiscal_year": "fiscal years",
}
_QUOTED_CHARS = 300
_MOST_NAMED = 40
"""Members named in one line beyond those that are quoted."""


def told(asked: Asked, tally: Tally, chunks: Sequence[Chunk], k: int) -> tuple[str, list[Hit]]:
    """The answer with its markers, and the hits they refer to.

    The first `k` members are quoted, all are counted and named. A member whose chunk is not among `chunks` is none.
    """
    by_id = {chunk.id: chunk for chunk in chunks}
    groups = {
        name: shown
        for name, members in tally.groups.items()
        if (shown := _shown(asked, [m for m in members if m.mention.chunk_id in by_id]))
    }
    hits: list[Hit] = []
    lines = [_headline(asked, tally.what, groups)]
    headed = asked.grouping or asked.unit not in ("company", "filing")
    rest: list[str] = []
    for name, members in groups.items():
        quoted = members[: max(0, k - len(hits))]
        lines += [f"\n{name}:"] if headed else []
        for member in quoted:
            chunk = by_id[member.mention.chunk_id]
            hits.append(Hit(chunk, len(hits) + 1, 1 / (len(hits) + 1)))  # weights of different groups do not compare
            lines.append(f"- {member.company}: {_quote(member, chunk)} [{len(hits)}]")
        others = [member.company for member in members[len(quoted) :]]
        if headed and others:
            lines.append(f"- {_listed(others)}")
        rest += [] if headed else others
    if rest:
        lines.append(f"Also: {_listed(rest)}.")
    return "\n".join(lines), hits


def _shown(asked: Asked, members: Sequence[Member]) -> list[Member]:
    """One member for each company, its newest filing; every filing where filings are asked for."""
    if asked.unit == "filing":
        return list(members)
    newest: dict[str, Member] = {}
    for member in members:
        known = newest.get(member.company)
        if known is None or _age(member) > _age(known):
            newest[member.company] = member
    return list(newest.values())


def _age(member: Member) -> tuple[str, int, str]:
    return member.meta.period_end or "", member.meta.fiscal_year or 0, member.document_id


def _headline(asked: Asked, what: str, groups: Mapping[str, Sequence[Member]]) -> str:
    if not groups:
        return f"None of the filings has {what}."
    companies = {member.company for members in groups.values() for member in members}
    filings = {member.document_id for members in groups.values() for member in members}
    if asked.grouping:
        parts = [f"{name}: {_listed([m.company for m in members])}" for name, members in groups.items()]
        return f"{'; '.join(parts)}."
    if asked.unit == "filing":
        how_many = f"{_number(len(filings), 'filing')} of {_number(len(companies), 'company')}"
        return f"{how_many} with {what}: {_listed(list(groups))}."
    if asked.unit == "company":
        first = next(iter(groups))
        most = sum(m.weight for m in groups[first])
        lead = f" {first} comes first, with {most}." if "most" in asked.why or (len(groups) > 1 and most > 1) else ""
        return f"{_number(len(groups), 'company')} with {what}.{lead}"
    counts = {name: len(members) for name, members in groups.items()}
    most = max(counts.values())
    leaders = [name for name, count in counts.items() if count == most]
    others = [f"{name} {count}" for name, count in counts.items() if count < most]
    lead = f"{_listed(leaders)} {'comes' if len(leaders) == 1 else 'come'} first, with {_number(most, 'company')}"
    return f"{lead} with {what}{f'; {_listed(others)}' if others else ''}."


def _quote(member: Member, chunk: Chunk) -> str:
    """The sentence or row of the chunk in which the mention begins, on one line."""
    at = member.mention.start - chunk.start
    for unit in units(chunk):
        if unit.start <= at < unit.end:
            return " ".join(unit.text.split())[:_QUOTED_CHARS]
    return " ".join(chunk.text[at : at + _QUOTED_CHARS].split())


def _number(count: int, noun: str) -> str:
    return f"{count} {noun if count == 1 else _PLURAL[noun]}"


def _listed(names: Sequence[str]) -> str:
    shown = list(dict.fromkeys(names))[:_MOST_NAMED]
    if len(names) > _MOST_NAMED:
        return f"{', '.join(shown)} and {len(names) - _MOST_NAMED} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
