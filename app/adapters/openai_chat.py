"""A generator behind any endpoint that speaks OpenAI's chat completions (OpenAI, vLLM, llama.cpp, Ollama, ...).

`openai` takes half a second to load, so it is imported on the first call.
"""

import asyncio
import math
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, replace
from email.utils import parsedate_to_datetime
from functools import cached_property
from time import time
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeGuard

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from app.adapters.thoughts import Thinking, without_thoughts
from app.errors import Busy, GeneratorUnavailable, SextantError, Timeout, UpstreamFailed
from app.settings import Settings
from app.types import Call, Generation, Prompt

if TYPE_CHECKING:
    import openai

OPENAI_URL = "https://api.openai.com/v1"
_REPLACEABLE = {"max_tokens", "temperature", "parallel_tool_calls"}
"""Parameters that OpenAI's reasoning models refuse."""
_NO_FUNCTIONS = frozenset({400, 404, 422, 500, 501})
"""Statuses with which endpoints refuse `tools`, which their message then names."""
_TOOLS = re.compile(r"\btools?\b|\btool_choice\b|\bfunction[- ]calling\b", re.IGNORECASE)

FunctionCalling: TypeAlias = Literal["auto", "true", "false"]
"""`auto`: until the endpoint refuses it, or answers without a call."""


