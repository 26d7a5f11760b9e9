"""A real server on a real socket: many clients, clients that leave, a graceful end, the command line."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from httpx import AsyncClient, Limits, ReadTimeout

from tests.conftest import MakePorts, live
from tests.fakes import HeldGenerator, ScriptedGenerator
from tests.http.test_operations import samples
from tests.http.test_query import added_up

pytestmark = pytest.mark.anyio
DEBT = "Debt was $4 million [1]."


async def test_32_clients_at_once(make_ports: MakePorts) -> None:
    ports = await make_ports(ScriptedGenerator([DEBT], delay_s=0.01))
    async with live(ports) as service, AsyncClient(base_url=service.url, limits=Limits(max_connections=32)) as client:

        async def ask(n: int) -> None:
            for arch in ("naive", "hybrid"):
                response = await client.post(f"/query/{arch}", json={"question": f"debt {n}"}, timeout=30)
                assert response.status_code == 200, response.text
                reply = response.json()
                assert added_up(reply["trace"]).items() <= reply["cost"].items()
                assert reply["cost"]["ops"] == {"naive": 3, "hybrid": 6}[arch]
                assert reply["cost"]["llm_calls"] == 1

        async with asyncio.TaskGroup() as group:
            for n in range(32):
                group.create_task(ask(n))
        got = await samples(client)
    assert got['rag_requests_total{arch="naive",outcome="answered"}'] == 32
    assert got['rag_llm_calls_total{arch="hybrid",purpose="answer"}'] == 32
    assert got["rag_in_flight"] == 0


async def test_beyond_the_concurrency_limit_is_busy(make_ports: MakePorts) -> None:
    generator = HeldGenerator([DEBT])
    async with live(await make_ports(generator), max_concurrency=1) as service:
        async with AsyncClient(base_url=service.url) as client:
            first = asyncio.create_task(client.post("/query/naive", json={"question": "debt"}))
            await generator.begun.wait()
            for stream in (False, True):
                refused = await client.post("/query/naive", json={"question": "debt", "stream": stream})
                assert (refused.status_code, refused.json()["error_code"]) == (429, "busy")
                assert refused.headers["retry-after"] == "1"
            assert (await client.get("/healthz")).status_code == 200
            generator.released.set()
            assert (await first).status_code == 200
            assert (await client.post("/query/naive", json={"question": "debt"})).status_code == 200


@pytest.mark.parametrize(
    ("path", "asked", "status"),
    [
        ("/query/naive", {"question": "debt"}, 499),
        ("/compare", {"question": "debt", "archs": ["naive"]}, 499),
        ("/query/naive", {"question": "debt", "stream": True}, 200),
    ],
    ids=["whole", "compare", "stream, whose status was sent long before"],
)
async def test_a_client_that_leaves_cancels_the_work_and_is_billed(
    make_ports: MakePorts, caplog: pytest.LogCaptureFixture, path: str, asked: dict[str, object], status: int
) -> None:
    caplog.set_level("INFO", "app.http")
    generator = HeldGenerator([DEBT])
    async with live(await make_ports(generator)) as service, AsyncClient(base_url=service.url) as client:
        async with AsyncClient(base_url=service.url, timeout=0.5) as impatient:
            with pytest.raises(ReadTimeout):
                await impatient.post(path, json=asked)
        async with asyncio.timeout(5):
            while (got := await samples(client))["rag_in_flight"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    assert generator.cancelled == 1
    assert got['rag_requests_total{arch="naive",outcome="cancelled"}'] == 1
    assert got['rag_ops_total{arch="naive",kind="dense"}'] == 3
    assert got['rag_llm_calls_total{arch="naive",purpose="answer"}'] == 1
    logged = [record.__dict__["fields"] for record in caplog.records if record.getMessage() == "request"]
    [line] = [fields for fields in logged if fields["path"] == path]
    assert (line["status"], line["error_code"], line["arch"]) == (status, "cancelled", "naive")


async def test_a_graceful_end_finishes_what_has_begun(make_ports: MakePorts) -> None:
    generator = HeldGenerator([DEBT])
    async with live(await make_ports(generator)) as service, AsyncClient(base_url=service.url) as client:
        whole = asyncio.create_task(client.post("/query/naive", json={"question": "debt"}))
        stream = asyncio.create_task(client.post("/query/naive", json={"question": "debt", "stream": True}))
        await generator.begun.wait()
        await asyncio.sleep(0.1)
        service.server.should_exit = True
        await asyncio.sleep(0.2)
        assert not service.task.done(), "it waits"
        generator.released.set()
        assert (await whole).json()["cost"]["llm_calls"] == 1
        assert "event: done" in (await stream).text
        await asyncio.wait_for(service.task, 5)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_loads_no_model_library() -> None:
    code = "import sys; from app.__main__ import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'fastapi')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "--port" in done.stdout


def test_without_keys_it_binds_loopback_alone() -> None:
    done = run("--host", "0.0.0.0")
    assert done.returncode == 2
    assert "refusing to bind 0.0.0.0" in done.stderr
    assert "API_KEYS" in done.stderr


def test_a_taken_port_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert done.stderr.startswith("sextant-api: cannot listen on 127.0.0.1 port")
    assert done.stderr.count("\n") == 1


def test_a_data_dir_that_is_a_file_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    done = run("--port", "0", DATA_DIR=str(tmp_path / "data"), LOG_LEVEL="ERROR")
    assert done.returncode == 1
    assert done.stderr.startswith("sextant-api: ")
    assert "Not a directory" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_wrong_setting_is_named_without_its_value() -> None:
    done = run(MAX_CONCURRENCY="none-of-your-business")
    assert done.returncode == 2
    assert "MAX_CONCURRENCY: Input should be a valid integer" in done.stderr
    assert "none-of-your-business" not in done.stderr


SERVE = """
import asyncio, sys
from contextlib import asynccontextmanager
import app.opening
from app.__main__ import main
from tests.conftest import fill
from tests.fakes import STAMP, FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder
from app.tools import Ports

