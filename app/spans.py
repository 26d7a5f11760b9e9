"""OpenTelemetry spans of a question, its actions and its steps; nothing happens unless an SDK is configured.

`opentelemetry-instrument sextant-api`, with an SDK and an exporter installed, is all that it takes. Attributes follow
the GenAI semantic conventions (`gen_ai.*`) and OpenInference's span kinds.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from app.errors import SextantError
from app.types import TraceStep

_KINDS: Mapping[str, str] = {
    "embed": "EMBEDDING",
    "search": "RETRIEVER",
    "records": "RETRIEVER",
    "sql": "RETRIEVER",
    "rerank": "RERANKER",
    "generate": "LLM",
}


@contextmanager
def of_question(arch: str) -> Iterator[Span]:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": arch,
        "openinference.span.kind": "CHAIN",
    }
    with _span(f"invoke_agent {arch}", attributes) as span:
        yield span


@contextmanager
def of_action(tool: str) -> Iterator[Span]:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "openinference.span.kind": "TOOL"}
    with _span(f"execute_tool {tool}", attributes) as span:
        yield span


@contextmanager
def of_step(step: TraceStep) -> Iterator[Span]:
    """What the step spent is known, and put on its span, at its end."""
    model = step.detail.get("generator") if step.name == "generate" else None
    attributes = {"openinference.span.kind": _KINDS.get(step.name, "CHAIN")}
    if model is not None:
        attributes |= {"gen_ai.operation.name": "chat", "gen_ai.request.model": str(model)}
    with _span(step.name if model is None else f"chat {model}", attributes) as span:
        try:
            yield span
        finally:
            for kind, ops in step.ops.items():
                span.set_attribute(f"sextant.ops.{kind}", ops)
            if step.llm_calls:
                span.set_attribute("gen_ai.usage.input_tokens", step.input_tokens)
                span.set_attribute("gen_ai.usage.output_tokens", step.output_tokens)


@contextmanager
def _span(name: str, attributes: Mapping[str, str]) -> Iterator[Span]:
    # Not the span's own recording of exceptions: a message may quote the question.
    opened = trace.get_tracer("sextant").start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    )
    with opened as span:
        try:
            yield span
        except BaseException as error:
            code = error.error_code if isinstance(error, SextantError) else type(error).__name__
            span.set_attribute("error.type", code)
            span.set_status(Status(StatusCode.ERROR))
            raise
