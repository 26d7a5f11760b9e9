"""Whatever is put, replaced and deleted, in whatever order: the graph is the one of what is left."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.qdrant_edge import EdgeStore
from app.graph.asking import asked
from app.graph.communities import Community, communities
from app.graph.counting import counted
from app.graph.names import Merge, company_key, merges, person_key
from app.ports import WritableStore
from app.tools import Ports, Tools
from app.types import DocumentMeta, Entity, Filter, Mention, Relation
from tests.fakes import STAMP, FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder

pytestmark = pytest.mark.anyio

NAMES = ("Mill", "Mill Stone", "Dam", "Weir", "Inn")
Step = tuple[str, tuple[tuple[int, int], ...] | None]
"""A document, and the (name, page) that its new version mentions; None where it is deleted."""
versions = st.lists(st.tuples(st.integers(0, len(NAMES) - 1), st.integers(1, 3)), min_size=1, max_size=5).map(tuple)
steps = st.lists(st.tuples(st.sampled_from("abc"), st.none() | versions), min_size=1, max_size=8)


def records(document: str, places: Sequence[tuple[int, int]]) -> list[Entity | Relation]:
    """Mentions, a theme, and an auditor and an officer who are called alike everywhere."""
    meta = DocumentMeta(document, f"{document}.pdf", company=document.upper(), sector="Mills")
    own = company_key(document)
    at = {page: Mention(f"{document}/{page}", page, 0, 4) for _, page in places}
    found: list[Entity | Relation] = []
    for number in sorted({name for name, _ in places}):
        mentions = tuple(at[page] for page in sorted({page for name, page in places if name == number}))
        key, name = company_key(NAMES[number]), NAMES[number]
        aliases = (name.lower(), name.split()[0].lower())
        found.append(Entity(document, key, "company", name, aliases, mentions, len(mentions), meta))
    first = at[places[0][1]]
    found.append(Entity(document, "theme:weather", "theme", "severe weather", ("severe weather",), (first,), 1, meta))
    boss = person_key("Jane Doe", own)
    found.append(Entity(document, boss, "person", "Jane Doe", ("jane doe",), (first,), 1, meta))
    risk = Relation(document, own, "risk", "theme:weather", document, "severe weather", "Hail.", first, meta)
    officer = Relation(document, boss, "officer", own, "Jane Doe", document, "President", first, meta)
    return [*found, risk, officer]


@dataclass(frozen=True)
class View:
    """All that is told of the graph."""

    mentions: Counter[str]
    relations: Counter[tuple[str, str, str]]
    merges: tuple[Merge, ...]
    communities: tuple[Community, ...]
    companies: tuple[str, ...]
    """With a risk factor on weather."""
    bosses: frozenset[str]


async def view(store: WritableStore) -> View:
    entities, relations = await store.records(Entity, Filter(), {}), await store.records(Relation, Filter(), {})
    entities.sort(key=lambda e: (e.document_id, e.key))
    tools = Tools(Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, QuotingGenerator()))
    tally = await counted(asked("How many companies have a risk factor on severe weather?"), Filter(), tools)
    return View(
        sum((Counter({e.key: e.count}) for e in entities), Counter()),
        Counter((r.subject, r.predicate, r.object) for r in relations),
        merges(entities),
        communities(entities, sorted(relations, key=lambda r: (r.document_id, r.subject, r.object))),
        tuple(sorted(tally.groups)) if tally else (),
        frozenset(e.key for e in entities if e.type == "person"),
    )


async def played(store: WritableStore, history: Sequence[Step]) -> View:
    for document, places in history:
        if places is None:
            await store.delete_records(document)
        else:
            await store.put_records(document, records(document, places))
    return await view(store)


async def rebuilt(history: Sequence[Step]) -> View:
    last = dict(history)
    return await played(FakeStore(STAMP), [(d, places) for d, places in sorted(last.items()) if places is not None])


@settings(max_examples=100, deadline=None)
@given(steps)
async def test_a_history_leaves_the_graph_of_its_last_versions(history: Sequence[Step]) -> None:
    assert await played(FakeStore(STAMP), history) == await rebuilt(history)


HISTORIES: Sequence[Sequence[Step]] = (
    [("a", ((0, 1), (1, 1))), ("b", ((1, 2), (2, 2))), ("a", ((3, 3),))],
    [("a", ((0, 1),)), ("b", ((1, 1),)), ("c", ((2, 1), (3, 1))), ("b", None)],
    [("a", ((4, 1),)), ("a", None), ("b", ((0, 1), (1, 2))), ("a", ((0, 2), (2, 2)))],
)


@pytest.mark.parametrize("history", HISTORIES)
async def test_so_it_is_in_the_embedded_engine(
    history: Sequence[Step], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = EdgeStore.open(tmp_path_factory.mktemp("edge") / "index", STAMP)
    try:
        assert await played(store, history) == await rebuilt(history)
    finally:
        store.close()


async def test_two_executives_of_one_name_stay_two_and_one_goes_with_her_filing() -> None:
    store = FakeStore(STAMP)
    both = await played(store, [("a", ((0, 1),)), ("b", ((1, 1),))])
    assert both.bosses == {"person:a/jane doe", "person:b/jane doe"}
    assert (await played(store, [("a", None)])).bosses == {"person:b/jane doe"}
