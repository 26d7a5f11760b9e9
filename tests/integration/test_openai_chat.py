"""The OpenAI-compatible generator against a real small model and against an endpoint that fails as told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from subprocess import run
from sys import executable
from time import monotonic
from traceback import format_exception
from typing import Any

import anyio
import pytest

from app.adapters.openai_chat import OpenAIGenerator, _retry_after
from app.architectures.naive import Naive
from app.errors import Busy, GeneratorUnavailable, SextantError, Timeout, UpstreamFailed
from app.ports import Generator
from app.settings import Settings
from app.tools import Tools
from app.types import Call, Calling, Function, Generation, Limits, Prompt, Question
from tests.fakes import fake_ports
from tests.integration.openai_server import (
    COMPLETION,
    Reply,
    ScriptedEndpoint,
    calling,
    closed_port,
    error,
    piece,
    scripted_endpoint,
    small_model,
)

pytestmark = pytest.mark.anyio

KEY = "sk-secret-1234567890"
PROMPT = Prompt("answer", (("system", "Be brief."), ("user", "How many segments are there?")), max_tokens=16)
USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    with small_model() as url:
        yield url


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedEndpoint]:
    with scripted_endpoint() as endpoint:
        yield endpoint


@asynccontextmanager
async def generator(base_url: str, **changes: Any) -> AsyncIterator[OpenAIGenerator]:
    options: dict[str, Any] = {"api_key": KEY, "timeout_s": 5.0, "max_retries": 2, "backoff_s": 0.01} | changes
    made = OpenAIGenerator("small", base_url=base_url, **options)
    yield made
    await made.aclose()


async def collect(stream: AsyncIterator[str | Generation]) -> tuple[list[str], Generation]:
    parts = [part async for part in stream]
    assert isinstance(parts[-1], Generation)
    pieces = [part for part in parts[:-1] if isinstance(part, str)]
    assert len(pieces) == len(parts) - 1
    return pieces, parts[-1]


async def failure(server: ScriptedEndpoint, *replies: Reply, **changes: Any) -> SextantError:
    """The error of one `generate` against this script; neither it nor its traceback may hold the key."""
    server.play(*replies)
    async with generator(server.base_url, **changes) as made:
        with pytest.raises(SextantError) as caught:
            await made.generate(PROMPT)
    assert KEY not in "".join(format_exception(caught.value))
    return caught.value


async def stream_failure(server: ScriptedEndpoint, *replies: Reply, **changes: Any) -> tuple[list[Any], SextantError]:
    """What one `stream` against this script gave before its error, and the error."""
    server.play(*replies)
    parts: list[Any] = []

    async def read(made: OpenAIGenerator) -> None:
        async for part in made.stream(PROMPT):
            parts.append(part)

    async with generator(server.base_url, **changes) as made:
        with pytest.raises(SextantError) as caught:
            await read(made)
    assert KEY not in "".join(format_exception(caught.value))
    return parts, caught.value


# A real model


async def test_a_real_model_generates_and_counts_its_tokens(model_url: str) -> None:
    async with generator(model_url, timeout_s=30.0) as made:
        written = await made.generate(PROMPT)
    assert written.llm_calls == 1
    assert 10 < written.input_tokens < 60
    assert 1 <= written.output_tokens <= 16


async def test_a_real_model_streams_what_it_generates(model_url: str) -> None:
    async with generator(model_url, timeout_s=30.0) as made:
        whole = await made.generate(PROMPT)
        pieces, streamed = await collect(made.stream(PROMPT))
    assert len(pieces) > 1
    assert "".join(pieces) == streamed.text
    assert (streamed.llm_calls, streamed.input_tokens) == (1, whole.input_tokens)
    assert 1 <= streamed.output_tokens <= 16


async def test_a_real_model_obeys_a_json_schema(model_url: str) -> None:
    schema = {
        "type": "object",
        "properties": {"relevant": {"type": "boolean"}, "grade": {"enum": ["low", "high"]}},
        "required": ["relevant", "grade"],
        "additionalProperties": False,
    }
    prompt = Prompt("grade", PROMPT.messages, max_tokens=64, json_schema=schema)
    async with generator(model_url, timeout_s=30.0) as made:
        graded = json.loads((await made.generate(prompt)).text)
    assert graded.keys() == {"relevant", "grade"}
    assert isinstance(graded["relevant"], bool)
    assert graded["grade"] in ("low", "high")


async def test_a_real_model_serves_more_callers_than_slots(model_url: str) -> None:
    prompt = Prompt("answer", PROMPT.messages, max_tokens=4)
    async with generator(model_url, timeout_s=30.0, concurrency=2) as made:
        written = await asyncio.gather(*(made.generate(prompt) for _ in range(6)))
    assert [w.llm_calls for w in written] == [1] * 6


async def test_leaving_a_real_stream_frees_the_model_at_once(model_url: str) -> None:
    endless = Prompt("answer", (("user", "Count from one to a million in words."),), max_tokens=3000)
    short = Prompt("answer", PROMPT.messages, max_tokens=4)
    async with generator(model_url, timeout_s=60.0, concurrency=2) as made:
        started = monotonic()
        for _ in range(3):  # more than the model has slots: one left running would block the next
            async with aclosing(made.stream(endless)) as parts:
                assert isinstance(await anext(parts), str)
        await made.generate(short)
    assert monotonic() - started < 5.0


# What is sent


async def test_the_request_carries_model_messages_limits_and_key(server: ScriptedEndpoint) -> None:
    server.play(Reply())
    async with generator(server.base_url) as made:
        port: Generator = made
        assert await port.generate(PROMPT) == Generation("Twelve. [1]", llm_calls=1, input_tokens=7, output_tokens=3)
        assert (port.name, port.purposes) == ("small", None)
    assert server.keys == [f"Bearer {KEY}"]
    assert server.requests == [
        {
            "model": "small",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "How many segments are there?"},
            ],
            "max_tokens": 16,
            "temperature": 0.0,
        }
    ]


async def test_an_absent_key_is_sent_as_a_placeholder_never_taken_from_the_environment(
    server: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    server.play(Reply())
    async with generator(server.base_url, api_key=None) as made:
        await made.generate(PROMPT)
    assert server.keys == ["Bearer none"]


async def test_parameters_that_a_reasoning_model_refuses_are_replaced_and_remembered(server: ScriptedEndpoint) -> None:
    server.play(
        error(400, "use max_completion_tokens", param="max_tokens", code="unsupported_parameter"),
        error(400, "only 1 is supported", param="temperature", code="unsupported_value"),
        Reply(),
    )
    async with generator(server.base_url) as made:
        await made.generate(PROMPT)
        await made.generate(PROMPT)
    parameters = [request.keys() - {"model", "messages"} for request in server.requests]
    assert parameters == [
        {"max_tokens", "temperature"},
        {"max_completion_tokens", "temperature"},
        {"max_completion_tokens"},
        {"max_completion_tokens"},
    ]


async def test_tokens_are_a_quarter_of_the_characters_where_no_usage_is_reported(server: ScriptedEndpoint) -> None:
    body = {"choices": [{"message": {"content": "123456789"}}]}
    server.play(Reply(body=body))
    async with generator(server.base_url) as made:
        written = await made.generate(PROMPT)
    assert (written.input_tokens, written.output_tokens) == (10, 3)  # 9 + 28 characters in, 9 out


@pytest.mark.parametrize(
    "usage", [None, {"prompt_tokens": -5, "completion_tokens": 2}, {"prompt_tokens": True, "completion_tokens": 1.5}]
)
async def test_a_usage_that_counts_nothing_is_none(server: ScriptedEndpoint, usage: dict[str, Any] | None) -> None:
    server.play(Reply(body={**COMPLETION, "usage": usage}))
    async with generator(server.base_url) as made:
        generation = await made.generate(PROMPT)
    assert generation.input_tokens > 0
    assert generation.output_tokens == 3, "eleven characters"


def saying(content: Any, finish: str = "stop") -> Reply:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}}
    return Reply(body={**COMPLETION, "choices": [choice]})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>Is it [2]?</think>\nTwelve. [1]", "Twelve. [1]"),
        ("Is it [2]?</think>Twelve. [1]", "Twelve. [1]"),
        ("<think>Is it", ""),
        ("Twelve <think> [1]", "Twelve <think> [1]"),
        ([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Twelve. [1]"}], "Twelve. [1]"),
    ],
)
async def test_thoughts_are_no_answer(server: ScriptedEndpoint, content: Any, text: str) -> None:
    server.play(saying(content))
    async with generator(server.base_url) as made:
        assert (await made.generate(PROMPT)).text == text


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (("<thi", "nk>Is it [2]?</th", "ink>\nTwe", "lve."), ["Twe", "lve."]),
        (("\n", "<", "5% of sales"), ["\n<5% of sales"]),
        (("<think>Is it",), []),
        (("<thin",), ["<thin"]),
    ],
)
async def test_thoughts_are_not_streamed(server: ScriptedEndpoint, sent: Sequence[str], shown: list[str]) -> None:
    server.play(Reply(events=(*map(piece, sent), piece(None, "stop"), "[DONE]")))
    async with generator(server.base_url) as made:
        pieces, generation = await collect(made.stream(PROMPT))
    assert pieces == shown
    assert generation.text == "".join(shown)


async def test_an_answer_that_was_cut_says_so(server: ScriptedEndpoint) -> None:
    server.play(saying("Twel", "length"))
    async with generator(server.base_url) as made:
        assert (await made.generate(PROMPT)).finish_reason == "length"
        server.play(Reply(events=(piece("Twel"), piece(None, "length"), "[DONE]")))
        _, generation = await collect(made.stream(PROMPT))
        assert generation.finish_reason == "length"


@pytest.mark.parametrize("end", ["/", "//", "/chat/completions", "/chat/completions/"])
async def test_an_address_may_end_too_late(server: ScriptedEndpoint, end: str) -> None:
    server.play(Reply())
    async with generator(server.base_url + end) as made:
        assert (await made.generate(PROMPT)).text == "Twelve. [1]"


async def test_a_stream_asks_for_usage_and_reports_it(server: ScriptedEndpoint) -> None:
    server.play(Reply(events=(piece(None), piece("Twelve"), piece(". [1]", "stop"), USAGE, "[DONE]")))
    async with generator(server.base_url) as made:
        pieces, written = await collect(made.stream(PROMPT))
    assert pieces == ["Twelve", ". [1]"]
    assert written == Generation("Twelve. [1]", llm_calls=1, input_tokens=9, output_tokens=4)
    assert server.requests[0]["stream"] is True
    assert server.requests[0]["stream_options"] == {"include_usage": True}


async def test_no_more_calls_than_allowed_are_under_way(server: ScriptedEndpoint) -> None:
    server.play(Reply(delay_s=0.1))
    async with generator(server.base_url, concurrency=2) as made:
        started = monotonic()
        await asyncio.gather(*(made.generate(PROMPT) for _ in range(6)))
    assert monotonic() - started >= 0.3
    assert server.peak == 2


# Faults that pass


async def test_retry_after_is_honoured_before_the_next_attempt(server: ScriptedEndpoint) -> None:
    server.play(error(429, headers={"Retry-After": "0.5"}), Reply())
    async with generator(server.base_url) as made:
        assert (await made.generate(PROMPT)).llm_calls == 1
    assert len(server.times) == 2
    assert 0.5 <= server.times[1] - server.times[0] < 1.5


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_a_passing_fault_is_retried(server: ScriptedEndpoint, status: int) -> None:
    server.play(error(status), error(status), Reply())
    async with generator(server.base_url) as made:
        assert (await made.generate(PROMPT)).text == "Twelve. [1]"
    assert len(server.requests) == 3


async def test_a_stream_is_retried_until_it_opens(server: ScriptedEndpoint) -> None:
    server.play(error(500), Reply(events=(piece("Yes", "stop"), "[DONE]")))
    async with generator(server.base_url) as made:
        pieces, written = await collect(made.stream(PROMPT))
    assert (pieces, written.llm_calls, len(server.requests)) == (["Yes"], 1, 2)


# Faults that stay


async def test_a_rate_limit_that_stays_is_busy_and_says_when_to_come_back(server: ScriptedEndpoint) -> None:
    failed = await failure(server, error(429, headers={"Retry-After": "0.1"}))
    assert isinstance(failed, Busy)
    assert failed.retry_after == 0.1
    assert len(server.requests) == 3


async def test_no_attempt_is_made_that_could_not_finish_in_time(server: ScriptedEndpoint) -> None:
    started = monotonic()
    failed = await failure(server, error(429, headers={"Retry-After": "120"}))
    assert isinstance(failed, Busy)
    assert failed.retry_after == 120.0
    assert len(server.requests) == 1
    assert monotonic() - started < 1.0


async def test_a_server_error_that_stays_is_an_upstream_failure(server: ScriptedEndpoint) -> None:
    failed = await failure(server, error(500, f"out of memory, key {KEY}"))
    assert isinstance(failed, UpstreamFailed)
    assert str(failed) == "the generator endpoint answered HTTP 500: out of memory, key [key]"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("reply", "kind", "names"),
    [
        (error(401, f"Incorrect API key: {KEY}"), GeneratorUnavailable, "OPENAI_API_KEY"),
        (error(403), GeneratorUnavailable, "OPENAI_API_KEY"),
        (error(429, code="insufficient_quota"), GeneratorUnavailable, "OPENAI_API_KEY"),
        (error(404), GeneratorUnavailable, "OPENAI_MODEL"),
        (error(400, "the context is too long"), UpstreamFailed, "the context is too long"),
        (Reply(400, b"<html>"), UpstreamFailed, "HTTP 400"),
        (Reply(400, {"error": {"message": 1, "param": ["a"], "code": {}}}), UpstreamFailed, "HTTP 400"),
        (Reply(400, {"error": None}), UpstreamFailed, "HTTP 400"),
        (Reply(body={"choices": {"a": 1}}), UpstreamFailed, "without a completion"),
        (Reply(body=b'{"choices": [{"mess'), UpstreamFailed, "not JSON"),
        (Reply(body=b"\xff\xfe"), UpstreamFailed, "not JSON"),
        (Reply(body=b'"hello"'), UpstreamFailed, "without a completion"),
        (Reply(body={}), UpstreamFailed, "without a completion"),
        (Reply(body={"choices": []}), UpstreamFailed, "without a completion"),
        (Reply(body={"choices": [{"finish_reason": "stop"}]}), UpstreamFailed, "without a completion"),
        (Reply(body={"choices": [{"message": {"content": None}}]}), UpstreamFailed, "without text"),
        (saying(None, "content_filter"), UpstreamFailed, "finish_reason 'content_filter'"),
        (Reply(body={"error": {"message": f"no model for {KEY}"}}), UpstreamFailed, "completion: no model for [key]"),
        (Reply(body={"choices": [{"message": {"content": 12}}]}), UpstreamFailed, "without text"),
    ],
)
async def test_what_another_attempt_would_not_mend_is_asked_once(
    server: ScriptedEndpoint, reply: Reply, kind: type[SextantError], names: str
) -> None:
    failed = await failure(server, reply)
    assert type(failed) is kind
    assert names in str(failed)
    assert len(server.requests) == 1


async def test_a_slow_endpoint_times_out_once_and_is_hung_up_on(server: ScriptedEndpoint) -> None:
    started = monotonic()
    failed = await failure(server, Reply(delay_s=10.0), timeout_s=0.4)
    assert isinstance(failed, Timeout)
    assert "OPENAI_TIMEOUT_S" in str(failed)
    assert 0.4 <= monotonic() - started < 1.5
    assert len(server.requests) == 1
    assert await hung_up(server)


async def test_waiting_for_a_slot_counts_as_time(server: ScriptedEndpoint) -> None:
    server.play(Reply(delay_s=10.0))
    async with generator(server.base_url, timeout_s=0.3, concurrency=1) as made:
        started = monotonic()
        failed = await asyncio.gather(*(made.generate(PROMPT) for _ in range(3)), return_exceptions=True)
    assert [type(f) for f in failed] == [Timeout] * 3
    assert monotonic() - started < 1.5


async def test_a_refused_connection_names_the_setting(server: ScriptedEndpoint) -> None:
    server.play(Reply())
    started = monotonic()
    async with generator(f"http://user:{KEY}@127.0.0.1:{closed_port()}/v1") as made:
        with pytest.raises(GeneratorUnavailable, match="OPENAI_BASE_URL") as caught:
            await made.generate(PROMPT)
    assert KEY not in str(caught.value)
    assert monotonic() - started < 2.0


@pytest.mark.parametrize("url", ["http://no-such-host.invalid/v1", "127.0.0.1:80/v1", "http://[/v1", "ftp://x/v1"])
async def test_an_impossible_address_names_the_setting(url: str) -> None:
    async with generator(url) as made:
        with pytest.raises(GeneratorUnavailable, match="OPENAI_BASE_URL"):
            await made.generate(PROMPT)


async def test_a_connection_lost_before_the_reply_is_retried_then_reported(server: ScriptedEndpoint) -> None:
    failed = await failure(server, Reply(cut=True))
    assert isinstance(failed, UpstreamFailed)
    assert "connection" in str(failed)
    assert len(server.requests) == 3


# Streams that break


@pytest.mark.parametrize(
    ("events", "cut", "says"),
    [
        ((piece("Twel"),), True, "broke"),
        ((piece("Twel"), "[DONE]"), False, "before the answer was complete"),
        ((piece("Twel"),), False, "before the answer was complete"),
        ((piece("Twel"), "{not json"), False, "not JSON"),
        ((piece("Twel"), {"error": {"message": f"slot died {KEY}"}}), False, "slot died [key]"),
    ],
)
async def test_a_broken_stream_fails_after_what_it_gave_and_is_not_retried(
    server: ScriptedEndpoint, events: tuple[Any, ...], cut: bool, says: str
) -> None:
    pieces, failed = await stream_failure(server, Reply(events=events, cut=cut))
    assert pieces == ["Twel"]
    assert type(failed) is UpstreamFailed
    assert says in str(failed)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "event",
    [
        "12",
        "[]",
        "null",
        '{"choices": 3}',
        '{"choices": {"a": 1}}',
        '{"choices": [{}]}',
        '{"choices": [null]}',
        '{"choices": [{"delta": {"content": 12}, "finish_reason": "stop"}]}',
    ],
)
async def test_events_of_no_known_shape_end_as_an_upstream_failure(server: ScriptedEndpoint, event: str) -> None:
    _, failed = await stream_failure(server, Reply(events=(event, "[DONE]")))
    assert type(failed) is UpstreamFailed


async def test_a_stream_that_stalls_times_out(server: ScriptedEndpoint) -> None:
    started = monotonic()
    pieces, failed = await stream_failure(
        server, Reply(events=(piece("Twel"), piece("ve")), pause_s=5.0), timeout_s=0.4
    )
    assert pieces == ["Twel"]
    assert isinstance(failed, Timeout)
    assert monotonic() - started < 1.5
    assert await hung_up(server)


# Cancellation


async def hung_up(server: ScriptedEndpoint) -> bool:
    """Whether the client of one more request has gone, waiting up to two seconds."""
    return await asyncio.to_thread(server.abandoned.acquire, timeout=2.0)


async def test_cancelling_a_call_hangs_up_and_frees_its_slot(server: ScriptedEndpoint) -> None:
    server.play(Reply(delay_s=30.0), Reply())
    async with generator(server.base_url, concurrency=1) as made:
        with anyio.move_on_after(0.2) as scope:
            await made.generate(PROMPT)
        assert scope.cancelled_caught
        assert await hung_up(server)
        assert (await made.generate(PROMPT)).text == "Twelve. [1]"


@pytest.mark.parametrize("how", ["scope", "task", "close"])
async def test_leaving_a_stream_hangs_up_and_frees_its_slot(server: ScriptedEndpoint, how: str) -> None:
    server.play(Reply(events=(piece("a"), piece("b"), piece("c", "stop")), pause_s=10.0), Reply())
    seen = asyncio.Event()

    async def read(made: OpenAIGenerator) -> None:
        async with aclosing(made.stream(PROMPT)) as parts:
            async for _ in parts:
                seen.set()
                if how == "close":
                    return

    async with generator(server.base_url, concurrency=1) as made:
        if how == "scope":
            with anyio.move_on_after(0.3):
                await read(made)
        elif how == "task":
            task = asyncio.create_task(read(made))
            await seen.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await read(made)
        assert seen.is_set()
        assert await hung_up(server)
        assert (await made.generate(PROMPT)).text == "Twelve. [1]"


async def test_cancelling_during_a_pause_between_attempts_is_immediate(server: ScriptedEndpoint) -> None:
    server.play(error(429, headers={"Retry-After": "4"}))
    async with generator(server.base_url) as made:
        started = monotonic()
        with anyio.move_on_after(0.2):
            await made.generate(PROMPT)
    assert monotonic() - started < 1.0
    assert len(server.requests) == 1


# Configuration


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Settings]:
    """Settings from these variables alone."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)

    def read(**variables: str) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return Settings()

    return read


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": KEY}, ["OPENAI_MODEL"]),
        ({"OPENAI_MODEL": "small"}, ["OPENAI_BASE_URL", "OPENAI_API_KEY"]),
        ({"OPENAI_MODEL": "small", "OPENAI_API_KEY": "sk–1"}, ["OPENAI_API_KEY"]),
    ],
)
async def test_missing_settings_are_named(
    environment: Callable[..., Settings], variables: dict[str, str], names: list[str]
) -> None:
    with pytest.raises(GeneratorUnavailable) as caught:
        OpenAIGenerator.from_settings(environment(**variables))
    assert all(name in str(caught.value) for name in names)


