"""What every store must do: the in-memory fake, the embedded engine, the server's client over HTTP, a true server."""

import math
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient

from app.adapters.qdrant_edge import EdgeStore
from app.adapters.qdrant_server import ServerStore
from app.errors import InvalidFilter
from app.filters import parse_filters
from app.ports import RecordField, WritableStore
from app.types import (
    Access,
    ChunkVectors,
    Condition,
    Entity,
    Filter,
    IndexStamp,
    Leg,
    Page,
    Relation,
    SparseVector,
    Word,
)
from tests.fakes import FakeStore
from tests.integration.edge_rest import EdgeRest, serve
from tests.integration.samples import (
    EVERYONE,
    STAMP,
    X,
    Y,
    as_seen_by,
    chunk,
    document,
    entity,
    page,
    relation,
    sparse,
    unit,
    vectors,
)

pytestmark = pytest.mark.anyio

KINDS = ("fake", "embedded", "stand-in", "server")


@asynccontextmanager
async def opened(kind: str, folder: Path, stamp: IndexStamp = STAMP) -> AsyncIterator[WritableStore]:
    """A fresh store of one kind."""
    if kind == "fake":
        yield FakeStore(stamp)
    elif kind == "embedded":
        embedded = EdgeStore.open(folder, stamp)
        yield embedded
        embedded.close()
    elif kind == "stand-in":
        rest = EdgeRest(folder)
        with serve(rest.app()) as url:
            server = await ServerStore.open(url, None, 10, stamp)
            yield server
            await server.close()
        rest.close()
    else:
        async with on_server(stamp) as store:
            yield store


@asynccontextmanager
async def on_server(stamp: IndexStamp) -> AsyncIterator[WritableStore]:
    """A store under a name of its own on the server that QDRANT_URL names, removed afterwards."""
    url, key = os.environ.get("QDRANT_URL"), os.environ.get("QDRANT_API_KEY")
    if not url:
        pytest.skip("QDRANT_URL is not set: no Qdrant server to test against")
    name = f"contract-{uuid.uuid4().hex[:8]}"
    server = await ServerStore.open(url, key, 30, replace(stamp, collection=name))
    yield server
    await server.close()
    client = AsyncQdrantClient(url=url, api_key=key, timeout=30)
    for suffix in ("", "-pages", "-documents", "-graph"):
        await client.delete_collection(f"{name}-v1{suffix}")
    await client.close()


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[WritableStore]:
    async with opened(request.param, folder) as store:
        yield store


async def found(store: WritableStore, leg: Leg, where: Filter = EVERYONE) -> list[tuple[int, float]]:
    """(ordinal, score) of one leg's hits, best first, scores to five digits."""
    [result] = await store.search([leg], where)
    return [(hit.chunk.ordinal, round(hit.score, 5)) for hit in result.hits]


async def test_what_is_put_comes_back_whole(store: WritableStore) -> None:
    full = chunk(
        3,
        page=2,
        start=5,
        end=20,
        text="Café “naïve” 日本 \U0001f4c8 \u200bﬁ",
        context="Acme | Item 7",
        kind="table",
        section="Item 7",
        columns=("", "2022"),
        unit="in millions",
        parent=(0, 40),
        company="Acme & Söhne",
        cik="0000012345",
        ticker="ACM",
        form="10-K",
        fiscal_year=2023,
        fiscal_period="FY",
        period_end="2023-12-31",
        filed="2024-02-01",
        sector="Energy",
        tenant="t1",
        acl=("a", "b"),
    )
    record = document("acme-1", tenant="t1", acl=("a", "b"), empty_pages=(2,), repaired=True)
    words = (Word(0, 5, (72.0, 36.5, 101.25, 48.0)), Word(6, 9, (104.0, 36.5, 120.75, 48.0)))
    pages = [Page(1, "Crédit due", words, 595.5, 842.0, "i"), Page(2, "")]
    await store.put_pages(record, pages)
    await store.put_chunks([full], [vectors()])
    await store.put_document(record)

    mine = as_seen_by("t1", "b")
    [result] = await store.search([Leg("dense", X, 5)], mine)
    assert [hit.chunk for hit in result.hits] == [full]
    assert await store.pages([("acme-1", 2), ("acme-1", 9), ("acme-1", 1)], mine.access) == [pages[1], None, pages[0]]
    assert await store.documents(mine.access) == [record]
    assert replace(await store.stamp(), collection="contract") == STAMP


