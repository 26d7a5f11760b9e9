"""Prometheus metrics in base units; every label value comes from code, none from a request."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from app.errors import SextantError
from app.tools import Tools
from app.types import AbstainReason, Document, Job

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
disable_created_metrics()  # type: ignore[no-untyped-call]
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class Ending:
    """How a run came out, filled in by it."""

    reason: AbstainReason | None = None


class Metrics:
    """One registry per application."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._http = self._counter("http_requests_total", "Requests answered.", "handler", "status", "method")
        self._http_seconds = self._seconds("http_request_duration_seconds", "Time to answer.", "handler", "method")
        self._requests = self._counter("rag_requests_total", "Questions by outcome.", "arch", "outcome")
        self._request_seconds = self._seconds("rag_request_duration_seconds", "Time to answer a question.", "arch")
        self._ops = self._counter("rag_ops_total", "Similarity evaluations.", "arch", "kind")
        self._llm_calls = self._counter("rag_llm_calls_total", "Calls to an LLM.", "arch", "purpose")
        self._cache = self._counter("rag_cache_requests_total", "Texts, pairs and calls looked up.", "cache", "result")
        self._tokens = self._counter("rag_tokens_total", "Tokens read and written by an LLM.", "arch", "direction")
        self._stage_seconds = self._seconds("rag_stage_duration_seconds", "Time per stage.", "arch", "stage")
        self._abstentions = self._counter("rag_abstentions_total", "Honest refusals.", "arch", "reason")
        self._verdicts = self._counter("rag_crag_actions_total", "What the best grade called for.", "action")
        self._errors = self._counter("rag_errors_total", "Questions that failed.", "arch", "error_code")
        self._actions = self._counter("rag_actions_total", "An agent's tool calls.", "arch", "tool", "error_code")
        self._limits = self._counter("rag_limits_total", "Limits at which an agent stopped.", "arch", "limit")
        self._in_flight = Gauge("rag_in_flight", "Questions being answered.", registry=self.registry)

        self._index = {
            name: Gauge(
                f"rag_index_{name}",
                f"{name.capitalize()} in the index; NaN while the store is down.",
                registry=self.registry,
            )
            for name in ("documents", "pages", "chunks", "unfinished")
        }

        self._files = self._counter("rag_ingest_documents_total", "Uploaded files by outcome.", "outcome")
        self._file_failures = self._counter("rag_ingest_failures_total", "Uploads that failed, by reason.", "reason")
        self._file_pages = self._counter("rag_ingest_pages_total", "Pages of uploads that were indexed.")
        self._graph_seconds = self._counter("rag_ingest_graph_seconds_total", "Spent on the graph of uploads.")
        self._graph_calls = self._counter("rag_ingest_graph_llm_calls_total", "LLM calls for the graph of uploads.")
        self._graph_tokens = self._counter("rag_ingest_graph_tokens_total", "Tokens of those calls.", "direction")
        self._graph_usd = self._counter("rag_ingest_graph_usd_total", "Price of those calls, where prices are known.")
        self._queue = Gauge("rag_ingest_queue", "Uploads not yet indexed.", registry=self.registry)

    def job(self, job: Job) -> None:
        """A finished one."""
        self._files.labels(job.outcome or job.state).inc()
        if job.reason:
            self._file_failures.labels(job.reason).inc()
        if job.outcome in ("created", "replaced"):
            self._file_pages.inc(job.pages)
            self._graph_seconds.inc(job.graph_seconds)
            self._graph_calls.inc(job.graph_llm_calls)
            self._graph_tokens.labels("input").inc(job.graph_input_tokens)
            self._graph_tokens.labels("output").inc(job.graph_output_tokens)
            self._graph_usd.inc(float(job.graph_usd or 0))

    def queue(self, length: int) -> None:
        self._queue.set(length)

    def index(self, documents: Sequence[Document] | None) -> None:
        """What the ingestion has brought in, over all tenants; None where the store does not say."""
        ready = [d for d in documents or () if d.state == "ready"]
        sizes = {"documents": len(ready), "pages": sum(d.pages for d in ready), "chunks": sum(d.chunks for d in ready)}
        sizes["unfinished"] = len(documents or ()) - len(ready)
        for name, gauge in self._index.items():
            gauge.set(float("nan") if documents is None else sizes[name])

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _seconds(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=_SECONDS)

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def http(self, handler: str, method: str, status: int, seconds: float) -> None:
        """`handler` is a route's path template, never a path."""
        method = method if method in _METHODS else "OTHER"
        self._http.labels(handler, str(status), method).inc()
        self._http_seconds.labels(handler, method).observe(seconds)

    @contextmanager
    def question(self, arch: str, tools: Tools) -> Iterator[Ending]:
        """Counts one run of an architecture and what it spent, however it ends."""
        ending, outcome, begun = Ending(), "answered", time.perf_counter()
        self._in_flight.inc()
        try:
            yield ending
            if ending.reason is not None:
                outcome = "abstained"
                self._abstentions.labels(arch, ending.reason).inc()
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except SextantError as error:
            outcome = "error"
            self._errors.labels(arch, error.error_code).inc()
            raise
        finally:
            self._in_flight.dec()
            self._requests.labels(arch, outcome).inc()
            self._request_seconds.labels(arch).observe(time.perf_counter() - begun)
            self._spent(arch, tools)

    def _spent(self, arch: str, tools: Tools) -> None:
        cost = tools.cost
        for kind, ops in cost.ops_by_kind.items():
            self._ops.labels(arch, kind).inc(ops)
        for purpose, calls in cost.llm_calls_by_purpose.items():
            self._llm_calls.labels(arch, purpose).inc(calls)
        self._tokens.labels(arch, "input").inc(cost.input_tokens)
        self._tokens.labels(arch, "output").inc(cost.output_tokens)
        for step in tools.trace:
            self._stage_seconds.labels(arch, step.name).observe(step.ms / 1000)
            if "cached" in step.detail:
                asked = step.detail.get("texts", step.detail.get("pairs", 1))
                self._cache.labels(step.name, "hit").inc(step.detail["cached"])
                self._cache.labels(step.name, "miss").inc(asked - step.detail["cached"])
            if step.name == "act":
                self._actions.labels(arch, step.detail["tool"], step.detail.get("error", "none")).inc()
            if step.name == "limit":
                self._limits.labels(arch, step.detail["limit"]).inc()
            if step.name == "verdict":
                self._verdicts.labels(step.detail["action"]).inc()
