"""Errors on the wire: RFC 9457 problem details, each with its code, the request's id and what was spent."""

import math
import time
from decimal import Decimal
from typing import Any, NotRequired

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from typing_extensions import TypedDict

from app.errors import InvalidInput, InvalidRequest, MethodNotAllowed, NotFound, SextantError
from app.http.replies import CostReply, Json, cost_reply
from app.http.state import state_of
from app.types import Cost

_BY_STATUS: dict[int, type[SextantError]] = {
    400: InvalidRequest,
    404: NotFound,
    405: MethodNotAllowed,
}
_MOST_ERRORS = 20
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


class Problem(TypedDict):
    """RFC 9457 problem details with four members of our own."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    error_code: str
    request_id: str
    cost: CostReply
    errors: NotRequired[list[dict[str, Any]]]
    """Of an invalid body or parameter: where (loc) and what (msg)."""


FAILURES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "The request is at fault."},
    "5XX": {"model": Problem, "description": "The service is at fault."},
}
"""For OpenAPI: what every route may also answer."""


def described_as_problems(description: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI gives every response of a route the route's own media type; failures have theirs."""
    for operations in description["paths"].values():
        for operation in operations.values():
            for status in FAILURES:
                content = operation["responses"][status]["content"]
                content["application/problem+json"] = content.pop("application/json")
    return description


async def on_error(request: Request, error: Exception) -> Json:
    """The service's one error handler."""
    if isinstance(error, RequestValidationError):
        return _invalid(request, error)
    if isinstance(error, HTTPException):
        known = _BY_STATUS.get(error.status_code, SextantError)
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = _allowed(request)
        return problem(request, known(_detail_of(error, request)), headers)
    assert isinstance(error, SextantError)
    return problem(request, error)


def problem(request: Request, error: SextantError, headers: dict[str, str] | None = None, **more: Any) -> Json:
    headers = headers or {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after))
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="sextant"'
    state_of(request).setdefault("log", {})["error_code"] = error.error_code
    body = {**problem_details(request, error, _cost(request)), **more}
    return Json(body, error.status, headers, media_type="application/problem+json")


def problem_details(request: Request, error: SextantError, cost: Cost) -> Problem:
    return {
        "type": f"urn:sextant:problem:{error.error_code}",
        "title": error.title,
        "status": error.status,
        "detail": str(error),
        "instance": request.url.path,
        "error_code": error.error_code,
        "request_id": state_of(request)["request_id"],
        "cost": cost_reply(cost),
    }


def _cost(request: Request) -> Cost:
    state = state_of(request)
    if "tools" in state:
        return state["tools"].cost
    return Cost(usd=Decimal(0), latency_ms=(time.perf_counter() - state["started"]) * 1000)


def _invalid(request: Request, error: RequestValidationError) -> Json:
    """400 where the body is no JSON, 422 where it is the wrong JSON. Never echoes what was sent."""
    errors = [{"loc": list(e["loc"]), "msg": e["msg"]} for e in error.errors()[:_MOST_ERRORS]]
    if any(e["type"] == "json_invalid" for e in error.errors()):
        return problem(request, InvalidRequest("the body is not valid JSON"), errors=errors)
    detail = "; ".join(f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in errors)
    return problem(request, InvalidInput(detail), errors=errors)


def _detail_of(error: HTTPException, request: Request) -> str:
    if error.status_code == 404:
        return f"nothing is at {request.url.path}; /openapi.json lists what there is"
    if error.status_code == 405:
        return f"{request.method} is not possible here; allowed: {_allowed(request)}"
    if error.status_code == 400:  # what cannot be decoded, is nested too deep, or holds a number of too many digits
        return "the body is not valid JSON"
    return str(error.detail)


def _allowed(request: Request) -> str:
    """Methods of every route at the path; the framework names those of the first alone."""

    def possible(method: str) -> bool:
        asked = {**request.scope, "method": "GET" if method == "HEAD" else method}
        return any(route.matches(asked)[0] is Match.FULL for route in request.app.routes)

    return ", ".join(filter(possible, _METHODS))