async def test_putting_again_changes_nothing_and_putting_other_replaces(store: WritableStore) -> None:
    for _ in range(2):
        await store.put_pages(document(), [page(1), page(2)])
        await store.put_chunks([chunk(0), chunk(1)], [vectors(), vectors(Y)])
        await store.put_document(document())
    assert await store.count(EVERYONE) == 2
    assert await store.chunk_ids("acme-1") == [chunk(0).id, chunk(1).id]
    assert await store.documents() == [document()]

    await store.put_chunks([chunk(0, text="other")], [vectors(Y)])
    [result] = await store.search([Leg("dense", Y, 5)], EVERYONE)
    assert sorted((hit.chunk.ordinal, hit.chunk.text, hit.score) for hit in result.hits) == [
        (0, "other", 1.0),
        (1, "text", 1.0),
    ]


async def test_empty_batches_and_unknown_documents_are_no_error(store: WritableStore) -> None:
    await store.put_chunks([], [])
    await store.put_pages(document(), [])
    assert await store.pages([], Access()) == []
    assert await store.search([], EVERYONE) == []
    assert await store.chunk_ids("none") == []
    assert await store.delete_document("none") == (0, 0)


async def test_dense_hits_are_ordered_by_cosine_and_ties_by_id(store: WritableStore) -> None:
    directions = [unit(0.5, 0.5, 0.5, 0.5), X, unit(0.5, -0.5, 0.5, 0.5), unit(-0.5, 0.5, 0.5, 0.5), Y]
    await store.put_chunks([chunk(i) for i in range(5)], [vectors(direction) for direction in directions])
    halves = sorted((0, 2), key=lambda ordinal: chunk(ordinal).id)
    expected = [(1, 1.0), (halves[0], 0.5), (halves[1], 0.5), (4, 0.0), (3, -0.5)]
    assert await found(store, Leg("dense", X, 5)) == expected
    assert await found(store, Leg("dense", 3 * X, 2)) == expected[:2]
    [result] = await store.search([Leg("dense", X, 3)], EVERYONE)
    assert [(hit.rank, hit.legs["dense"].rank) for hit in result.hits] == [(1, 1), (2, 2), (3, 3)]
    assert result.hits[1].legs["dense"].score == result.hits[1].score


async def test_a_tie_wider_than_the_limit_still_gives_the_lowest_ids(store: WritableStore) -> None:
    many = [chunk(i) for i in range(120)]
    await store.put_chunks(many, [vectors(X, bm25=sparse(t1=1))] * 120)
    lowest = sorted(each.id for each in many)[:3]
    for result in await store.search([Leg("dense", X, 3), Leg("bm25", sparse(t1=1), 3)], EVERYONE):
        assert [hit.chunk.id for hit in result.hits] == lowest


async def test_bm25_multiplies_weights_by_the_inverse_document_frequency(store: WritableStore) -> None:
    terms = [sparse(t1=2, t2=1), sparse(t2=0.5), sparse(t2=1, t3=1), sparse(t3=4)]
    await store.put_chunks([chunk(i) for i in range(4)], [vectors(bm25=each) for each in terms])
    await store.put_chunks([chunk(4)], [vectors()])  # has no term, so it is not among the N = 4
    in_one, in_three = math.log(3.5 / 1.5 + 1), math.log(1.5 / 3.5 + 1)
    assert await found(store, Leg("bm25", sparse(t1=1), 5)) == [(0, round(2 * in_one, 5))]
    assert await found(store, Leg("bm25", sparse(t1=3, t2=2), 2)) == [
        (0, round(6 * in_one + 2 * in_three, 5)),
        (2, round(2 * in_three, 5)),
    ]