class OpenAIGenerator:
    """Chat completions with retries, a limit on concurrent calls and one time limit over everything a call does.

    Retried, with exponential backoff and jitter on top of any Retry-After: 408, 409, 429, 5xx and lost or refused
    connections, never beyond the time limit. Not retried: a timeout, a stream that broke, and anything the endpoint
    answered with a completion; so each Generation is exactly one (`llm_calls` 1) and a bad one is not paid for twice.

    Tokens are what the endpoint reports; where it reports none, a character count divided by four.

    A request that the endpoint refuses for a parameter it does not know (see `_REPLACEABLE`, and tools) is put again
    without it, at once, and so is every later one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        max_retries: int = 3,
        concurrency: int = 8,
        backoff_s: float = 0.5,
        timeout_setting: str = "OPENAI_TIMEOUT_S",
        tools: FunctionCalling = "auto",
    ) -> None:
        """`timeout_s` covers waiting for a free slot, all attempts and the pauses between them, and the whole answer.

        `concurrency` is the number of calls under way at once. A pause is Retry-After, or `backoff_s` where there is
        none, and a random part on top whose upper bound is `backoff_s` at first and doubles up to 8 s.
        """
        self._model = model
        self._base_url = re.sub(r"/+(chat/completions/*)?$", "", base_url)
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._timeout_setting = timeout_setting
        self._max_retries = max_retries
        self._backoff_s = backoff_s
        self._jitter = wait_random_exponential(multiplier=backoff_s, max=8.0)
        self._slots = asyncio.Semaphore(concurrency)
        self._tools = tools
        self._refused: set[str] = {"tools"} if tools == "false" else set()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises GeneratorUnavailable that says which settings are missing."""
        if not settings.openai_model:
            raise GeneratorUnavailable("no model is configured for the openai generator; set OPENAI_MODEL")
        if not settings.openai_base_url and not settings.openai_api_key:
            raise GeneratorUnavailable(
                "no endpoint is configured for the openai generator; set OPENAI_BASE_URL (any OpenAI-compatible "
                "endpoint, such as http://127.0.0.1:8080/v1) or OPENAI_API_KEY (for OpenAI itself)"
            )
        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
        if key and not (key.isascii() and key.isprintable()):
            raise GeneratorUnavailable("OPENAI_API_KEY holds a character that no HTTP header may; copy it again")
        return cls(
            settings.openai_model,
            base_url=settings.openai_base_url or OPENAI_URL,
            api_key=key,
            timeout_s=settings.openai_timeout_s,
            max_retries=settings.openai_max_retries,
            concurrency=settings.openai_concurrency,
            tools=settings.openai_tools,
        )

    @property
    def name(self) -> str:
        return self._model

    @property
    def purposes(self) -> frozenset[str] | None:
        return None

    async def generate(self, prompt: Prompt) -> Generation:
        """Raises GeneratorUnavailable, Busy, UpstreamFailed, Timeout.

        With a `json_schema` (closed: every property required, no others) the text is JSON unless cut at `max_tokens`.
        A prompt with `calling` is put so unless the endpoint is known not to call functions.
        """
        async with self._within(self._deadline()), self._slots:
            completion = await self._send(prompt)
        try:
            choice = completion.choices[0]
            text, calls, finish = _text(choice.message.content), _calls(choice.message), choice.finish_reason
        except (AttributeError, LookupError, TypeError):
            said = self._words(getattr(completion, "error", None), "")
            raise UpstreamFailed(
                f"the generator endpoint answered without a completion{said and f': {said}'}"
            ) from None
        if not isinstance(text, str) and not (text is None and calls):
            raise UpstreamFailed(
                f"the generator endpoint answered a completion without text (finish_reason {finish!r:.40})"
            )
        generation = replace(_generation(prompt, text or "", completion.usage, finish), calls=calls)
        if self._calling(prompt) and not calls and self._tools == "auto" and (finish == "stop" or generation.text):
            self._refused.add("tools")  # a call was required: it does not know tools, or writes prose until it is cut
        return replace(generation, logprob=_logprob(choice)) if prompt.logprobs else generation

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Generation, None]:
        """As `generate`, in pieces. Closing the iterator, or cancelling its task, ends the request at the endpoint."""
        deadline = self._deadline()
        pieces: list[str] = []
        thinking = Thinking()
        usage = finished = None
        async with AsyncExitStack() as held:
            async with self._within(deadline):
                await held.enter_async_context(self._slots)
                events = await self._send(prompt, stream=True, stream_options={"include_usage": True})
                held.push_async_callback(events.close)
            while True:
                async with self._within(deadline):
                    with self._translated():
                        event = await anext(events, None)
                if event is None:
                    break
                usage = getattr(event, "usage", None) or usage
                piece, reason = _delta(event)
                finished = reason or finished
                pieces.append(piece)
                if shown := thinking.shown(piece):
                    yield shown
        if not finished:
            raise UpstreamFailed("the generator endpoint ended its stream before the answer was complete")
        if shown := thinking.rest():
            yield shown
        yield _generation(prompt, "".join(pieces), usage, finished)

    async def aclose(self) -> None:
        """Close idle connections."""
        if "_client" in self.__dict__:
            await self._client.close()

    @cached_property
    def _client(self) -> "openai.AsyncOpenAI":
        import openai

        return openai.AsyncOpenAI(
            base_url=self._base_url,
            api_key=self._api_key or "none",  # local endpoints want no key, the client insists on one
            max_retries=0,
            timeout=openai.Timeout(self._timeout_s, connect=min(5.0, self._timeout_s)),
        )

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s

    @asynccontextmanager
    async def _within(self, deadline: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError:
            raise self._timed_out() from None

    def _timed_out(self) -> Timeout:
        return Timeout(f"the generator did not finish within {self._timeout_s:g} s ({self._timeout_setting})")

    async def _send(self, prompt: Prompt, **extra: Any) -> Any:
        """The endpoint's reply (a stream of events with stream=True), after retries."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, SextantError) and error.retry_after is not None),
            wait=self._wait,
            stop=stop_after_attempt(self._max_retries + 1) | stop_before_delay(self._timeout_s),
            reraise=True,
        )
        return await retrying(self._attempt, prompt, extra)

    async def _attempt(self, prompt: Prompt, extra: dict[str, Any]) -> Any:
        """Put again for as long as the endpoint refuses one more parameter, of which there are four."""
        while True:
            known = len(self._refused)
            try:
                with self._translated():
                    return await self._client.chat.completions.create(**self._request(prompt), **extra)
            except UpstreamFailed:
                if len(self._refused) == known:
                    raise

    def _calling(self, prompt: Prompt) -> bool:
        return prompt.calling is not None and "tools" not in self._refused

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, SextantError) else None
        return (asked or 0.0) + self._jitter(state)

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": _messages(prompt),
            "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens": prompt.max_tokens,
        }
        if prompt.calling is not None and self._calling(prompt):
            functions = [asdict(function) for function in prompt.calling.functions]
            request["messages"] = [{"role": role, "content": text} for role, text in prompt.calling.messages]
            request["tools"] = [{"type": "function", "function": function} for function in functions]
            request["tool_choice"] = "required"
            if "parallel_tool_calls" not in self._refused:
                request["parallel_tool_calls"] = True  # llama.cpp binds the model to one call without it
        elif prompt.json_schema is not None:
            schema = {"name": prompt.purpose, "schema": dict(prompt.json_schema), "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        if "temperature" not in self._refused:
            request["temperature"] = prompt.temperature
        if prompt.logprobs:
            request["logprobs"] = True
        return request

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Foreign exceptions to ours; an error whose `retry_after` is set is worth another attempt.

        The cause is dropped: an endpoint's message may hold the key that was sent.
        """
        import httpx2
        import openai

        unreachable = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
        try:
            yield
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, unreachable):
                raise self._transient(
                    GeneratorUnavailable("cannot connect to the generator endpoint; check OPENAI_BASE_URL")
                ) from None
            if isinstance(cause, httpx2.UnsupportedProtocol):
                raise GeneratorUnavailable("OPENAI_BASE_URL must start with http:// or https://") from None
            if isinstance(error, openai.APITimeoutError):
                raise self._timed_out() from None
            broke = UpstreamFailed(f"the connection to the generator endpoint broke ({type(cause).__name__})")
            raise self._transient(broke) from None
        except openai.APIError as error:
            raise UpstreamFailed(f"the generator endpoint reported an error: {self._said(error)}") from None
        except httpx2.InvalidURL:
            raise GeneratorUnavailable("OPENAI_BASE_URL is not a valid URL") from None
        except ValueError:
            raise UpstreamFailed("the generator endpoint answered something that is not JSON") from None

    def _refusal(self, error: "openai.APIStatusError") -> SextantError:
        """What an HTTP status of 400 or above means."""
        status = error.status_code
        if status in (401, 403):
            return GeneratorUnavailable(
                f"the generator endpoint refused the credentials (HTTP {status}); check OPENAI_API_KEY"
            )
        said = self._said(error)
        if status in _NO_FUNCTIONS and self._tools == "auto" and _TOOLS.search(f"{error.param or ''} {said}"):
            self._refused.add("tools")
            return UpstreamFailed(f"the generator endpoint calls no functions: {said}")
        if error.code == "insufficient_quota":
            return GeneratorUnavailable("the account of OPENAI_API_KEY has no quota left at the generator endpoint")
        if status == 404:
            return GeneratorUnavailable(
                f"the generator endpoint does not know the model {self._model!r} or the path (HTTP 404); "
                "check OPENAI_MODEL, and that OPENAI_BASE_URL ends at the API's root (often /v1)"
            )
        after = _retry_after(error.response.headers.get("retry-after"))
        if status == 429:
            return self._transient(Busy("the generator endpoint is over its rate limit"), after)
        failed = UpstreamFailed(f"the generator endpoint answered HTTP {status}: {said}")
        if status == 400 and (refused := str(error.param)) in _REPLACEABLE:
            self._refused.add(refused)
            return failed
        return self._transient(failed, after) if status in (408, 409) or status >= 500 else failed

    def _transient(self, error: SextantError, retry_after: float | None = None) -> SextantError:
        error.retry_after = self._backoff_s if retry_after is None else retry_after
        return error

    def _said(self, error: "openai.APIError") -> str:
        """The endpoint's own words, short and without the key."""
        return self._words(error.body, "no further message")

    def _words(self, body: object, otherwise: str) -> str:
        said = str((body.get("message") if isinstance(body, dict) else None) or otherwise)
        return (said.replace(self._api_key, "[key]") if self._api_key else said)[:300]


