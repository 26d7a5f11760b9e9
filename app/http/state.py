"""What the lifespan gives every request, typed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypedDict, cast

from fastapi import Request

from app.errors import Busy
from app.http.keys import Keys
from app.http.metrics import Metrics
from app.http.replies import IndexReply
from app.settings import Settings
from app.tools import Ports, Tools


class Slots:
    """How many architectures may run at once; the rest is turned away rather than queued."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    def check(self) -> None:
        """Raises Busy where none is free."""
        if self.taken >= self.limit:
            raise Busy(f"{self.limit} questions are being answered, the most taken at once; try again shortly")

    @contextmanager
    def take(self) -> Iterator[None]:
        """Raises Busy where none is free."""
        self.check()
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


class Lasting(TypedDict):
    """Lives as long as the service."""

    ports: Ports
    settings: Settings
    metrics: Metrics
    slots: Slots
    keys: Keys
    index: IndexReply


class State(Lasting, total=False):
    """And what each request adds to its own copy."""

    request_id: str
    started: float
    """On the clock of time.perf_counter."""
    tools: Tools
    """The hands of this request's question, so that an error reply knows what was spent."""
    log: dict[str, Any]
    """Joins the request's log line."""


def state_of(request: Request) -> State:
    return cast(State, request.scope["state"])