async def test_scores_after_deletion_are_those_of_a_store_that_never_held_it(store: WritableStore) -> None:
    await store.put_chunks([chunk(i) for i in range(3)], [vectors(bm25=sparse(t1=1))] * 3)
    await store.put_chunks([chunk(9, "beta-2")], [vectors(bm25=sparse(t2=1))])
    await store.put_chunks([chunk(0)], [vectors(bm25=sparse(t3=1))])
    await store.delete_document("beta-2")
    assert dict(await found(store, Leg("bm25", sparse(t1=1, t3=1), 5))) == {
        0: round(math.log(2.5 / 1.5 + 1), 5),
        1: round(math.log(1.5 / 2.5 + 1), 5),
        2: round(math.log(1.5 / 2.5 + 1), 5),
    }


async def test_legs_answer_together_what_they_answer_alone(store: WritableStore) -> None:
    await store.put_chunks(
        [chunk(0), chunk(1), chunk(2)],
        [vectors(X, bm25=sparse(t1=1)), vectors(Y, splade=sparse(t7=0.5)), vectors(-X, splade=sparse(t7=2, t8=1))],
    )
    legs = [
        Leg("splade", sparse(t7=1), 5),
        Leg("dense", X, 1),
        Leg("bm25", sparse(), 5),
        Leg("bm25", sparse(t1=1), 5),
        Leg("bm25", sparse(t99=1), 5),
    ]
    together = await store.search(legs, EVERYONE)
    assert together == [(await store.search([leg], EVERYONE))[0] for leg in legs]
    ordinals = [[hit.chunk.ordinal for hit in result.hits] for result in together]
    assert ordinals == [[2, 1], [0], [], [0], []]
    assert [hit.score for hit in together[0].hits] == [2.0, 0.5]


async def test_ops_are_the_chunks_that_pass_the_filter(store: WritableStore) -> None:
    await store.put_chunks(
        [chunk(i, fiscal_year=2020 + i % 2) for i in range(5)], [vectors(bm25=sparse(t1=1)) for _ in range(5)]
    )
    where = Filter(parse_filters({"fiscal_year": 2020}))
    legs = [Leg("dense", X, 1), Leg("bm25", sparse(t1=1), 1), Leg("bm25", sparse(), 1)]
    dense, bm25, nothing = await store.search(legs, where)
    assert [dense.ops, bm25.ops, nothing.ops] == [3, 3, 0]
    assert (bm25.ops_source, nothing.ops_source) == ("bound", "counted")
    await store.put_chunks([chunk(9, "beta-2", fiscal_year=2020)], [vectors()])
    assert [result.ops for result in await store.search(legs, where)] == [4, 4, 0]
    await store.delete_document("acme-1")
    assert [result.ops for result in await store.search(legs, where)] == [1, 1, 0]


YEARS: dict[int, dict[str, Any]] = {
    0: {"fiscal_year": 2019, "company": "Acme", "filed": "2020-02-01", "page": 1, "section": "Item 1A"},
    1: {"fiscal_year": 2020, "company": "Beta", "filed": "2021-02-01", "page": 2, "section": "Item 7"},
    2: {"fiscal_year": 2021, "company": "acme", "filed": "2021-02-01T10:30:00+02:00", "page": 3, "kind": "table"},
    3: {"filed": "soon", "page": 4},
}
FILTERS: list[tuple[Mapping[str, Any], set[int]]] = [
    ({}, {0, 1, 2, 3}),
    ({"company": "Acme"}, {0}),
    ({"company": {"$ne": "Acme"}}, {1, 2, 3}),
    ({"company": {"$in": ["Acme", "Beta", "Gamma"]}}, {0, 1}),
    ({"company": {"$nin": ["Acme", "Beta"]}}, {2, 3}),
    ({"fiscal_year": 2020}, {1}),
    ({"fiscal_year": {"$ne": 2020}}, {0, 2, 3}),
    ({"fiscal_year": {"$in": [2019, 2021]}}, {0, 2}),
    ({"fiscal_year": {"$nin": [2019]}}, {1, 2, 3}),
    ({"fiscal_year": {"$gte": 2020}}, {1, 2}),
    ({"fiscal_year": {"$lte": 2020}}, {0, 1}),
    ({"fiscal_year": {"$gt": 2019, "$lt": 2021}}, {1}),
    ({"filed": "2021-02-01"}, {1}),
    ({"filed": "2021-02-01T08:30:00Z"}, {2}),
    ({"filed": {"$ne": "2021-02-01"}}, {0, 2, 3}),
    ({"filed": {"$in": ["2020-02-01", "2021-02-01T00:00:00Z"]}}, {0, 1}),
    ({"filed": {"$nin": ["2020-02-01", "2021-02-01"]}}, {2, 3}),
    ({"filed": {"$gte": "2021-02-01"}}, {1, 2}),
    ({"filed": {"$gt": "2021-02-01"}}, {2}),
    ({"filed": {"$lte": "2021-02-01"}}, {0, 1}),
    ({"filed": {"$lt": "2021-02-01"}}, {0}),
    ({"section": "Item 7", "company": "Beta", "page": {"$gte": 2}}, {1}),
    ({"section": "Item 7", "company": "Acme"}, set()),
    ({"kind": "table"}, {2}),
    ({"document_id": "acme-1", "source": "pdfs/acme.pdf", "chunker": "pages-1", "embedder": "halves"}, {0, 1, 2, 3}),
    ({"document_id": "other"}, set()),
    ({"ingested_at": {"$gte": "2026-03-01", "$lt": "2026-03-02"}}, {0, 1, 2, 3}),
    ({"ingested_at": {"$gt": "2026-03-01T12:00:00Z"}}, set()),
]


