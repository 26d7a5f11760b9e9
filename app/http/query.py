"""Questions over HTTP: /query once per architecture and once for all, /compare for several side by side."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from typing_extensions import TypedDict

from app.architectures import ARCHITECTURES
from app.errors import InvalidInput, SextantError, UnsupportedMedia
from app.filters import parse_filters
from app.http.access import CallerAccess
from app.http.options import DEFAULT_ARCH, build
from app.http.problems import FAILURES, Problem, problem_details
from app.http.replies import CostReply, Json, QueryReply, cost_reply
from app.http.running import Run, unless_gone
from app.http.running import stream as as_stream
from app.http.schemas import Asked, CompareBody, K, QueryBody, QuestionText, query_body
from app.http.state import state_of
from app.tools import Tools
from app.types import Access, Filter, Question


async def json_only(request: Request) -> None:
    """Raises UnsupportedMedia."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise UnsupportedMedia(f"send the body with Content-Type: application/json, not {media!r:.80}")


_JSON = [Depends(json_only)]
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"model": QueryReply, "content": {"text/event-stream": {}}, "description": "Whole, or as events."}
}
router = APIRouter(tags=["query"], responses=FAILURES)

Arch = Annotated[str, Query(json_schema_extra={"enum": list(ARCHITECTURES)}, description="Which architecture answers.")]


def _run(request: Request, arch: str, asked: Asked, options: dict[str, Any], access: Access) -> Run:
    """Raises UnknownArchitecture, InvalidOptions, InvalidFilter."""
    state = state_of(request)
    architecture = build(arch, options)
    question = Question(asked.question, asked.k, Filter(parse_filters(asked.filters), access), asked.unsupported)
    tools = Tools(state["ports"], asked.limits.capped(state["settings"].request_timeout_s), access)
    return Run(arch, architecture, question, tools, state)


def takes(request: Request, *names: str) -> None:
    """Raises InvalidInput for a query parameter that would be ignored."""
    if strange := request.query_params.keys() - set(names):
        takes = ", ".join(names) or "none; the rest goes into the body"
        raise InvalidInput(f"unknown query parameter {sorted(strange)[0]!r:.80}; this takes {takes}")


async def _answer(request: Request, arch: str, body: QueryBody, access: Access) -> Response:
    run = _run(request, arch, body, body.options, access)
    run.state["tools"], run.state["log"] = run.tools, {"arch": arch}
    if body.stream or "text/event-stream" in request.headers.get("accept", ""):
        run.state["slots"].check()
        return as_stream(request, run)
    return Json(await unless_gone(request, run.reply()))


@router.get("/query", responses=_EVENTS, summary="Ask from a browser or curl")
async def get_query(
    request: Request,
    access: CallerAccess,
    q: Annotated[QuestionText, Query(description="The question.")],
    arch: Arch = DEFAULT_ARCH,
    k: K = 10,
    stream: bool = False,
) -> Response:
    takes(request, "q", "arch", "k", "stream")
    return await _answer(request, arch, QueryBody(question=q, k=k, stream=stream), access)


@router.post("/query", dependencies=_JSON, responses=_EVENTS, summary="Ask the architecture named by arch")
async def post_query(request: Request, access: CallerAccess, body: QueryBody, arch: Arch = DEFAULT_ARCH) -> Response:
    takes(request, "arch")
    return await _answer(request, arch, body, access)


def _add(arch: str) -> None:
    body_type = query_body(arch)

    @router.post(f"/query/{arch}", dependencies=_JSON, responses=_EVENTS, name=f"query_{arch}", summary=f"Ask {arch}")
    async def post_arch(request: Request, access: CallerAccess, body: body_type) -> Response:  # type: ignore[valid-type]
        takes(request)
        return await _answer(request, arch, body, access)


for _name in ARCHITECTURES:
    _add(_name)


@router.post("/query/{arch}", include_in_schema=False)
async def post_unknown(access: CallerAccess, arch: str) -> Response:
    build(arch, {})
    raise AssertionError("every architecture has a route of its own")


class Compared(TypedDict):
    """One architecture's reply, or the problem it met."""

    arch: str
    result: QueryReply | None
    problem: Problem | None


class CompareReply(TypedDict):
    question: str
    results: list[Compared]
    """In the order asked for."""
    cost: CostReply
    """Of all together."""
    request_id: str


@router.post(
    "/compare",
    dependencies=_JSON,
    responses={200: {"model": CompareReply}},
    summary="Ask several architectures at once",
)
async def compare(request: Request, access: CallerAccess, body: CompareBody) -> Response:
    if len(set(body.archs)) < len(body.archs):
        raise InvalidInput("archs: name each architecture once")
    if strangers := body.options.keys() - set(body.archs):
        raise InvalidInput(f"options: {', '.join(map(repr, sorted(strangers))):.200} not among archs")
    runs = [_run(request, arch, body, body.options.get(arch, {}), access) for arch in body.archs]
    state = state_of(request)
    state["tools"] = total = Tools(state["ports"], access=access)
    state["log"] = {"arch": ",".join(body.archs)}
    try:
        results = await unless_gone(request, _all(request, runs))
    finally:
        total.trace = [step for run in runs for step in run.tools.trace]
    reply: CompareReply = {
        "question": body.question,
        "results": results,
        "cost": cost_reply(total.cost),
        "request_id": state["request_id"],
    }
    return Json(reply)


async def _all(request: Request, runs: list[Run]) -> list[Compared]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_one(request, run)) for run in runs]
    return [task.result() for task in tasks]


async def _one(request: Request, run: Run) -> Compared:
    try:
        return {"arch": run.arch, "result": await run.reply(), "problem": None}
    except SextantError as error:
        return {"arch": run.arch, "result": None, "problem": problem_details(request, error, run.tools.cost)}
