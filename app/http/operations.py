"""What an operator and a person with a browser ask first: health, readiness, metrics, architectures, the page."""

import asyncio
from importlib.resources import files
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from typing_extensions import TypedDict

from app.architectures import ARCHITECTURES
from app.errors import SextantError, Unavailable
from app.http.access import CallerAccess
from app.http.options import DEFAULT_ARCH, OptionReply, description_of, options_of
from app.http.problems import FAILURES
from app.http.replies import IndexReply, Json, index_reply
from app.http.state import state_of
from app.tools import Ports

router = APIRouter(tags=["operations"], responses=FAILURES)
_READY_WITHIN_S = 3.0
_PAGE = files("app").joinpath("web/index.html").read_text("utf-8")
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Healthy(TypedDict):
    status: Literal["ok"]


@router.get("/healthz", responses={200: {"model": Healthy}}, summary="The process is alive")
async def healthz() -> Response:
    return Json({"status": "ok"})


class Ready(TypedDict):
    status: Literal["ready", "empty"]
    """`empty` where there is no filing to answer from yet."""
    index: IndexReply


@router.get("/readyz", responses={200: {"model": Ready}}, summary="The store answers; otherwise 503 says what does not")
async def readyz(request: Request) -> Response:
    ports = state_of(request)["ports"]
    try:
        async with asyncio.timeout(_READY_WITHIN_S):
            index = index_reply(await ports.store.stamp(), ports)
            empty = await ports.catalogue.empty()
    except TimeoutError:
        raise Unavailable(f"store: no reply within {_READY_WITHIN_S:g} s") from None
    return Json({"status": "empty" if empty else "ready", "index": index})


@router.get("/metrics", response_class=Response, summary="Prometheus metrics")
async def metrics(request: Request) -> Response:
    state = state_of(request)
    found = state["metrics"]
    if (ingestion := state["ports"].ingestion) is not None:
        found.queue(ingestion.queued())
    try:
        async with asyncio.timeout(_READY_WITHIN_S):
            found.index(await state["ports"].store.documents())
    except (TimeoutError, SextantError):
        found.index(None)
    return Response(found.render(), headers={"Content-Type": found.content_type})


class ArchitectureReply(TypedDict):
    name: str
    description: str
    paper: str
    options: list[OptionReply]
    needs_llm: bool
    can_run: bool
    why_not: str | None


class ArchitecturesReply(TypedDict):
    default: str
    architectures: list[ArchitectureReply]


@router.get("/architectures", responses={200: {"model": ArchitecturesReply}}, summary="Describe the architectures")
async def architectures(request: Request, access: CallerAccess) -> Response:
    ports = state_of(request)["ports"]
    reply: ArchitecturesReply = {"default": DEFAULT_ARCH, "architectures": [_describe(n, ports) for n in ARCHITECTURES]}
    return Json(reply)


def _describe(name: str, ports: Ports) -> ArchitectureReply:
    description, paper = description_of(name)
    architecture = ARCHITECTURES[name]
    why_not = None
    if architecture.needs_llm and ports.generator.purposes is not None:
        why_not = f"needs an LLM, and the generator is {ports.generator.name!r}; set GENERATOR=local or openai"
    elif architecture.needs_reranker and ports.reranker is None:
        why_not = "needs a cross-encoder; set RERANKER_MODEL"
    return {
        "name": name,
        "description": description,
        "paper": paper,
        "options": options_of(name),
        "needs_llm": architecture.needs_llm,
        "can_run": why_not is None,
        "why_not": why_not,
    }


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
async def page() -> HTMLResponse:
    return HTMLResponse(_PAGE, headers=_PAGE_HEADERS)