async def test_every_operator_on_every_type_of_field(store: WritableStore) -> None:
    await store.put_chunks(
        [chunk(ordinal, **known) for ordinal, known in YEARS.items()], [vectors(bm25=sparse(t1=1))] * 4
    )
    await store.put_document(document())
    for raw, expected in FILTERS:
        where = Filter(parse_filters(raw))
        results = await store.search([Leg("dense", X, 9), Leg("bm25", sparse(t1=1), 9)], where)
        assert [{hit.chunk.ordinal for hit in result.hits} for result in results] == [expected, expected], raw
        assert await store.count(where) == len(expected), raw


async def test_a_filter_that_cannot_be_is_invalid(store: WritableStore) -> None:
    impossible = (
        Condition("filed", "$gte", "2023-99-01"),
        Condition("filed", "$eq", "0001-01-01T00:00+10:00"),
        Condition("tenant", "$eq", "t2"),
        Condition("no", "$eq", 1),
    )
    for condition in impossible:
        where = Filter((condition,))
        with pytest.raises(InvalidFilter, match=condition.field):
            await store.search([Leg("dense", X, 1)], where)
        with pytest.raises(InvalidFilter, match=condition.field):
            await store.count(where)


async def test_nobody_sees_what_is_not_theirs(store: WritableStore) -> None:
    owners = {"a-1": ("t1", ("staff", "board")), "b-1": ("t1", ("board",)), "c-1": ("t2", ("staff",))}
    for name, (tenant, acl) in owners.items():
        await store.put_chunks([chunk(0, name, tenant=tenant, acl=acl)], [vectors(bm25=sparse(t1=1))])
        await store.put_pages(document(name, tenant=tenant, acl=acl), [page(1, f"text of {name}")])
        await store.put_document(document(name, tenant=tenant, acl=acl))
    seen_by = {
        ("t1", "staff"): ["a-1"],
        ("t1", "board"): ["a-1", "b-1"],
        ("t1", "board", "staff"): ["a-1", "b-1"],
        ("t2", "staff", "board"): ["c-1"],
        ("t2", "board"): [],
        ("t1",): [],
        ("t3", "staff"): [],
        ("default", "public"): [],
    }
    for (tenant, *groups), expected in seen_by.items():
        where = as_seen_by(tenant, *groups)
        results = await store.search([Leg("dense", X, 9), Leg("bm25", sparse(t1=1), 9)], where)
        assert [sorted(hit.chunk.document_id for hit in result.hits) for result in results] == [expected, expected]
        assert [result.ops for result in results] == [len(expected)] * 2
        assert await store.count(where) == len(expected)
        assert [record.id for record in await store.documents(where.access)] == expected
        pages = await store.pages([(name, 1) for name in owners], where.access)
        assert [each.text for each in pages if each] == [f"text of {name}" for name in expected]
    assert [record.id for record in await store.documents()] == ["a-1", "b-1", "c-1"]


