"""Replies on the wire, each a typed dictionary beside the function that fills it from the domain's types."""

from collections.abc import Iterable
from typing import Any

import orjson
from fastapi import Response
from typing_extensions import TypedDict

from app.tools import Ports
from app.types import (
    AbstainReason,
    Answer,
    Box,
    Calculation,
    ChunkKind,
    Citation,
    Cost,
    Hit,
    IndexStamp,
    OpKind,
    OpsSource,
    TraceStep,
)


class Json(Response):
    """Serialised once, by orjson."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return dumps(content)


def dumps(content: Any) -> bytes:
    return orjson.dumps(content, default=str, option=orjson.OPT_SERIALIZE_NUMPY)


class Span(TypedDict):
    """Half-open, in characters (Unicode code points), from 0."""

    start: int
    end: int


class StageReply(TypedDict):
    name: str
    ms: float


class TokensReply(TypedDict):
    input: int
    output: int


class CostReply(TypedDict):
    """The bill in two currencies, similarity ops and LLM calls, never merged into one figure."""

    ops: int
    ops_by_kind: dict[OpKind, int]
    ops_source: OpsSource
    llm_calls: int
    llm_calls_by_purpose: dict[str, int]
    tokens: TokensReply
    usd: float | None
    """null where a price is unknown."""
    latency_ms: float
    stages: list[StageReply]
    cached: dict[str, int]
    """By step, what an earlier request had made and this one did not pay for."""


def cost_reply(cost: Cost) -> CostReply:
    return {
        "ops": cost.ops,
        "ops_by_kind": dict(cost.ops_by_kind),
        "ops_source": cost.ops_source,
        "llm_calls": cost.llm_calls,
        "llm_calls_by_purpose": dict(cost.llm_calls_by_purpose),
        "tokens": {"input": cost.input_tokens, "output": cost.output_tokens},
        "usd": None if cost.usd is None else float(cost.usd),
        "latency_ms": round(cost.latency_ms, 3),
        "stages": [{"name": stage.name, "ms": round(stage.ms, 3)} for stage in cost.stages],
        "cached": dict(cost.cached),
    }


class CitationReply(TypedDict):
    """A claim's evidence. `quote` is exactly the stored page's text[span.start:span.end]."""

    marker: int
    document_id: str
    title: str
    company: str | None
    form: str | None
    fiscal_year: int | None
    page: int
    section: str | None
    chunk_id: str
    source: str
    quote: str
    span: Span
    boxes: list[Box]
    """One per line of the quote: x0, y0, x1, y1 in points, from the page's top left."""
    answer_span: Span
    support: float
    verified: bool
    ocr: bool
    """The page's text, or some of it, was recognised in a picture, and may be misread."""
    kind: ChunkKind
    """`figure`: the quote is a model's caption of a picture, not the filing's words."""


def citation_reply(c: Citation) -> CitationReply:
    return {
        "marker": c.marker,
        "document_id": c.document_id,
        "title": c.title,
        "company": c.company,
        "form": c.form,
        "fiscal_year": c.fiscal_year,
        "page": c.page,
        "section": c.section,
        "chunk_id": c.chunk_id,
        "source": c.source,
        "quote": c.quote,
        "span": {"start": c.span_start, "end": c.span_end},
        "boxes": [(round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2)) for x0, y0, x1, y1 in c.boxes],
        "answer_span": {"start": c.answer_span[0], "end": c.answer_span[1]},
        "support": c.support,
        "verified": c.verified,
        "ocr": c.ocr,
        "kind": c.kind,
    }


class CalculationReply(TypedDict):
    """A number that no page prints; where `verified`, computed again from operands that verified citations quote."""

    expression: str
    value: str
    operands: list[str]
    answer_span: Span
    verified: bool


def calculation_reply(c: Calculation) -> CalculationReply:
    return {
        "expression": c.expression,
        "value": c.value,
        "operands": list(c.operands),
        "answer_span": {"start": c.answer_span[0], "end": c.answer_span[1]},
        "verified": c.verified,
    }


class LegReply(TypedDict):
    rank: int
    score: float


class PassageReply(TypedDict):
    rank: int
    score: float
    legs: dict[str, LegReply]
    chunk_id: str
    document_id: str
    title: str
    company: str | None
    form: str | None
    fiscal_year: int | None
    page: int
    section: str | None
    kind: ChunkKind
    source: str
    text: str
    context: str


def passage_reply(hit: Hit) -> PassageReply:
    chunk, meta = hit.chunk, hit.chunk.meta
    return {
        "rank": hit.rank,
        "score": hit.score,
        "legs": {name: {"rank": leg.rank, "score": leg.score} for name, leg in hit.legs.items()},
        "chunk_id": chunk.id,
        "document_id": chunk.document_id,
        "title": meta.title,
        "company": meta.company,
        "form": meta.form,
        "fiscal_year": meta.fiscal_year,
        "page": chunk.page,
        "section": chunk.section,
        "kind": chunk.kind,
        "source": meta.source,
        "text": chunk.text,
        "context": chunk.context,
    }


class StepReply(TypedDict):
    """One metered step. Over a trace, ops, calls and tokens add up to the reply's cost."""

    name: str
    detail: dict[str, Any]
    ms: float
    ops: dict[OpKind, int]
    ops_source: OpsSource
    purpose: str | None
    llm_calls: int
    tokens: TokensReply


def step_reply(step: TraceStep) -> StepReply:
    return {
        "name": step.name,
        "detail": step.detail,
        "ms": round(step.ms, 3),
        "ops": dict(step.ops),
        "ops_source": step.ops_source,
        "purpose": step.purpose,
        "llm_calls": step.llm_calls,
        "tokens": {"input": step.input_tokens, "output": step.output_tokens},
    }


class ModelsReply(TypedDict):
    embedder: str
    dimensions: int
    sparse: str
    splade: str
    chunker: str
    generator: str
    reranker: str | None


class IndexReply(TypedDict):
    collection: str
    version: int
    """Of the collection's schema."""
    models: ModelsReply


def index_reply(stamp: IndexStamp, ports: Ports) -> IndexReply:
    models: ModelsReply = {
        "embedder": stamp.embedder,
        "dimensions": stamp.dimensions,
        "sparse": stamp.sparse,
        "splade": stamp.splade,
        "chunker": stamp.chunker,
        "generator": ports.generator.name,
        "reranker": None if ports.reranker is None else ports.reranker.name,
    }
    return {"collection": stamp.collection, "version": stamp.schema, "models": models}


class QueryReply(TypedDict):
    arch: str
    answer: str
    abstained: bool
    reason: AbstainReason | None
    citations: list[CitationReply]
    calculations: list[CalculationReply]
    passages: list[PassageReply]
    cost: CostReply
    trace: list[StepReply]
    index: IndexReply
    notes: list[str]
    request_id: str


def query_reply(
    arch: str, answer: Answer, cost: Cost, trace: Iterable[TraceStep], index: IndexReply, request_id: str
) -> QueryReply:
    return {
        "arch": arch,
        "answer": answer.text,
        "abstained": answer.abstained,
        "reason": answer.reason,
        "citations": [citation_reply(c) for c in answer.citations],
        "calculations": [calculation_reply(c) for c in answer.calculations],
        "passages": [passage_reply(hit) for hit in answer.passages],
        "cost": cost_reply(cost),
        "trace": [step_reply(step) for step in trace],
        "index": index,
        "notes": list(answer.notes),
        "request_id": request_id,
    }
