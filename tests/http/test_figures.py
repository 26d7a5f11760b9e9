"""POST /figures/query: rows for a caller, a problem for what is no query."""

from decimal import Decimal
from pathlib import Path

import pytest

from app.adapters.figures_sqlite import SqliteFigures
from app.types import Document, DocumentMeta, Figure
from tests.conftest import MakeClient, MakePorts

pytestmark = pytest.mark.anyio

KEYS = {"ours": {"tenant": "default", "groups": ["public"]}, "theirs": {"tenant": "other", "groups": ["public"]}}


async def sales(file: Path) -> SqliteFigures:
    """A figure of 15 million dollars in the default tenant."""
    figures = SqliteFigures(file)
    document = Document("acme-1", "0" * 64, DocumentMeta("Acme 10-K 2023", "acme.pdf", company="Acme"), 1, 1)
    sale = Figure("acme-1", 1, "c1", 6, 8, "Net sales", None, Decimal(15), 6, "USD")
    await figures.put(document, [sale])
    return figures


async def test_rows_and_their_bill(make_ports: MakePorts, make_client: MakeClient, tmp_path: Path) -> None:
    ports = await make_ports(figures=await sales(tmp_path / "f.sqlite"))
    async with make_client(ports) as client:
        reply = await client.post("/figures/query", json={"sql": "SELECT company, scaled_value, page FROM figures"})
    found = reply.json()
    assert reply.status_code == 200
    assert (found["columns"], found["rows"]) == (["company", "scaled_value", "page"], [["Acme", 15_000_000.0, 1]])
    assert found["truncated"] is False
    assert [stage["name"] for stage in found["cost"]["stages"]] == ["sql"]


async def test_a_caller_sees_his_own(make_ports: MakePorts, make_client: MakeClient, tmp_path: Path) -> None:
    ports = await make_ports(figures=await sales(tmp_path / "f.sqlite"))
    seen = {}
    async with make_client(ports, api_keys=KEYS) as client:
        for key in KEYS:
            headers = {"Authorization": f"Bearer {key}"}
            body = {"sql": "SELECT count(*) FROM figures"}
            seen[key] = (await client.post("/figures/query", json=body, headers=headers)).json()["rows"]
        assert (await client.post("/figures/query", json=body)).status_code == 401
    assert seen == {"ours": [[1]], "theirs": [[0]]}


@pytest.mark.parametrize(
    ("body", "status", "code", "told"),
    [
        ({"sql": "SELECT valu FROM figures"}, 422, "invalid_query", "no such column: valu"),
        ({"sql": "DELETE FROM figures"}, 422, "invalid_query", "scaled_value"),
        ({"sql": "SELECT 1", "limit": 0}, 422, "invalid_input", "limit"),
        ({"sql": ""}, 422, "invalid_input", "sql"),
        ({}, 422, "invalid_input", "sql"),
    ],
)
async def test_problems(
    make_ports: MakePorts,
    make_client: MakeClient,
    tmp_path: Path,
    body: dict[str, object],
    status: int,
    code: str,
    told: str,
) -> None:
    ports = await make_ports(figures=await sales(tmp_path / "f.sqlite"))
    async with make_client(ports) as client:
        reply = await client.post("/figures/query", json=body)
    assert (reply.status_code, reply.json()["error_code"]) == (status, code)
    assert told in reply.json()["detail"]


async def test_an_index_without_figures_says_so(make_client: MakeClient) -> None:
    async with make_client() as client:
        reply = await client.post("/figures/query", json={"sql": "SELECT 1"})
    assert (reply.status_code, reply.json()["error_code"]) == (503, "unavailable")