async def test_an_unfinished_document_is_listed_for_the_ingestion_alone(store: WritableStore) -> None:
    await store.put_document(document(state="ingesting", ingested_at=""))
    assert await store.documents(Access()) == []
    assert [record.state for record in await store.documents()] == ["ingesting"]
    await store.put_document(document())
    assert [record.state for record in await store.documents(Access())] == ["ready"]


async def seen(store: WritableStore) -> list[set[str]]:
    """Ids of the documents of which each way of reading gives something."""
    results = await store.search([Leg("dense", X, 9), Leg("bm25", sparse(t1=1), 9)], EVERYONE)
    names = ("acme-1", "acme-2")
    pages = await store.pages([(name, 1) for name in names], Access())
    assert await store.count(EVERYONE) == len(results[0].hits) == results[0].ops
    return [
        *({hit.chunk.document_id for hit in result.hits} for result in results),
        {name for name, found in zip(names, pages, strict=True) if found},
        {each.document_id for each in await store.chunks([chunk(0, name).id for name in names], EVERYONE)},
        {each.document_id for each in await store.records(Entity, EVERYONE, {"keys": ["company:acme"]})},
        {each.id for each in await store.documents(Access())},
    ]


async def put_whole(store: WritableStore, name: str, **changes: Any) -> None:
    """A document's record, then all that it has."""
    await store.put_document(document(name, **changes))
    await store.put_pages(document(name), [page(1)])
    await store.put_records(name, [entity("company:acme", name)])
    await store.put_chunks([chunk(0, name), chunk(1, name)], [vectors(bm25=sparse(t1=1))] * 2)


async def test_a_reader_sees_the_old_version_until_he_sees_the_new_one(store: WritableStore) -> None:
    await put_whole(store, "acme-1")
    await put_whole(store, "acme-2", state="ingesting")
    assert await seen(store) == [{"acme-1"}] * 6
    new = document("acme-2", replaces=("acme-1",))
    await store.put_document(new)
    assert await seen(store) == [{"acme-2"}] * 6
    assert await store.documents() == [document(), new], "for the ingestion, which has yet to remove the old one"
    assert len(await store.chunk_ids("acme-1")) == 2
    assert await store.delete_records("acme-1") == 1
    assert await store.delete_document("acme-1") == (2, 1)
    await store.put_document(document("acme-2"))
    assert await seen(store) == [{"acme-2"}] * 6


async def test_what_was_replaced_stays_hidden_while_its_successor_is_removed(store: WritableStore) -> None:
    await put_whole(store, "acme-1")
    await put_whole(store, "acme-2", replaces=("acme-1",))
    await store.put_document(document("acme-2", state="ingesting", ingested_at="", replaces=("acme-1",)))
    assert await seen(store) == [set()] * 6
    assert [each.state for each in await store.documents()] == ["ready", "ingesting"]


@pytest.mark.parametrize("kind", ["embedded", "stand-in"])
async def test_what_is_hidden_is_hidden_from_who_opens_the_store_later(kind: str, folder: Path) -> None:
    async with opened(kind, folder) as store:
        await put_whole(store, "acme-1", state="ingesting")
        if isinstance(store, EdgeStore):
            store.close()
            store = EdgeStore.open(folder, STAMP, create=False)
        assert await seen(store) == [set()] * 6
        if isinstance(store, EdgeStore):
            store.close()


async def test_deleting_removes_everything_of_one_document(store: WritableStore) -> None:
    for name in ("acme-1", "acme-10"):
        await store.put_chunks([chunk(i, name) for i in range(3)], [vectors(bm25=sparse(t1=1))] * 3)
        await store.put_pages(document(name), [page(1), page(2)])
        await store.put_document(document(name))
    assert await store.delete_document("acme-1") == (3, 2)
    assert await store.count(EVERYONE) == 3
    assert await store.chunk_ids("acme-1") == []
    assert await store.pages([("acme-1", 1), ("acme-1", 2)], Access()) == [None, None]
    assert [record.id for record in await store.documents()] == ["acme-10"]
    results = await store.search([Leg("dense", X, 9), Leg("bm25", sparse(t1=1), 9)], EVERYONE)
    assert {hit.chunk.document_id for result in results for hit in result.hits} == {"acme-10"}
    assert await store.delete_document("acme-1") == (0, 0)


