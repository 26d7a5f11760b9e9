"""What a request asks of the ports, noted once, so that the same calls can be made again bare."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from app.tools import Ports

PARTS = ("embed", "search", "rerank", "generate")
"""What an answer cannot do without. The rest (`read`: pages to cite, records) is shown, and counts as overhead."""
_PART_OF = {
    "queries": "embed",
    "passages": "embed",
    "tokens": "embed",
    "search": "search",
    "score": "rerank",
    "generate": "generate",
    "pages": "read",
    "chunks": "read",
    "records": "read",
    "documents": "read",
    "dense_sample": "read",
}


@dataclass(frozen=True, slots=True)
class Call:
    part: str
    method: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...]
    named: dict[str, Any]


@dataclass(slots=True)
class Recorder:
    """Of the calls that a service over `ports(...)` makes."""

    calls: list[Call] = field(default_factory=list)

    def ports(self, ports: Ports) -> Ports:
        """The same ports, each call noted. A generator's own use of the embedder is part of its call."""
        return replace(
            ports,
            store=self._noting(ports.store),
            embedder=self._noting(ports.embedder),
            generator=self._noting(ports.generator),
            reranker=ports.reranker and self._noting(ports.reranker),
            tokens=ports.tokens and self._noting(ports.tokens),
        )

    def taken(self) -> list[Call]:
        """The calls since the last time."""
        taken, self.calls = self.calls, []
        return taken

    def _noting(self, port: Any) -> Any:
        return _Noting(port, self)


class _Noting:
    def __init__(self, port: Any, recorder: Recorder) -> None:
        self._port = port
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._port, name)
        part = _PART_OF.get(name)
        if part is None:
            return value

        async def noted(*arguments: Any, **named: Any) -> Any:
            self._recorder.calls.append(Call(part, value, arguments, named))
            return await value(*arguments, **named)

        return noted


async def again(calls: list[Call]) -> dict[str, float]:
    """Makes the calls one after the other. Milliseconds by part."""
    spent: Counter[str] = Counter()
    for call in calls:
        began = time.perf_counter()
        await call.method(*call.arguments, **call.named)
        spent[call.part] += (time.perf_counter() - began) * 1000  # type: ignore[assignment]
    return dict(spent)
