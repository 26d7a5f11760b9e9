"""Answers as server-sent events."""

import json
from typing import Any

import pytest
from httpx import Response

from app.errors import UpstreamFailed
from tests.conftest import MakeClient, MakePorts
from tests.fakes import ScriptedGenerator

pytestmark = pytest.mark.anyio


def events(response: Response) -> list[tuple[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in response.text.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


async def test_events_in_order(make_client: MakeClient, make_ports: MakePorts) -> None:
    async with make_client(await make_ports(ScriptedGenerator(["Debt was $4 million [1]."]))) as client:
        got = events(await client.post("/query/naive", json={"question": "debt", "stream": True}))
    names = [name for name, _ in got]
    assert names == ["stage", "stage", "passages", *["token"] * 5, "stage", "stage", "citation", "answer", "done"]
    assert [data["name"] for name, data in got if name == "stage"] == ["embed", "search", "generate", "pages"]
    assert "".join(data["text"] for name, data in got if name == "token").strip() == "Debt was $4 million [1]."
    by_name = dict(got)
    assert by_name["passages"] == by_name["answer"]["passages"]
    assert by_name["citation"] == by_name["answer"]["citations"][0]
    assert by_name["done"]["cost"]["llm_calls"] == by_name["answer"]["cost"]["llm_calls"] == 1
    assert by_name["done"]["request_id"] == by_name["answer"]["request_id"]


async def test_streamed_and_whole_answers_agree(make_client: MakeClient) -> None:
    async with make_client() as client:
        whole = (await client.post("/query/hybrid", json={"question": "debt"})).json()
        accept = {"accept": "text/event-stream"}
        streamed = dict(events(await client.get("/query", params={"q": "debt"}, headers=accept)))["answer"]
    for name in ("answer", "citations", "passages", "abstained", "reason", "index", "notes"):
        assert streamed[name] == whole[name]


async def test_an_error_midway_is_an_event_and_is_billed(make_client: MakeClient, make_ports: MakePorts) -> None:
    async with make_client(await make_ports(ScriptedGenerator([UpstreamFailed("nonsense")]))) as client:
        got = events(await client.post("/query/naive", json={"question": "debt", "stream": True}))
    assert [name for name, _ in got][-2:] == ["error", "done"]
    error, done = got[-2][1], got[-1][1]
    assert (error["status"], error["error_code"], error["detail"]) == (502, "upstream_failed", "nonsense")
    assert done["cost"]["ops_by_kind"] == {"dense": 3}
    assert done["cost"]["llm_calls"] == 1


async def test_what_is_wrong_before_the_first_event_is_a_plain_problem(make_client: MakeClient) -> None:
    async with make_client() as client:
        response = await client.post("/query/naive", json={"question": "", "stream": True})
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


async def test_a_second_attempt_begins_the_answer_anew(make_client: MakeClient, make_ports: MakePorts) -> None:
    lines = ["NOT IN THE PASSAGES", "Debt was $4 million at year end [1]."]
    async with make_client(await make_ports(ScriptedGenerator([*lines]))) as client:
        got = events(await client.post("/query/auto", json={"question": "Acme's debt", "k": 2, "stream": True}))
    names = [name for name, _ in got]
    last = len(names) - 1 - names[::-1].index("passages")
    assert names.count("passages") == 2
    by_name = dict(got)
    assert got[last][1] == by_name["answer"]["passages"]
    assert "".join(data["text"] for name, data in got[last:] if name == "token").strip() == by_name["answer"]["answer"]
    assert by_name["answer"]["answer"] == lines[1]