NAN, INF = float("nan"), float("inf")
BAD_VECTORS: dict[str, ChunkVectors] = {
    "shape": vectors(unit(1, 0, 0)),
    "norm": vectors(unit(1, 1, 0, 0)),
    "not finite": vectors(unit(NAN, 0, 0, 1)),
    "unknown sparse": ChunkVectors(X, {"bm26": sparse(t1=1)}),  # type: ignore[dict-item]
    "strictly": vectors(bm25=SparseVector((5, 5), (1.0, 2.0))),
    "increase": vectors(bm25=SparseVector((5, 4), (1.0, 2.0))),
    "weights": vectors(bm25=SparseVector((4, 5), (1.0,))),
    "outside": vectors(splade=SparseVector((2**32,), (1.0,))),
    "weight is not finite": vectors(splade=SparseVector((1,), (INF,))),
}


async def test_a_batch_with_one_bad_vector_is_refused_whole(store: WritableStore) -> None:
    for fault, bad in BAD_VECTORS.items():
        with pytest.raises(ValueError, match=fault):
            await store.put_chunks([chunk(0), chunk(1)], [vectors(), bad])
        assert await store.count(EVERYONE) == 0, fault


async def test_a_batch_with_bad_chunks_is_refused_whole(store: WritableStore) -> None:
    with pytest.raises(ValueError, match="2 chunks but 1 vectors"):
        await store.put_chunks([chunk(0), chunk(1)], [vectors()])
    with pytest.raises(ValueError, match="twice"):
        await store.put_chunks([chunk(0), chunk(0)], [vectors(), vectors()])
    with pytest.raises(ValueError, match="not valid Unicode"):
        await store.put_chunks([chunk(0), chunk(1, source="bad\udcff.pdf")], [vectors(), vectors()])
    assert await store.count(EVERYONE) == 0


BAD_LEGS = {
    "shape": Leg("dense", unit(1, 0), 1),
    "not finite": Leg("dense", unit(1, 0, INF, 0), 1),
    "'dense' is not sparse": Leg("dense", sparse(t1=1), 1),
    "'bm25' is not dense": Leg("bm25", X, 1),
    "'colbert' is not dense": Leg("colbert", X, 1),  # type: ignore[arg-type]
    "increase": Leg("bm25", SparseVector((2, 1), (1.0, 1.0)), 1),
    "limit": Leg("dense", X, 0),
}


async def test_a_malformed_leg_is_refused(store: WritableStore) -> None:
    for fault, leg in BAD_LEGS.items():
        with pytest.raises(ValueError, match=fault):
            await store.search([Leg("dense", X, 1), leg], EVERYONE)


