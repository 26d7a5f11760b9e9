"""The tools an agent may call: each takes a short input, gives short text and the passages that carry it."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from app.agent.actions import Actions, RepeatedAction, ToolName
from app.computing.arithmetic import CalculationError, evaluate, rounded
from app.errors import InvalidFilter, InvalidQuery, LimitExceeded, SextantError
from app.evidence.quotes import support, units
from app.filters import FIELDS, parse_filters
from app.graph.names import spans_of_words
from app.prompts import sanitise
from app.retrieval.search import Retrieval
from app.tools import Tools
from app.types import Chunk, Condition, Entity, Hit, Question, Relation, Rows

SearchBy: TypeAlias = Literal["hybrid", "dense", "graph"]
Search: TypeAlias = Callable[[Question, Tools], Awaitable[Sequence[Hit]]]
"""The best passages for a question, of the filings that it names."""
_HITS = 4
"""Passages a search gives."""
_PLACES = 4
_SHOWN_CHARS = 220
_SHOWN_ROWS = 8
_PAGE = re.compile(r"(?P<document>\S+?)[\s,#:]+(?:page\s*)?(?P<number>\d{1,4})$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Action:
    """What a model asks for; what follows the input narrows a search and may be empty."""

    tool: ToolName
    input: str
    company: str = ""
    year: str = ""
    filters: Any = ()
    """A list of {field, op, value}, as far as the model kept to it."""
    arch: str = ""
    """A SearchBy, as far as the model kept to it; "" is hybrid."""

    @property
    def said(self) -> str:
        """What a model is reminded of having called."""
        return " ".join(word for word in (self.tool, self.company, self.input, self.year) if word)


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of an action."""

    text: str
    hits: tuple[Hit, ...] = ()
    ok: bool = True
    repeated: bool = False
    """It was called so before, and would give the same again."""

    def adds_to(self, known: Set[str]) -> bool:
        """Whether it gives anything but passages known by these chunk ids."""
        return self.ok and (not self.hits or any(hit.chunk.id not in known for hit in self.hits))


@dataclass(frozen=True, slots=True)
class Toolbox:
    """One request's tools, over the filings that the caller may see and the request's own filters."""

    question: Question
    actions: Actions
    searches: Mapping[SearchBy, Search]
    part: str = ""
    """Which part of the question they are for; "" is the whole."""

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
        named = ("input", "company", "year", "filters", "arch")
        arguments = {name: value for name in named if (value := getattr(action, name))}
        if self.part:
            arguments["part"] = self.part
        try:
            return await self.actions.take(
                action.tool,
                arguments,
                thought,
                lambda: run[action.tool](action),
                lambda found: [hit.chunk.id for hit in found.hits] or [found.text],
                once=True,
            )
        except LimitExceeded:
            raise
        except SextantError as error:
            return Observation(f"error: {sanitise(str(error))}", ok=False, repeated=isinstance(error, RepeatedAction))

    def shown(self, hits: Sequence[Hit], question: str) -> str:
        """The best of them, a line each."""
        return "\n".join(_shown(hit, question) for hit in hits[:_HITS])

    async def _search(self, action: Action) -> Observation:
        """Raises InvalidFilter, InvalidQuery."""
        named = f"{action.company} {action.input} {action.year}".strip()
        narrower = self.question.where.narrowed(*conditions(action.filters))
        search = next((search for name, search in self.searches.items() if name == (action.arch or "hybrid")), None)
        if search is None:
            raise InvalidQuery(f"no arch {action.arch!r}; there are {', '.join(self.searches)}")
        hits = await search(replace(self.question, text=named, k=_HITS, where=narrower), self._tools)
        return Observation(self.shown(hits, named) or "nothing found", tuple(hits))

    async def _open_page(self, action: Action) -> Observation:
        place = _PAGE.fullmatch(action.input.strip())
        if place is None:
            return Observation("error: open_page takes a document id and a page number", ok=False)
        number = int(place["number"])
        where = self.question.where.narrowed(
            Condition("document_id", "$eq", place["document"]), Condition("page", "$eq", number)
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


def conditions(filters: Any) -> tuple[Condition, ...]:
    """`[{"field": "fiscal_year", "op": "$gte", "value": "2021"}]`, checked. Raises InvalidFilter."""
    if not isinstance(filters, list | tuple) or not all(isinstance(one, dict) for one in filters):
        raise InvalidFilter("filters are a list of {field, op, value}")
    return tuple(condition for one in filters for condition in _conditions(one))


def _conditions(given: Mapping[str, Any]) -> tuple[Condition, ...]:
    name, value = str(given.get("field")), given.get("value")
    if FIELDS.get(name) == "integer" and isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip()):
        value = int(value)
    return parse_filters({name: {str(given.get("op") or "$eq"): value}})


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
