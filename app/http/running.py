"""One architecture answering one question: metered, cancelled when the client goes, whole or as a stream of events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import StreamingResponse

from app.architectures import Architecture
from app.errors import Cancelled, SextantError
from app.http.problems import problem_details
from app.http.replies import (
    QueryReply,
    cost_reply,
    dumps,
    passage_reply,
    query_reply,
    step_reply,
)
from app.http.state import State
from app.question.companies import respelt
from app.spans import of_question
from app.tools import Tools
from app.types import Answer, Question

logger = logging.getLogger(__name__)
T = TypeVar("T")
_PING_S = 15.0


@dataclass(frozen=True, slots=True)
class Run:
    arch: str
    architecture: Architecture
    question: Question
    tools: Tools
    state: State

    async def reply(self) -> QueryReply:
        """Answer, and count it. Raises Busy, any SextantError of the architecture, and for all else an internal one."""
        with self.state["metrics"].question(self.arch, self.tools) as ending, self.state["slots"].take():
            try:
                with of_question(self.arch):
                    answer = await self._answer()
            except Exception as error:
                raise _foreseen(error) or self._unforeseen() from error
            ending.reason = answer.reason
        return query_reply(
            self.arch, answer, self.tools.cost, self.tools.trace, self.state["index"], self.state["request_id"]
        )

    async def _answer(self) -> Answer:
        """With a note where the request's filters left out the filings that the question names."""
        answer = await self._asked()
        relaxed = dict.fromkeys(step.detail["why"] for step in self.tools.trace if step.name == "relaxed")
        return replace(answer, notes=(*answer.notes, *relaxed)) if relaxed else answer

    async def _asked(self) -> Answer:
        """Where the index has nothing of whom it names, of a company of the index whose name is a letter away."""
        answer = await self.architecture.answer(self.question, self.tools)
        if answer.reason != "off_corpus":
            return answer
        text, note = respelt(self.question.text, await self.tools.catalogue())
        if not note:
            return answer
        self.tools.note("respelt", why=note)
        answer = await self.architecture.answer(replace(self.question, text=text), self.tools)
        return replace(answer, notes=(note, *answer.notes))

    def _unforeseen(self) -> SextantError:
        logger.exception("unexpected error")
        return SextantError(f"something unforeseen happened; the log has it under {self.state['request_id']}")


def _foreseen(error: Exception) -> SextantError | None:
    """The error, or the first within a task group's, that a caller is told as it is."""
    if isinstance(error, ExceptionGroup):
        return next((found for inner in error.exceptions if (found := _foreseen(inner))), None)
    return error if isinstance(error, SextantError) else None


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The work's result. Where the client hangs up first, the work is cancelled and Cancelled raised."""
    working, gone = asyncio.create_task(work), asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Cancelled("the client closed the connection")
        return await working
    finally:
        await _stop(working, gone)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _stop(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def stream(request: Request, run: Run) -> StreamingResponse:
    """The run as server-sent events; `answer` or `error` comes last but one, `done` with the cost last."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(request, run), media_type="text/event-stream", headers=headers)


async def _events(request: Request, run: Run) -> AsyncIterator[bytes]:
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()
    run.tools.streaming = True
    run.tools.emit = lambda event, data: queue.put_nowait(_event(event, _WIRE[event](data)))
    working = asyncio.create_task(_work(request, run, queue))
    try:
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), _PING_S)
            except TimeoutError:
                event = b": still working\n\n"
            if event is None:
                break
            yield event
        await working
    finally:
        await _stop(working)


async def _work(request: Request, run: Run, queue: asyncio.Queue[bytes | None]) -> None:
    try:
        reply = await unless_gone(request, run.reply())
        for citation in reply["citations"]:
            queue.put_nowait(_event("citation", citation))
        queue.put_nowait(_event("answer", reply))
    except SextantError as error:
        run.state["log"]["error_code"] = error.error_code
        queue.put_nowait(_event("error", problem_details(request, error, run.tools.cost)))
    except asyncio.CancelledError:
        run.state["log"]["error_code"] = Cancelled.error_code
        raise
    finally:
        queue.put_nowait(_event("done", {"request_id": run.state["request_id"], "cost": cost_reply(run.tools.cost)}))
        queue.put_nowait(None)


def _event(name: str, data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), dumps(data))


_WIRE: Mapping[str, Callable[[Any], Any]] = {
    "stage": step_reply,
    "passages": lambda hits: [passage_reply(hit) for hit in hits],
    "token": lambda text: {"text": text},
}
"""Events of Tools.emit to what goes on the wire."""
