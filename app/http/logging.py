"""One JSON line per request, carrying the id that its reply carries too."""

import json
import logging
import re
import sys
import time
import uuid
from contextvars import ContextVar
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import SextantError
from app.http.metrics import Metrics
from app.http.problems import problem

logger = logging.getLogger("app.http")
_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class JsonFormatter(logging.Formatter):
    """A record as one line; `extra={"fields": {...}}` joins it, and so does the request's id."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if request_id := _request_id.get():
            line["request_id"] = request_id
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)

    converter = staticmethod(time.gmtime)


class TextFormatter(JsonFormatter):
    """The same for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={_on_one_line(value)}" for name, value in getattr(record, "fields", {}).items())
        error = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        head = f"{self.formatTime(record, '%H:%M:%S')} {record.levelname:<7} {record.getMessage()}"
        return f"{head} {fields}{error}".rstrip()


def _on_one_line(value: object) -> str:
    """A path may hold line ends and terminal escapes."""
    text = str(value)
    return text if text.isprintable() else repr(text)


def configure_logging(level: str, form: str) -> None:
    """Everything to standard error in one form; uvicorn's own access lines are off, ours say more."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # httpx logs every request's full URL at INFO.
    logging.getLogger("httpx").setLevel(logging.WARNING)


class RequestLog:
    """Outermost: gives the request its id, counts it, logs it, and turns what nobody foresaw into a 500 problem."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        state["started"] = begun = time.perf_counter()
        state["request_id"] = request_id = _given_or_new(Headers(scope=scope).get("x-request-id"))
        token = _request_id.set(request_id)
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except Exception:
            logger.exception("unexpected error")
            if status == 0:
                await problem(Request(scope), SextantError(f"something unforeseen; see the log for {request_id}"))(
                    scope, receive, send_with_id
                )
        finally:
            self._log(scope, status or 499, time.perf_counter() - begun)
            _request_id.reset(token)

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        handler = getattr(scope.get("route"), "path", "unmatched")
        self.metrics.http(handler, scope["method"], status, seconds)
        fields = {"method": scope["method"], "path": scope["path"], "status": status, "ms": round(seconds * 1000, 1)}
        state = scope["state"]
        logger.info("request", extra={"fields": fields | state.get("log", {}) | {"request_id": state["request_id"]}})


def _given_or_new(given: str | None) -> str:
    return given if given and _SANE_ID.fullmatch(given) else uuid.uuid4().hex
