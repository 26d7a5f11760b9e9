"""How systems are named, and what an unreachable or nonsensical service is called."""

import httpx
import pytest

from evals.errors import SubjectError, UsageError
from evals.subjects import HttpSubject, System, fingerprint, parse_system, systems
from tests.evals import world

pytestmark = pytest.mark.anyio


def test_systems_are_written_with_their_options() -> None:
    assert parse_system("naive") == System("naive", "naive", {})
    assert parse_system("hybrid:c=20:query_filters=false") == System(
        "hybrid:c=20:query_filters=false", "hybrid", {"c": 20, "query_filters": False}
    )
    assert parse_system("bm25").options == {"dense_weight": 0, "query_filters": False}
    assert parse_system("hyde:style=plain").options == {"style": "plain"}


@pytest.mark.parametrize("text", ["hybrid:c", "hybrid:=3", ":c=1"])
def test_a_system_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError):
        parse_system(text)


async def test_all_is_what_can_run_naive_first() -> None:
    async with world.asking() as asking:
        found, _ = await systems(asking.subject, "all", bm25=True)
        named, left_out = await systems(asking.subject, "hybrid,naive")
    assert found[0].name == "naive"
    assert {"bm25", "hybrid"} <= {system.name for system in found}
    assert ([system.name for system in named], left_out) == (["hybrid", "naive"], [])


def test_the_fingerprint_follows_index_and_content() -> None:
    document = {"document_id": "a", "chunks": 3, "ingested_at": "2024-05-01T00:00:00Z"}
    prints = {
        fingerprint({"models": 1}, [document]),
        fingerprint({"models": 2}, [document]),
        fingerprint({"models": 1}, [document | {"ingested_at": "2024-05-02T00:00:00Z"}]),
        fingerprint({"models": 1}, []),
    }
    assert len(prints) == 4


async def test_a_busy_service_is_asked_again() -> None:
    replies = iter(
        [httpx.Response(429, headers={"retry-after": "0"}, json={}), httpx.Response(200, json={"text": "x"})]
    )
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: next(replies)), base_url="http://a") as client:
        assert await HttpSubject(client).page("a", 1) == "x"


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (httpx.Response(200, text="<html>"), "unreachable"),
        (httpx.Response(503, json={"error_code": "unavailable", "detail": "down"}), "unavailable"),
    ],
)
async def test_no_proper_reply_is_an_error(response: httpx.Response, code: str) -> None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: response), base_url="http://a") as client:
        with pytest.raises(SubjectError) as caught:
            await HttpSubject(client).index()
    assert caught.value.problem["error_code"] == code