async def test_settings_reach_the_endpoint(server: ScriptedEndpoint, environment: Callable[..., Settings]) -> None:
    server.play(error(500))
    settings = environment(
        OPENAI_MODEL="m", OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=f" {KEY}\n", OPENAI_MAX_RETRIES="0"
    )
    made = OpenAIGenerator.from_settings(settings)
    with pytest.raises(UpstreamFailed):
        await made.generate(PROMPT)
    await made.aclose()
    assert (made.name, server.keys) == ("m", [f"Bearer {KEY}"])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("3", 3.0), ("0.25", 0.25), ("-1", 0.0), ("soon", None), ("inf", None), ("nan", None), ("", None)],
)
def test_retry_after_in_seconds(header: str | None, seconds: float | None) -> None:
    assert _retry_after(header) == seconds


def test_retry_after_as_a_date() -> None:
    seconds = _retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True))
    assert seconds is not None
    assert 28.0 <= seconds <= 30.0
    assert _retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


def test_importing_the_adapter_does_not_load_openai() -> None:
    code = "import sys, app.adapters.openai_chat; sys.exit('openai' in sys.modules)"
    assert run([executable, "-c", code], check=False).returncode == 0


async def test_a_real_model_tells_the_probability_of_what_it_writes(model_url: str) -> None:
    async with generator(model_url, timeout_s=120.0) as real:
        told = await real.generate(replace(PROMPT, logprobs=True))
        untold = await real.generate(PROMPT)
    assert told.text == untold.text
    assert untold.logprob is None
    assert told.logprob is not None
    assert -20 * PROMPT.max_tokens < told.logprob < 0


