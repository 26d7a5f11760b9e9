"""What only the server's client does: collections behind aliases, reported work, and a server that fails."""

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.adapters import qdrant_server
from app.adapters.qdrant_server import ServerStore
from app.errors import Busy, IndexMismatch, SextantError, StoreUnavailable, Timeout
from app.types import Entity, Leg
from tests.integration.edge_rest import EdgeRest, serve
from tests.integration.samples import EVERYONE, STAMP, X, Y, chunk, document, entity, page, sparse, vectors

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(rest: EdgeRest) -> Iterator[str]:
    with serve(rest.app()) as url:
        yield url


async def test_a_collection_is_an_alias_of_its_first_version(rest: EdgeRest, url: str) -> None:
    store = await ServerStore.open(url, None, 10, STAMP, shards=3, replicas=2)
    assert rest.aliases == {
        "contract": "contract-v1",
        "contract-pages": "contract-v1-pages",
        "contract-documents": "contract-v1-documents",
        "contract-graph": "contract-v1-graph",
    }
    made = rest.collections["contract-v1"].config
    assert (made["shard_number"], made["replication_factor"], made["write_consistency_factor"]) == (3, 2, 2)
    await store.close()


async def test_opening_again_finds_what_was_put(url: str) -> None:
    first = await ServerStore.open(url, None, 10, STAMP)
    await first.put_document(document())
    await first.close()
    second = await ServerStore.open(url, None, 10, STAMP, create=False)
    assert await second.documents() == [document()]
    assert await second.stamp() == STAMP
    await second.close()


async def test_a_collection_of_an_older_version_has_no_graph_until_something_is_ingested(
    rest: EdgeRest, url: str
) -> None:
    await (await ServerStore.open(url, None, 10, STAMP)).close()
    del rest.aliases["contract-graph"]
    older = await ServerStore.open(url, None, 10, STAMP, create=False)
    assert await older.records(Entity, EVERYONE, {}) == []
    assert await older.delete_records("acme-1") == 0
    await older.close()
    newer = await ServerStore.open(url, None, 10, STAMP)
    await newer.put_records("acme-1", [entity("company:acme")])
    assert await newer.records(Entity, EVERYONE, {}) == [entity("company:acme")]
    await newer.close()


async def test_a_creation_cut_short_is_completed(rest: EdgeRest, url: str) -> None:
    await (await ServerStore.open(url, None, 10, STAMP)).close()
    rest.aliases.clear()
    rest.collections.pop("contract-v1-documents").shard.close()
    (rest.root / "contract-v1-documents").rename(rest.root / "lost")
    store = await ServerStore.open(url, None, 10, STAMP)
    await store.put_document(document())
    assert await store.documents() == [document()]
    await store.close()


async def test_another_stamp_is_refused(rest: EdgeRest, url: str) -> None:
    await (await ServerStore.open(url, None, 10, STAMP)).close()
    with pytest.raises(IndexMismatch, match="embedder is 'halves' there and 'thirds' in the settings"):
        await ServerStore.open(url, None, 10, replace(STAMP, embedder="thirds"))
    rest.collections["contract-v1"].config["metadata"] = None
    with pytest.raises(IndexMismatch, match="no stamp of ours"):
        await ServerStore.open(url, None, 10, STAMP)


async def test_a_missing_collection_is_not_made_for_a_reader(rest: EdgeRest, url: str) -> None:
    with pytest.raises(StoreUnavailable, match="ingest some filings first"):
        await ServerStore.open(url, None, 10, STAMP, create=False)
    assert rest.collections == {}


async def test_work_the_server_reports_is_billed(rest: EdgeRest, url: str) -> None:
    store = await ServerStore.open(url, None, 10, STAMP)
    await store.put_chunks([chunk(i) for i in range(7)], [vectors(bm25=sparse(t1=1))] * 7)
    dense, bm25 = Leg("dense", X, 2), Leg("bm25", sparse(t1=1), 2)
    [alone] = await store.search([dense], EVERYONE)
    assert (alone.ops, alone.ops_source) == (7, "bound")
    rest.reports = True
    [alone] = await store.search([dense], EVERYONE)
    assert (alone.ops, alone.ops_source) == (7, "reported")
    pair = await store.search([dense, Leg("dense", Y, 2)], EVERYONE)
    assert [(result.ops, result.ops_source) for result in pair] == [(7, "reported"), (7, "reported")]
    mixed = await store.search([dense, bm25], EVERYONE)
    assert [(result.ops, result.ops_source) for result in mixed] == [(7, "bound"), (7, "bound")]
    await store.close()


async def test_all_legs_travel_in_one_request(rest: EdgeRest, url: str) -> None:
    store = await ServerStore.open(url, None, 10, STAMP)
    rest.requests.clear()
    await store.search([Leg("dense", X, 2), Leg("bm25", sparse(t1=1), 2)], EVERYONE)
    assert rest.requests[0] == "/collections/contract-documents/points/scroll", "which documents are hidden"
    together = ["/collections/contract/points/count", "/collections/contract/points/query/batch"]
    assert sorted(rest.requests[1:]) == together
    rest.requests.clear()
    await store.pages([("acme-1", 2), ("acme-1", 1)], EVERYONE.access)
    assert rest.requests[1:] == ["/collections/contract-pages/points/scroll"]
    await store.close()


async def test_large_batches_are_split_below_the_request_limit(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qdrant_server, "_MAX_BATCH_BYTES", 20_000)
    store = await ServerStore.open(url, None, 10, STAMP)
    await store.put_pages(document(), [page(number, "x" * 5_000) for number in range(1, 6)])
    texts = [
        each.text if each else "" for each in await store.pages([("acme-1", n) for n in range(1, 6)], EVERYONE.access)
    ]
    assert texts == ["x" * 5_000] * 5
    await store.close()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(StoreUnavailable, match="cannot talk to Qdrant"):
        await ServerStore.open(url, None, 5, STAMP)


async def test_a_server_that_does_not_answer_times_out() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(Timeout, match="did not answer in time"):
            await ServerStore.open(f"http://127.0.0.1:{silent.getsockname()[1]}", None, 1, STAMP)


@pytest.mark.parametrize(
    ("status", "headers", "error", "said"),
    [
        (500, {}, StoreUnavailable, "answered 500: broken"),
        (503, {}, StoreUnavailable, "answered 503"),
        (403, {}, StoreUnavailable, "API key was refused"),
        (429, {"Retry-After": "3"}, Busy, "limit"),
        (429, {"Retry-After": "soon"}, StoreUnavailable, "does not answer as Qdrant does"),
        (200, {}, StoreUnavailable, "does not answer as Qdrant does"),
    ],
)
async def test_a_failing_server_is_named_in_our_own_errors(
    status: int, headers: dict[str, str], error: type[SextantError], said: str
) -> None:
    async def answer(_: Request) -> Response:
        return PlainTextResponse("broken", status, headers)

    with serve(Starlette(routes=[Route("/{path:path}", answer)])) as url:
        with pytest.raises(error, match=said) as raised:
            await ServerStore.open(url, None, 5, STAMP)
    assert raised.value.retry_after == (3.0 if error is Busy else None)
