"""The tools an agent may call: each takes a short input, gives short text and the passages that carry it."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.agent.actions import Actions, ToolName
from app.computing.arithmetic import CalculationError, evaluate, rounded
from app.errors import InvalidQuery, LimitExceeded, SextantError
from app.evidence.quotes import support, units
from app.graph.names import spans_of_words
from app.prompts import sanitise
from app.question.reading import read, without_names
from app.retrieval.search import Retrieval
from app.tools import Tools
from app.types import Chunk, Condition, Document, Entity, Filter, Hit, Question, Relation, Rows

_HITS = 4
"""Passages a search gives."""
_PLACES = 4
_SHOWN_CHARS = 220
_SHOWN_ROWS = 8
_PAGE = re.compile(r"(?P<document>\S+?)[\s,#:]+(?:page\s*)?(?P<number>\d{1,4})$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Action:
    """What a model asks for; company and year narrow a search and may be empty."""

    tool: ToolName
    input: str
    company: str = ""
    year: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of an action."""

    text: str
    hits: tuple[Hit, ...] = ()
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Toolbox:
    """One request's tools, over the filings that the caller may see and the request's own filters."""

    question: Question
    catalogue: Sequence[Document]
    actions: Actions

    @property
    def _tools(self) -> Tools:
        return self.actions.tools

    async def call(self, action: Action, thought: str) -> Observation:
        """Never fails but for the request's own limits: what a tool cannot do is an observation as well."""
        run: Mapping[ToolName, Callable[[Action], Awaitable[Observation]]] = {
            "search": self._search,
            "open_page": self._open_page,
            "follow_entity": self._follow_entity,
            "figures": self._figures,
            "calculate": self._calculate,
        }
        arguments = {name: value for name in ("input", "company", "year") if (value := getattr(action, name))}
        try:
            return await self.actions.take(
                action.tool,
                arguments,
                thought,
                lambda: run[action.tool](action),
                lambda found: [hit.chunk.id for hit in found.hits] or [found.text],
            )
        except LimitExceeded:
            raise
        except SextantError as error:
            return Observation(f"error: {error}", ok=False)

    def shown(self, hits: Sequence[Hit], question: str) -> str:
        """The best of them, a line each."""
        return "\n".join(_shown(hit, question) for hit in hits[:_HITS])

    async def _search(self, action: Action) -> Observation:
        named = f"{action.company} {action.input} {action.year}".strip()
        reading = read(named, self.catalogue)
        where = self.question.where
        if reading.documents:
            where = Filter((*where.conditions, Condition("document_id", "$in", reading.documents)), where.access)
        asked = replace(self.question, text=named, k=_HITS)
        terms = without_names(named, reading.companies)
        hits = (await Retrieval().fused(asked, terms, where, self._tools))[:_HITS]
        return Observation(self.shown(hits, named) or "nothing found", tuple(hits))

    async def _open_page(self, action: Action) -> Observation:
        place = _PAGE.fullmatch(action.input.strip())
        if place is None:
            return Observation("error: open_page takes a document id and a page number", ok=False)
        number = int(place["number"])
        where = Filter(
            (
                *self.question.where.conditions,
                Condition("document_id", "$eq", place["document"]),
                Condition("page", "$eq", number),
            ),
            self.question.where.access,
        )
        asked = replace(self.question, where=where, k=_HITS)
        hits = (await Retrieval().fused(asked, asked.text, where, self._tools))[:_HITS]
        return Observation(self.shown(hits, asked.text) or "no such page", tuple(hits))

    async def _follow_entity(self, action: Action) -> Observation:
        """Relations in which the entity stands, each with the passage that states it."""
        where = self.question.where
        entities = await self._tools.records(Entity, where, {"aliases": spans_of_words(action.input)})
        keys = sorted({entity.key for entity in entities})
        if not keys:
            return Observation("no such entity in the graph", ok=False)
        relations = (await self._tools.records(Relation, where, {"keys": keys}))[: 2 * _HITS]
        chunks = await self._tools.chunks([r.mention.chunk_id for r in relations][:_HITS], where)
        lines = [sanitise(f"{r.object_name} is {r.predicate} of {r.subject_name}") for r in relations]
        return Observation("\n".join(dict.fromkeys(lines)) or "no relations", _hits(chunks))

    async def _figures(self, action: Action) -> Observation:
        rows = await self._tools.sql(action.input, limit=_SHOWN_ROWS)
        ids = _column(rows, "chunk_id")
        chunks = await self._tools.chunks(list(dict.fromkeys(ids))[:_HITS], self.question.where) if ids else []
        shown = [place for place, name in enumerate(rows.columns) if name != "chunk_id"]
        table = [rows.columns, *rows.rows]
        lines = [", ".join(sanitise(str(row[place])) for place in shown) for row in table]
        return Observation("\n".join(lines) if rows.rows else "no rows", _hits(chunks))

    async def _calculate(self, action: Action) -> Observation:
        try:
            value = evaluate(action.input)
        except CalculationError as error:
            raise InvalidQuery(str(error)) from None
        return Observation(f"{action.input.strip()} = {rounded(value, _PLACES).normalize():,f}")


def _hits(chunks: Sequence[Chunk]) -> tuple[Hit, ...]:
    return tuple(Hit(chunk, rank, 1 / rank) for rank, chunk in enumerate(chunks, start=1))


def _column(rows: Rows, name: str) -> list[str]:
    if name not in rows.columns:
        return []
    place = rows.columns.index(name)
    return [str(row[place]) for row in rows.rows if row[place]]


def _shown(hit: Hit, question: str) -> str:
    """Title, page, and the sentence or row that says most of what is asked."""
    best = max(units(hit.chunk), key=lambda unit: support(question, unit.text, ""), default=None)
    text = sanitise(best.text if best else hit.chunk.text)[:_SHOWN_CHARS]
    return f"{sanitise(hit.chunk.meta.title)}, {hit.chunk.document_id} page {hit.chunk.page}: {' '.join(text.split())}"


def unavailable(tools: Tools) -> frozenset[ToolName]:
    """Tools that this index cannot serve."""
    return frozenset({"figures"} if tools.ports.figures is None else ())