HALVES = st.lists(st.sampled_from([0.5, -0.5]), min_size=4, max_size=4).map(lambda signs: unit(*signs))
TERMS = st.dictionaries(st.integers(1, 5), st.sampled_from([1.0, 2.0, 4.0]), max_size=4).map(
    lambda terms: SparseVector(tuple(sorted(terms)), tuple(terms[term] for term in sorted(terms)))
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
CHUNKS = st.lists(
    st.tuples(
        st.fixed_dictionaries(
            {
                "text": TEXT,
                "company": st.sampled_from([None, "Acme", "Beta"]),
                "fiscal_year": st.sampled_from([None, 2019, 2020, 2021]),
                "filed": st.sampled_from([None, "2020-02-01", "2021-02-01T10:00:00-05:00"]),
                "tenant": st.sampled_from(["default", "default", "other"]),
                "acl": st.sampled_from([("public",), ("board",), ("public", "board")]),
            }
        ),
        st.builds(lambda dense, bm25, splade: vectors(dense, bm25=bm25, splade=splade), HALVES, TERMS, TERMS),
    ),
    max_size=30,
)


def _conditions(field: str, values: list[Any], operators: list[str]) -> st.SearchStrategy[Mapping[str, Any]]:
    one = st.tuples(st.sampled_from(operators), st.sampled_from(values))
    some = st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return (one | some).map(lambda pair: {field: {pair[0]: pair[1]}})


EQUALITY = ["$eq", "$ne"]
ORDER = [*EQUALITY, "$gte", "$lte", "$gt", "$lt"]
WHERES = st.builds(
    lambda raw, groups: Filter(
        parse_filters({k: v for each in raw for k, v in each.items()}), Access("default", groups)
    ),
    st.lists(
        _conditions("company", ["Acme", "Beta", "Gamma"], EQUALITY)
        | _conditions("fiscal_year", [2018, 2019, 2020, 2021], ORDER)
        | _conditions("filed", ["2020-02-01", "2020-06-30", "2021-02-01T15:00:00Z"], ORDER),
        max_size=2,
    ),
    st.sampled_from([("public",), ("board",), ("public", "board"), ()]),
)
QUERIES = st.tuples(
    HALVES,
    st.lists(st.integers(1, 6), unique=True, max_size=2).map(
        lambda terms: SparseVector(tuple(sorted(terms)), (1.0,) * len(terms))
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["embedded", "stand-in", "server"], indirect=True)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(chunks=CHUNKS, wheres=st.lists(WHERES, min_size=1, max_size=4), query=QUERIES, limit=st.integers(1, 12))
async def test_an_engine_finds_what_the_fake_finds(
    store: WritableStore,
    chunks: list[tuple[dict[str, Any], ChunkVectors]],
    wheres: list[Filter],
    query: tuple[np.ndarray[Any, Any], SparseVector],
    limit: int,
) -> None:
    """Same ids in the same order and the same scores, on an engine whose earlier contents were deleted."""
    fake = FakeStore(STAMP)
    await store.delete_document("acme-1")
    made = [chunk(i, **known) for i, (known, _) in enumerate(chunks)]
    for each in (store, fake):
        await each.put_chunks(made, [vector for _, vector in chunks])
    legs = [Leg("dense", query[0], limit), Leg("bm25", query[1], limit), Leg("splade", query[1], limit)]
    for where in wheres:
        expected, got = await fake.search(legs, where), await store.search(legs, where)
        assert [[h.chunk for h in r.hits] for r in got] == [[h.chunk for h in r.hits] for r in expected]
        scores = [[h.score for h in r.hits] for r in expected]
        assert [[h.score for h in r.hits] for r in got] == [pytest.approx(row, rel=1e-5, abs=1e-6) for row in scores]
        assert await store.count(where) == await fake.count(where)


async def test_a_reader_takes_whatever_chunker_cut_the_chunks(tmp_path: Path) -> None:
    EdgeStore.open(tmp_path / "edge", STAMP).close()
    reader = EdgeStore.open(tmp_path / "edge", replace(STAMP, chunker=""), create=False)
    assert await reader.stamp() == STAMP
    reader.close()
    rest = EdgeRest(tmp_path / "rest")
    with serve(rest.app()) as url:
        await (await ServerStore.open(url, None, 10, STAMP)).close()
        server = await ServerStore.open(url, None, 10, replace(STAMP, chunker=""), create=False)
        assert await server.stamp() == STAMP
        await server.close()
    rest.close()


async def test_chunks_come_in_the_order_asked_for_and_only_those_that_pass(store: WritableStore) -> None:
    kept = [chunk(0, page=1), chunk(1, page=2), chunk(2, page=3, tenant="t2")]
    await store.put_chunks(kept, [vectors()] * 3)
    ids = [kept[2].id, kept[1].id, kept[0].id, kept[1].id, chunk(9).id]
    assert await store.chunks(ids, EVERYONE) == [kept[1], kept[0]]
    assert await store.chunks(ids, Filter(parse_filters({"page": 1}))) == [kept[0]]
    assert await store.chunks([], EVERYONE) == []


async def test_records_come_back_whole_by_any_of_their_fields(store: WritableStore) -> None:
    acme = entity("company:acme", chunks=(0, 1), aliases=("acme", "acm"), fiscal_year=2023)
    jane = entity("person:acme/jane doe", chunks=(1,), aliases=("jane doe",))
    officer = relation("person:acme/jane doe", "officer", "company:acme", chunk=1, detail="Chief Café Officer")
    await store.put_records("acme-1", [acme, jane, officer])
    assert await store.records(Entity, EVERYONE, {"keys": [acme.key]}) == [acme]
    assert await store.records(Entity, EVERYONE, {"aliases": ["acm", "none"]}) == [acme]
    assert await store.records(Entity, EVERYONE, {"type": ["person"]}) == [jane]
    by_chunk = await store.records(Entity, EVERYONE, {"chunks": [chunk(1).id]})
    assert sorted(each.key for each in by_chunk) == [acme.key, jane.key]
    assert await store.records(Entity, EVERYONE, {"chunks": [chunk(1).id], "type": ["company"]}) == [acme]
    either: tuple[Mapping[RecordField, list[str]], ...] = ({"keys": [jane.key]}, {"predicate": ["officer"]}, {})
    for matching in either:
        assert await store.records(Relation, EVERYONE, matching) == [officer]
    assert await store.records(Entity, EVERYONE, {"keys": []}) == []


async def test_conditions_on_filings_narrow_records_and_those_on_chunks_do_not(store: WritableStore) -> None:
    old, new = entity("company:acme", fiscal_year=2022), entity("company:acme", "beta-2", fiscal_year=2023)
    await store.put_records("acme-1", [old])
    await store.put_records("beta-2", [new])
    for raw, expected in (
        ({"fiscal_year": 2023}, [new]),
        ({"fiscal_year": {"$lt": 2023}}, [old]),
        ({"document_id": {"$nin": ["acme-1"]}}, [new]),
        ({"section": "Item 7", "page": 3, "fiscal_year": 2022}, [old]),
    ):
        assert await store.records(Entity, Filter(parse_filters(raw)), {}) == expected, raw
    with pytest.raises(InvalidFilter, match="no"):
        await store.records(Entity, Filter((Condition("no", "$eq", 1),)), {})


async def test_records_are_replaced_and_removed_by_document(store: WritableStore) -> None:
    await store.put_records("acme-1", [entity("company:acme"), entity("company:beta")])
    await store.put_records("beta-2", [entity("company:beta", "beta-2")])
    await store.put_records("acme-1", [entity("company:acme"), entity("company:gamma")])
    held = await store.records(Entity, EVERYONE, {})
    assert sorted((each.document_id, each.key) for each in held) == [
        ("acme-1", "company:acme"),
        ("acme-1", "company:gamma"),
        ("beta-2", "company:beta"),
    ]
    assert await store.delete_records("acme-1") == 2
    assert await store.delete_records("acme-1") == 0
    assert [each.document_id for each in await store.records(Entity, EVERYONE, {})] == ["beta-2"]


async def test_nobody_reads_records_or_chunks_that_are_not_theirs(store: WritableStore) -> None:
    await store.put_records("a-1", [entity("company:acme", "a-1", tenant="t1", acl=("staff", "board"))])
    await store.put_records("b-1", [entity("company:acme", "b-1", tenant="t1", acl=("board",))])
    await store.put_records("c-1", [entity("company:acme", "c-1", tenant="t2", acl=("staff",))])
    await store.put_chunks([chunk(0, "b-1", tenant="t1", acl=("board",))], [vectors()])
    for (tenant, *groups), expected in {
        ("t1", "staff"): ["a-1"],
        ("t1", "board"): ["a-1", "b-1"],
        ("t2", "staff", "board"): ["c-1"],
        ("t1",): [],
        ("default", "public"): [],
    }.items():
        where = as_seen_by(tenant, *groups)
        held = await store.records(Entity, where, {"keys": ["company:acme"]})
        assert sorted(each.document_id for each in held) == expected
        assert len(await store.chunks([chunk(0, "b-1").id], where)) == ("b-1" in expected)


async def test_a_sample_of_dense_vectors_is_of_what_the_caller_may_see(store: WritableStore) -> None:
    theirs = chunk(2, tenant="other")
    chunks = [chunk(0), chunk(1), theirs]
    await store.put_chunks(chunks, [vectors(X), vectors(Y), vectors(-X)])
    everything = await store.dense_sample(EVERYONE, 10)
    assert everything.dtype == np.float32
    assert sorted(everything.tolist()) == sorted([X.tolist(), Y.tolist()])
    first = min((chunk(0).id, X.tolist()), (chunk(1).id, Y.tolist()))[1]
    assert (await store.dense_sample(EVERYONE, 1)).tolist() == [first]
    nobody = await store.dense_sample(Filter((), Access("nobody")), 10)
    assert nobody.shape == (0, STAMP.dimensions)