@asynccontextmanager
async def open_ports(settings, uploads):
    store = FakeStore(STAMP)
    await fill(store)
    yield Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, QuotingGenerator())
    print("closed", flush=True)

app.opening.open_ports = open_ports
sys.exit(main(["--port", "0"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
async def test_the_command_serves_until_it_is_told_to_stop(stop: signal.Signals) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVE,
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    first = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    url = first.removeprefix("Sextant answers on ").strip()
    async with AsyncClient(base_url=url) as client:
        assert (await client.post("/query", json={"question": "debt"})).json()["arch"] == "auto"
    process.send_signal(stop)
    rest, log = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, log.decode()
    assert rest.decode() == "closed\n", "the ports are closed after the last request"
    lines = [json.loads(line) for line in log.decode().splitlines()]
    assert [line["status"] for line in lines if line["message"] == "request"] == [200]


@pytest.mark.parametrize(
    ("arguments", "environment", "says"),
    [
        ((), {"API_PORT": "70000"}, "API_PORT: Input should be less than or equal to 65535"),
        (("--port", "70000"), {}, "cannot listen on 127.0.0.1 port 70000"),
        ((), {"API_KEYS": "{s3cret"}, "api_keys"),
        ((), {"API_KEYS": '{"s3cret": {"tenants": "a"}}'}, "API_KEYS.TENANTS: Extra inputs are not permitted"),
        ((), {"API_KEYS": '{"": {}}'}, "API_KEYS.[KEY]: String should match pattern"),
        ((), {"API_KEYS": '{"s3cret ": {}}'}, "API_KEYS.[KEY]: String should match pattern"),
        ((), {"REQUEST_TIMEOUT_S": "inf"}, "REQUEST_TIMEOUT_S"),
        ((), {"OPENAI_BASE_URL": "localhost:8080"}, "OPENAI_BASE_URL"),
    ],
)
def test_a_wrong_setting_is_named_and_no_secret_shown(
    arguments: tuple[str, ...], environment: dict[str, str], says: str
) -> None:
    done = run(*arguments, **environment)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("sextant-api: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "s3cret" not in done.stderr.lower()
