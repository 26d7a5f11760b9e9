"""Questions over HTTP: what a reply holds, and that it adds up."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from httpx import AsyncClient, Response
from pydantic import ConfigDict, TypeAdapter

from app.billing import Prices
from app.http.query import CompareReply
from app.http.replies import QueryReply
from tests.conftest import FILINGS, MakeClient, MakePorts
from tests.fakes import ScriptedGenerator

pytestmark = pytest.mark.anyio


def strictly(reply_type: type[Any], response: Response) -> dict[str, Any]:
    """The reply, once it has shown itself to be exactly what OpenAPI says: nothing missing, nothing more."""
    assert response.status_code == 200, response.text
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reply_type, "__pydantic_config__", ConfigDict(extra="forbid"), raising=False)
        TypeAdapter(reply_type).validate_json(response.content, strict=True)
    body: dict[str, Any] = response.json()
    return body


def added_up(trace: list[dict[str, Any]]) -> dict[str, Any]:
    ops: dict[str, int] = {}
    for step in trace:
        for kind, n in step["ops"].items():
            ops[kind] = ops.get(kind, 0) + n
    return {
        "ops_by_kind": ops,
        "ops": sum(ops.values()),
        "llm_calls": sum(step["llm_calls"] for step in trace),
        "tokens": {name: sum(step["tokens"][name] for step in trace) for name in ("input", "output")},
    }


async def test_reply_holds_answer_evidence_and_bill(make_client: MakeClient) -> None:
    async with make_client() as client:
        reply = strictly(QueryReply, await client.post("/query?arch=naive", json={"question": "debt", "k": 2}))
    assert reply["arch"] == "naive"
    assert reply["answer"] == "Debt was $4 million at year end [1]."
    assert reply["abstained"] is False
    assert reply["reason"] is None
    assert [p["chunk_id"] for p in reply["passages"]][:1] == ["acme-2023/1"]
    assert len(reply["passages"]) == 2
    [citation] = reply["citations"]
    assert citation["document_id"] == "acme-2023"
    assert citation["page"] == 2
    page = FILINGS["acme-2023"][1][1]
    assert page[citation["span"]["start"] : citation["span"]["end"]] == citation["quote"]
    assert citation["answer_span"] == {"start": 0, "end": 31}
    assert citation["verified"] is True
    assert {name: reply["cost"][name] for name in ("ops", "ops_by_kind", "ops_source", "llm_calls", "usd")} == {
        "ops": 3,
        "ops_by_kind": {"dense": 3},
        "ops_source": "counted",
        "llm_calls": 0,
        "usd": 0,
    }
    assert reply["index"]["collection"] == "filings"
    assert reply["index"]["models"]["generator"] == "quoting"


async def test_path_and_parameter_are_the_same_endpoint(make_client: MakeClient) -> None:
    def settled(reply: dict[str, Any]) -> dict[str, Any]:
        return {name: reply[name] for name in ("arch", "answer", "citations", "passages", "index", "notes")}

    async with make_client() as client:
        asked = {"question": "what was revenue?"}
        by_path = (await client.post("/query/hybrid", json=asked)).json()
        by_parameter = (await client.post("/query?arch=hybrid", json=asked)).json()
        by_default = (await client.post("/query", json=asked)).json()
        by_auto = (await client.post("/query/auto", json=asked)).json()
        by_get = (await client.get("/query", params={"arch": "hybrid", "q": "what was revenue?"})).json()
    assert settled(by_path) == settled(by_parameter) == settled(by_get)
    assert settled(by_default) == settled(by_auto)


async def test_filters_that_leave_out_what_the_question_names_are_noted(make_client: MakeClient) -> None:
    asked = {"question": "What was the debt of Globex?", "filters": {"company": "Acme"}}
    async with make_client() as client:
        replies = [(await client.post(f"/query/{arch}", json=asked)).json() for arch in ("hybrid", "graph")]
        unfiltered = (await client.post("/query/hybrid", json={"question": asked["question"]})).json()
    for reply in replies:
        assert reply["notes"][-1].startswith("the filings that the question names hold nothing that passes")
    assert unfiltered["notes"] == []


async def test_hybrid_without_a_leg_is_refused(make_client: MakeClient) -> None:
    options = {"dense_weight": 0, "bm25_weight": 0}
    async with make_client() as client:
        reply = await client.post("/query/hybrid", json={"question": "debt", "options": options})
    assert (reply.status_code, reply.json()["error_code"]) == (422, "invalid_options")
    assert reply.json()["detail"].startswith("a leg needs a weight above 0")


async def test_passages_tell_their_rank_in_each_leg(make_client: MakeClient) -> None:
    async with make_client() as client:
        reply = (await client.post("/query/hybrid", json={"question": "debt"})).json()
    first = reply["passages"][0]
    assert first["rank"] == 1
    assert {name: leg["rank"] for name, leg in first["legs"].items()} == {"dense": 1, "bm25": 1}
    assert first["score"] == pytest.approx(2 / 61)


@pytest.mark.parametrize("arch", ["naive", "hybrid"])
async def test_cost_is_the_sum_of_the_trace(make_client: MakeClient, make_ports: MakePorts, arch: str) -> None:
    ports = await make_ports(ScriptedGenerator(["Debt was $4 million [1]."]), prices=Prices(Decimal(2), Decimal(8)))
    async with make_client(ports) as client:
        reply = (await client.post(f"/query/{arch}", json={"question": "debt"})).json()
    assert added_up(reply["trace"]).items() <= reply["cost"].items()
    tokens = reply["cost"]["tokens"]
    assert reply["cost"]["llm_calls_by_purpose"] == {"answer": 1}
    assert tokens["output"] == 5
    assert reply["cost"]["usd"] == pytest.approx((2 * tokens["input"] + 8 * tokens["output"]) / 1_000_000)


async def test_unknown_prices_are_null(make_client: MakeClient, make_ports: MakePorts) -> None:
    async with make_client(await make_ports(ScriptedGenerator(["Debt was $4 million [1]."]))) as client:
        assert (await client.post("/query/naive", json={"question": "debt"})).json()["cost"]["usd"] is None


async def test_filters_narrow_every_leg(make_client: MakeClient) -> None:
    async with make_client() as client:
        asked = {"question": "debt", "filters": {"fiscal_year": {"$lt": 2023}}}
        reply = (await client.post("/query/hybrid", json=asked)).json()
    assert {p["document_id"] for p in reply["passages"]} == {"globex-2022"}


async def test_nothing_found_is_an_honest_abstention(make_client: MakeClient) -> None:
    async with make_client() as client:
        asked = {"question": "debt", "filters": {"company": "Nobody"}}
        reply = strictly(QueryReply, await client.post("/query/naive", json=asked))
    assert (reply["abstained"], reply["reason"], reply["citations"]) == (True, "no_passages", [])


async def test_control_characters_become_spaces(make_client: MakeClient, make_ports: MakePorts) -> None:
    generator = ScriptedGenerator(["Debt was $4 million [1]."])
    async with make_client(await make_ports(generator)) as client:
        response = await client.post("/query/naive", json={"question": "\x00what\x00debt?\x1b\n"})
    assert response.status_code == 200
    assert generator.prompts[0].question == "what debt?"


async def test_other_digits_and_widths_are_plain(make_client: MakeClient, make_ports: MakePorts) -> None:
    generator = ScriptedGenerator(["Debt was $4 million [1]."])
    async with make_client(await make_ports(generator)) as client:
        await client.post("/query/naive", json={"question": "ｄｅｂｔ　ｉｎ ２０２３ or ٢٠٢٤, naïve 😀"})
    assert generator.prompts[0].question == "debt in 2023 or 2024, naïve 😀"


async def test_compare_gives_a_result_or_a_problem_per_architecture(
    make_client: MakeClient, make_ports: MakePorts
) -> None:
    generator = ScriptedGenerator(["Debt was $4 million [1]."])
    async with make_client(await make_ports(generator), max_concurrency=1) as client:
        asked = {"question": "debt", "archs": ["naive", "hybrid"]}
        reply = strictly(CompareReply, await client.post("/compare", json=asked))
    naive, hybrid = reply["results"]
    assert (naive["arch"], naive["problem"], naive["result"]["arch"]) == ("naive", None, "naive")
    assert (hybrid["arch"], hybrid["result"], hybrid["problem"]["error_code"]) == ("hybrid", None, "busy")
    assert reply["cost"]["llm_calls"] == naive["result"]["cost"]["llm_calls"] == 1


async def test_compare_adds_the_bills(make_client: MakeClient) -> None:
    async with make_client() as client:
        reply = (await client.post("/compare", json={"question": "debt", "archs": ["hybrid", "naive"]})).json()
    assert [result["arch"] for result in reply["results"]] == ["hybrid", "naive"]
    assert [result["result"]["cost"]["ops"] for result in reply["results"]] == [6, 3]
    assert reply["cost"]["ops_by_kind"] == {"dense": 6, "sparse": 3}


@pytest.mark.parametrize(
    ("asked", "status", "says"),
    [
        ({"archs": []}, 422, "archs"),
        ({"archs": ["naive", "naive"]}, 422, "once"),
        ({"archs": ["naive", "nope"]}, 404, "those that exist: naive, hybrid"),
        ({"archs": ["naive"], "options": {"hybrid": {}}}, 422, "not among archs"),
        ({"archs": ["naive"], "options": {"naive": {"pool": 1}}}, 422, "naive takes decoding"),
    ],
)
async def test_compare_refuses(make_client: MakeClient, asked: dict[str, Any], status: int, says: str) -> None:
    async with make_client() as client:
        response = await client.post("/compare", json={"question": "debt", **asked})
    assert response.status_code == status
    assert says in response.json()["detail"]


async def test_architectures_describe_themselves(make_client: MakeClient) -> None:
    async with make_client() as client:
        reply = (await client.get("/architectures")).json()
    by_name = {a["name"]: a for a in reply["architectures"]}
    assert reply["default"] == "auto"
    assert [option["name"] for option in by_name["naive"]["options"]] == ["decoding"]
    assert by_name["naive"]["can_run"] is True
    assert by_name["naive"]["why_not"] is None
    assert "Lewis" in by_name["naive"]["paper"]
    assert by_name["hybrid"]["options"][0] == {
        "name": "pool",
        "type": "integer",
        "default": 100,
        "bounds": {"minimum": 1, "maximum": 1000},
        "description": "Candidates taken from each leg before fusion.",
    }
    assert all(a["description"] and a["paper"] for a in reply["architectures"]), "docstrings end with their paper"


async def test_what_cannot_run_says_why_not(make_client: MakeClient, make_ports: MakePorts) -> None:
    ports = replace(await make_ports(), reranker=None)
    async with make_client(ports) as client:
        reply = (await client.get("/architectures")).json()
    why = {a["name"]: a["why_not"] for a in reply["architectures"] if not a["can_run"]}
    assert list(why) == ["hyde", "crag"]
    assert "GENERATOR=local" in why["hyde"]
    assert why["crag"] == "needs a cross-encoder; set RERANKER_MODEL"


async def documents(client: AsyncClient, **parameters: int) -> list[str]:
    reply = (await client.get("/documents", params=parameters)).json()
    return [document["document_id"] for document in reply["documents"]]


async def test_documents_and_their_pages(make_client: MakeClient) -> None:
    async with make_client() as client:
        assert await documents(client) == ["acme-2023", "globex-2022"], "another tenant's is not listed"
        assert await documents(client, offset=1, limit=1) == ["globex-2022"]
        assert (await client.get("/documents?limit=1")).json()["total"] == 2
        one = (await client.get("/documents/acme-2023")).json()
        assert (one["title"], one["pages"], one["fiscal_year"]) == ("Acme 10-K 2023", 2, 2023)
        page = (await client.get("/documents/acme-2023/pages/2")).json()
        assert page == {
            "document_id": "acme-2023",
            "page": 2,
            "label": None,
            "ocr": False,
            "text": FILINGS["acme-2023"][1][1],
            "width": 612.0,
            "height": 792.0,
        }
        for absent in ("/documents/nope", "/documents/initech-2023", "/documents/initech-2023/pages/1"):
            assert (await client.get(absent)).json()["error_code"] == "not_found"
        assert (await client.get("/documents/acme-2023/pages/3")).status_code == 404
        assert (await client.get("/documents/acme-2023/pages/0")).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "tells"),
    [
        ("GET", "/query?q=debt&form=10-K", "form"),
        ("POST", "/query?arch=naive&k=3", "k"),
        ("POST", "/query/naive?arch=hybrid", "arch"),
        ("GET", "/documents?page=2", "page"),
        ("GET", "/documents/acme-2023/pages/1.png?page=2", "page"),
    ],
)
async def test_a_query_parameter_that_would_be_ignored_is_refused(
    make_client: MakeClient, method: str, path: str, tells: str
) -> None:
    async with make_client() as client:
        reply = await client.request(method, path, json={"question": "debt"} if method == "POST" else None)
    assert (reply.status_code, reply.json()["error_code"]) == (422, "invalid_input")
    assert f"unknown query parameter '{tells}'" in reply.json()["detail"]


async def test_get_streams_when_asked(make_client: MakeClient) -> None:
    async with make_client() as client:
        reply = await client.get("/query", params={"q": "debt", "stream": "true"})
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert "event: done" in reply.text


async def test_a_company_that_is_a_letter_away_is_said_and_asked_about(make_client: MakeClient) -> None:
    async with make_client() as client:
        reply = (await client.post("/query/hybrid", json={"question": "What is Globbex's main risk?"})).json()
        other = (await client.post("/query/hybrid", json={"question": "What is Glutex's main risk?"})).json()
    assert reply["notes"] == ["'Globbex' is no company of the index; it was read as Globex"]
    assert {citation["document_id"] for citation in reply["citations"]} == {"globex-2022"}
    assert [step["name"] for step in reply["trace"]].count("respelt") == 1
    assert {name: reply["cost"][name] for name in ("ops", "llm_calls")} == {
        name: added_up(reply["trace"])[name] for name in ("ops", "llm_calls")
    }
    assert (other["reason"], other["notes"]) == ("off_corpus", ["the index holds nothing of Glutex"])