async def test_a_real_model_answers_from_each_passage_alone(model_url: str) -> None:
    async with generator(model_url, timeout_s=120.0) as real:
        tools = Tools(await fake_ports(generator=real), Limits(timeout_s=300))
        await Naive(decoding="sequence").answer(Question("net revenue", k=2), tools)
    assert tools.cost.llm_calls_by_purpose == {"sequence": 2}
    [step] = [step for step in tools.trace if step.name == "marginal"]
    assert sum(probability for _, _, probability in step.detail["candidates"]) == pytest.approx(1, abs=0.01)


def with_logprobs(logprobs: Any) -> Reply:
    choice = COMPLETION["choices"][0] | {"logprobs": logprobs}  # type: ignore[index]
    return Reply(body=COMPLETION | {"choices": [choice]})


async def test_log_probabilities_are_added_or_missed(server: ScriptedEndpoint) -> None:
    wanted = replace(PROMPT, logprobs=True)
    async with generator(server.base_url) as made:
        tokens = [{"token": token, "logprob": log, "top_logprobs": []} for token, log in (("Tw", -0.5), ("elve", -1.0))]
        server.play(with_logprobs({"content": tokens}))
        assert (await made.generate(wanted)).logprob == -1.5
        assert server.requests[0]["logprobs"] is True
        untold: list[Any] = [None, {"content": None}, {"content": []}]
        for nothing in untold:
            server.play(with_logprobs(nothing))
            assert (await made.generate(wanted)).logprob is None
        server.play(with_logprobs({"content": [{"token": "x"}]}))
        with pytest.raises(UpstreamFailed, match="log-probabilities"):
            await made.generate(wanted)
        server.play(Reply())
        await made.generate(PROMPT)
        assert "logprobs" not in server.requests[0]


