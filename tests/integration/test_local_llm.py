"""The local model for real, on SmolLM2-135M: nothing here depends on what it says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest

from app.adapters.local_llm import LocalGenerator
from app.errors import GeneratorUnavailable, Timeout
from app.types import Generation, Prompt
from tests.conftest import MakePorts, live
from tests.integration.openai_server import small_model_file

pytestmark = pytest.mark.anyio
MODEL = small_model_file()


def prompt(text: str = "Count to a thousand.", max_tokens: int = 8, **more: object) -> Prompt:
    return Prompt("answer", (("user", text),), max_tokens=max_tokens, **more)  # type: ignore[arg-type]


@pytest.fixture
async def local() -> AsyncIterator[LocalGenerator]:
    async with LocalGenerator.open(MODEL, threads=1) as generator:
        yield generator


async def test_it_writes_streams_and_counts(local: LocalGenerator) -> None:
    whole = await local.generate(prompt())
    assert (whole.llm_calls, whole.output_tokens) == (1, 8)
    *pieces, last = [piece async for piece in local.stream(prompt())]
    assert isinstance(last, Generation)
    assert "".join(map(str, pieces)) == last.text == whole.text
    [of_prompt, nothing] = await local.count_tokens(["Count to a thousand.", ""])
    assert nothing == 0 < of_prompt < whole.input_tokens
    assert local.name == MODEL.stem


async def test_a_schema_binds_it(local: LocalGenerator) -> None:
    schema = {
        "type": "object",
        "properties": {"fits": {"type": "boolean"}},
        "required": ["fits"],
        "additionalProperties": False,
    }
    reply = await local.generate(prompt("Does it?", 40, json_schema=schema))
    assert isinstance(json.loads(reply.text)["fits"], bool)


async def until(local: LocalGenerator, *, busy: bool) -> int:
    """Waits until the model is or is not writing; tokens written for the last call."""
    async with asyncio.timeout(120):
        while True:
            [slot] = (await local._http.get("/slots")).json()
            if slot["is_processing"] == busy:
                return int(slot["next_token"][0]["n_decoded"])
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("way", ["whole", "stream"])
async def test_a_call_that_is_cancelled_stops_the_model(local: LocalGenerator, way: str) -> None:
    async def read() -> None:
        async with aclosing(local.stream(prompt(max_tokens=4000))) as pieces:
            async for _ in pieces:
                pass

    work = read() if way == "stream" else local.generate(prompt(max_tokens=4000))
    call = asyncio.create_task(work)
    await until(local, busy=True)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await until(local, busy=False) < 4000


@pytest.mark.parametrize("arch", ["naive", "agentic"])
async def test_a_client_that_hangs_up_stops_the_model(local: LocalGenerator, make_ports: MakePorts, arch: str) -> None:
    asked = {"question": "What is the debt?", "stream": True}
    async with live(await make_ports(local)) as service, httpx.AsyncClient(base_url=service.url, timeout=60) as client:
        async with client.stream("POST", f"/query/{arch}", json=asked) as events:
            async for line in events.aiter_lines():
                if line == "event: token":
                    break
        await until(local, busy=False)
        assert (await local.generate(prompt(max_tokens=1))).output_tokens == 1


async def test_its_time_limit_names_its_setting() -> None:
    async with LocalGenerator.open(MODEL, threads=1, timeout_s=0.2) as local:
        with pytest.raises(Timeout, match="LOCAL_TIMEOUT_S"):
            await local.generate(prompt(max_tokens=4000))


async def test_only_who_has_the_key_is_served_and_nobody_after_the_end() -> None:
    async with LocalGenerator.open(MODEL, threads=1) as local:
        address = str(local._http.base_url)
        async with httpx.AsyncClient(base_url=address) as stranger:
            assert (await stranger.post("/tokenize", json={"content": "x"})).status_code == 401
    async with httpx.AsyncClient(base_url=address) as late:
        with pytest.raises(httpx.ConnectError):
            await late.get("/health")


async def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"nonsense")
    with pytest.raises(GeneratorUnavailable, match=r"bad\.gguf"):
        async with LocalGenerator.open(tmp_path / "bad.gguf", threads=1):
            pass


async def test_counting_many_texts_leaves_no_connection_that_others_wait_for(local: LocalGenerator) -> None:
    """A thread of the server's few stays with an idle connection for five seconds."""
    async with asyncio.timeout(4):
        for _ in range(5):
            assert len(await local.count_tokens(["Net sales"] * 32)) == 32