def _messages(prompt: Prompt) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": role, "content": content} for role, content in prompt.messages]
    if prompt.picture is not None:
        url = f"data:image/png;base64,{b64encode(prompt.picture).decode()}"
        text = {"type": "text", "text": messages[-1]["content"]}
        messages[-1]["content"] = [text, {"type": "image_url", "image_url": {"url": url}}]
    return messages


def _calls(message: Any) -> tuple[Call, ...]:
    """In their order; what is no call of a function is left out."""
    functions = [call.function for call in message.tool_calls or () if getattr(call, "function", None) is not None]
    return tuple(Call(str(function.name), str(function.arguments)) for function in functions)


def _text(content: Any) -> Any:
    """Some endpoints give it in parts, of which those that are no text are thoughts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    return content


def _delta(event: Any) -> tuple[str, str | None]:
    """Text and finish reason of one event of a stream; the one that brings the usage has neither."""
    try:
        if not event.choices:
            return "", None
        choice = event.choices[0]
        text, reason = _text(choice.delta.content), choice.finish_reason
    except (AttributeError, LookupError, TypeError):
        raise UpstreamFailed("the generator endpoint sent a stream event of no known shape") from None
    if not isinstance(text, str | None):
        raise UpstreamFailed("the generator endpoint sent a piece that is not text")
    return text or "", reason


def _logprob(choice: Any) -> float | None:
    """Sum over the tokens; None where the endpoint tells none."""
    tokens = getattr(getattr(choice, "logprobs", None), "content", None)
    try:
        return math.fsum(token.logprob for token in tokens) if tokens else None
    except (AttributeError, TypeError):
        raise UpstreamFailed("the generator endpoint sent log-probabilities of no known shape") from None


def _generation(prompt: Prompt, text: str, usage: Any, finish: Any) -> Generation:
    read, written = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    if not _is_count(read) or not _is_count(written):
        read = math.ceil(prompt.characters / 4)
        written = math.ceil(len(text) / 4)
    cut = "length" if finish == "length" else "stop"
    return Generation(without_thoughts(text), 1, input_tokens=read, output_tokens=written, finish_reason=cut)


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _retry_after(header: str | None) -> float | None:
    """Seconds, from either form of Retry-After (RFC 9110, 10.2.3); None where absent or unreadable."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