# Function calling

LOOK_UP = Function("look_up", "Finds a word.", {"type": "object", "properties": {"word": {"type": "string"}}})
ASKING = replace(
    PROMPT,
    purpose="plan",
    json_schema={"type": "object"},
    calling=Calling((("system", "Call a tool."), ("user", "How many segments are there?")), (LOOK_UP,)),
)
JSON_REPLY = Reply(body={**COMPLETION, "choices": [{"finish_reason": "stop", "message": {"content": "{}"}}]})


async def test_functions_are_declared_and_their_calls_returned(server: ScriptedEndpoint) -> None:
    two = (("look_up", '{"word": "segment"}'), ("look_up", '{"word": "unit"}'))
    server.play(calling(*two, prompt_tokens=70, completion_tokens=9))
    async with generator(server.base_url) as made:
        written = await made.generate(ASKING)
    assert written.calls == (Call(*two[0]), Call(*two[1]))
    assert (written.text, written.llm_calls, written.input_tokens, written.output_tokens) == ("", 1, 70, 9)
    [request] = server.requests
    assert request["tools"] == [
        {
            "type": "function",
            "function": {"name": "look_up", "description": "Finds a word.", "parameters": dict(LOOK_UP.parameters)},
        }
    ]
    assert (request["tool_choice"], request["parallel_tool_calls"]) == ("required", True)
    assert request["messages"][0] == {"role": "system", "content": "Call a tool."}
    assert "response_format" not in request


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "unknown parameter", param="tools"),
        error(400, "m does not support tools"),
        error(400, '"auto" tool choice requires --enable-auto-tool-choice'),
        error(404, "No endpoints found that support tool use"),
        error(422, "extra fields not permitted: tool_choice"),
        error(500, "tools param requires --jinja flag"),
        error(501, "function calling is not implemented"),
    ],
)
async def test_an_endpoint_without_functions_is_asked_for_json_at_once_and_from_then_on(
    server: ScriptedEndpoint, refusal: Reply
) -> None:
    server.play(refusal, JSON_REPLY)
    async with generator(server.base_url, max_retries=0) as made:
        first, second = await made.generate(ASKING), await made.generate(ASKING)
    assert [(one.text, one.calls, one.llm_calls) for one in (first, second)] == [("{}", (), 1)] * 2
    assert ["tools" in request for request in server.requests] == [True, False, False]
    assert server.requests[1]["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert server.requests[1]["messages"][0]["content"] == "Be brief."


@pytest.mark.parametrize(
    ("finish", "text", "then"),
    [("stop", "{}", False), ("length", "First I would look", False), ("length", "<think>Which word", True)],
)
async def test_one_that_writes_instead_of_calling_is_asked_for_json_from_then_on(
    server: ScriptedEndpoint, finish: str, text: str, then: bool
) -> None:
    """Not one that was cut while it thought."""
    choices = [{"finish_reason": finish, "message": {"content": text}}]
    server.play(Reply(body={**COMPLETION, "choices": choices}))
    async with generator(server.base_url) as made:
        written = [await made.generate(ASKING) for _ in range(2)]
    assert [one.llm_calls for one in written] == [1, 1]
    assert ["tools" in request for request in server.requests] == [True, then]


@pytest.mark.parametrize(("tools", "sent"), [("true", [True, True]), ("false", [False, False])])
async def test_a_setting_decides(server: ScriptedEndpoint, tools: str, sent: list[bool]) -> None:
    server.play(JSON_REPLY)
    async with generator(server.base_url, tools=tools) as made:
        for _ in range(2):
            await made.generate(ASKING)
    assert ["tools" in request for request in server.requests] == sent


async def test_told_to_call_functions_it_falls_back_on_nothing(server: ScriptedEndpoint) -> None:
    server.play(error(400, "m does not support tools"))
    async with generator(server.base_url, tools="true") as made:
        with pytest.raises(UpstreamFailed, match="does not support tools"):
            await made.generate(ASKING)
    assert len(server.requests) == 1


async def test_one_that_makes_no_calls_at_once_is_still_asked_for_one(server: ScriptedEndpoint) -> None:
    refused = error(400, "Unsupported parameter: 'parallel_tool_calls'", param="parallel_tool_calls")
    server.play(refused, calling(("look_up", "{}")))
    async with generator(server.base_url, max_retries=0) as made:
        assert (await made.generate(ASKING)).calls == (Call("look_up", "{}"),)
    assert [("tools" in request, "parallel_tool_calls" in request) for request in server.requests] == [
        (True, True),
        (True, False),
    ]


async def test_a_stream_is_asked_without_functions(server: ScriptedEndpoint) -> None:
    server.play(Reply(events=(piece("Twelve.", "stop"), USAGE, "[DONE]")))
    async with generator(server.base_url) as made:
        await collect(made.stream(PROMPT))
    assert "tools" not in server.requests[0]


async def test_declared_functions_count_where_the_endpoint_counts_no_tokens(server: ScriptedEndpoint) -> None:
    reply = calling(("look_up", "{}"))
    reply.body.pop("usage")
    server.play(reply)
    async with generator(server.base_url) as made:
        written = await made.generate(ASKING)
    assert written.input_tokens == -(-ASKING.characters // 4) > PROMPT.characters // 4
