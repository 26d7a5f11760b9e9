"""Spans are what a configured SDK would be given; here a provider that only remembers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, Status, Tracer

from app.architectures.agentic import Agentic
from app.errors import UpstreamFailed
from app.spans import of_question
from app.tools import Tools
from app.types import Question
from tests.conftest import MakePorts
from tests.fakes import ScriptedGenerator

pytestmark = pytest.mark.anyio


class Remembered(NonRecordingSpan):
    def __init__(self, name: str, parent: str | None, attributes: dict[str, Any]) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self.name, self.parent, self.attributes = name, parent, attributes
        self.failed = False

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.failed = isinstance(status, Status) and not status.is_ok


@dataclass
class Memory(Tracer):
    spans: list[Remembered] = field(default_factory=list)

    def start_span(self, name: str, *args: Any, **kwargs: Any) -> Remembered:
        raise NotImplementedError

    @contextmanager
    def start_as_current_span(  # type: ignore[override]
        self, name: str, *args: Any, **kwargs: Any
    ) -> Iterator[Remembered]:
        above = trace.get_current_span()
        parent = above.name if isinstance(above, Remembered) else None
        self.spans.append(span := Remembered(name, parent, dict(kwargs["attributes"])))
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    tracer = Memory()
    monkeypatch.setattr(trace, "get_tracer", lambda _: tracer)
    return tracer


async def test_a_question_its_action_and_its_steps(make_ports: MakePorts, memory: Memory) -> None:
    tools = Tools(await make_ports(ScriptedGenerator(["Debt was $4 million at year end [1]."])))
    with of_question("agentic"):
        await Agentic(max_steps=0).answer(Question("debt", k=2), tools)
    assert [(span.name, span.parent) for span in memory.spans if span.name not in ("catalogue", "pages")] == [
        ("invoke_agent agentic", None),
        ("execute_tool search", "invoke_agent agentic"),
        ("embed", "execute_tool search"),
        ("search", "execute_tool search"),
        ("chat scripted", "invoke_agent agentic"),
    ]
    by_name = {span.name: span.attributes for span in memory.spans}
    assert by_name["search"]["sextant.ops.dense"] == 3
    assert by_name["search"]["openinference.span.kind"] == "RETRIEVER"
    assert by_name["chat scripted"]["gen_ai.request.model"] == "scripted"
    assert by_name["chat scripted"]["gen_ai.usage.output_tokens"] == 8


async def test_a_failure_is_marked_without_its_words(make_ports: MakePorts, memory: Memory) -> None:
    tools = Tools(await make_ports(ScriptedGenerator([UpstreamFailed("what the question said")])))
    with pytest.raises(UpstreamFailed), of_question("agentic"):
        await Agentic(max_steps=0).answer(Question("debt", k=2), tools)
    failed = [span for span in memory.spans if span.failed]
    assert [span.name for span in failed] == ["invoke_agent agentic", "chat scripted"]
    assert {span.attributes["error.type"] for span in failed} == {"upstream_failed"}
    assert "what the question said" not in str([span.attributes for span in memory.spans])
