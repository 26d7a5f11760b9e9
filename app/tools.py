"""One request's metered hands: the only place where work is counted, timed and checked against the limits."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from app import spans
from app.billing import UNKNOWN, Prices, beyond, cost_of, weakest, within_limits
from app.caching import Caches, cache_key, prompt_key
from app.catalogue import Catalogue
from app.errors import GeneratorUnavailable, InvalidOptions, SextantError, Timeout, Unavailable
from app.graph.communities import Community
from app.graph.overview import Overviews
from app.ports import (
    Embedder,
    ExternalSearch,
    Figures,
    Generator,
    Ingestion,
    Packer,
    PageImages,
    R,
    RecordField,
    Reranker,
    SparseEncoder,
    Store,
    TokenEmbedder,
)
from app.retrieval.calibration import Calibration, shipped_calibration
from app.retrieval.maxsim import maxsim
from app.types import (
    Access,
    Chunk,
    Cost,
    Document,
    Excerpt,
    External,
    Filter,
    FloatArray,
    Generation,
    Hit,
    Leg,
    LegName,
    LegResult,
    Limits,
    Measured,
    OpKind,
    Page,
    Prompt,
    Rows,
    SparseVector,
    TraceStep,
)

Extra: TypeAlias = Literal["splade", "rerank", "late", "external"]
"""What options may ask for that not every service has."""

_LACKS: Mapping[Extra, str] = {
    "splade": "this index has no 'splade' leg; ingest with SPLADE_MODEL set, or leave the splade_weight option off",
    "rerank": "no reranker is configured; set RERANKER_MODEL, or leave the rerank option off",
    "late": "this service embeds no tokens; leave the late option off",
    "external": "no external search is configured; set EXTERNAL_DIR, or leave the external option off",
}
_SAMPLED = 1000
"""Chunks from which a corpus' mean vector is taken: it is then within 0.03 of that of all."""
T = TypeVar("T")

ACTION: ContextVar[int | None] = ContextVar("action", default=None)
"""Number of an agent's action under which this task's steps are traced, first is 1."""


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """In parallel, results in the given order; the first error cancels the rest and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(item) for item in work]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything a request may reach, opened once for the service's life."""

    store: Store
    embedder: Embedder
    sparse: Mapping[LegName, SparseEncoder]
    generator: Generator
    reranker: Reranker | None = None
    prices: Prices = UNKNOWN
    figures: Figures | None = None
    ingestion: Ingestion | None = None
    """None where the service only reads."""
    images: PageImages | None = None
    packer: Packer | None = None
    """None where a model is shown whole passages."""
    quoting: Generator | None = None
    """What quotes the passages where nothing of a model's answer stands; None where that is a refusal."""
    external: ExternalSearch | None = None
    tokens: TokenEmbedder | None = None
    caches: Caches = field(default_factory=Caches)
    calibration: Calibration = field(default_factory=shipped_calibration)
    measured: Mapping[str, Sequence[Measured]] = field(default_factory=dict)
    """By kind of question, what architectures were worth on this collection; empty where no matrix was measured."""
    residuals: Mapping[str, float] = field(default_factory=dict)
    """By way of following, from which norm on a passage leads elsewhere; empty where that was not measured."""
    catalogue: Catalogue = field(init=False)
    overviews: Overviews = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalogue", Catalogue(self.store))
        object.__setattr__(self, "overviews", Overviews(self.store))


def _ignore(event: str, data: Any) -> None:
    """The listener of a request that nobody follows."""


@dataclass(slots=True)
class Tools:
    """Built per request. `trace` grows by a step per call; `cost` is derived from it, so no path can lose it."""

    ports: Ports
    limits: Limits = field(default_factory=Limits)
    access: Access = field(default_factory=Access)
    emit: Callable[[str, Any], None] = _ignore
    """Called with (event, data): stage, passages, token, ...; must not block."""
    streaming: bool = False
    """Whether generated text is wanted piece by piece, as `token` events."""
    trace: list[TraceStep] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    listed: Sequence[Document] | None = None
    """What `catalogue` gave before."""

    @property
    def cost(self) -> Cost:
        return cost_of(self.trace, self.ports.prices, time.perf_counter() - self.started)

    def aside(self) -> "Tools":
        """For what leads to an answer: on the same bill and within the same limits, followed as stages alone."""

        def emit(event: str, data: Any) -> None:
            if event == "stage":
                self.emit(event, data)

        return replace(self, emit=emit, streaming=False)

    def beyond(self, calls: int) -> Literal["calls_or_tokens", "time"] | None:
        """Which limit so many LLM calls more would meet, each as long as the longest so far; None where none."""
        return beyond(calls, self.trace, self.limits, time.perf_counter() - self.started)

    def note(self, name: str, **detail: Any) -> TraceStep:
        """Put a free decision into the trace."""
        self.trace.append(step := TraceStep(name, detail))
        return step

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """Shape (len(texts), dimensions), unit rows."""
        embedder, cache = self.ports.embedder, self.ports.caches.queries
        async with self._step("embed", texts=len(texts), side="query") as step:
            if not (cache.most and texts):
                return await embedder.queries(texts)
            keys = [cache_key(self.access, embedder.name, text) for text in texts]
            rows, step.detail["cached"] = await cache.filled(
                keys, lambda fresh: embedder.queries([texts[i] for i in fresh])
            )
            return np.stack(rows)

    async def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """The same, by the passage side of the model."""
        async with self._step("embed", texts=len(texts), side="passage"):
            return await self.ports.embedder.passages(texts)

    def requires(self, *names: Extra) -> None:
        """Said before any work of a request whose options want what this service has not. Raises InvalidOptions."""
        ports = self.ports
        has = {
            "splade": "splade" in ports.sparse,
            "rerank": ports.reranker is not None,
            "late": ports.tokens is not None,
            "external": ports.external is not None,
        }
        for name in names:
            if not has[name]:
                raise InvalidOptions(_LACKS[name])

    def encode_sparse(self, leg: LegName, text: str) -> SparseVector:
        encoder = self.ports.sparse.get(leg)
        if encoder is None:
            raise Unavailable(f"this index has no {leg!r} leg")
        return encoder.queries([text])[0]

    async def embed_sparse(self, leg: LegName, text: str) -> SparseVector:
        """As `encode_sparse`, by an encoder that is a model."""
        async with self._step("embed", texts=1, side="query", leg=leg):
            return await asyncio.to_thread(self.encode_sparse, leg, text)

    async def search(self, legs: Sequence[Leg], where: Filter) -> list[LegResult]:
        """All legs in one round trip, seen with the caller's rights whatever `where` says."""
        where = Filter(where.conditions, self.access)
        async with self._step("search", legs=[leg.name for leg in legs], limits=[leg.limit for leg in legs]) as step:
            results = await self.ports.store.search(legs, where)
            ops: Counter[OpKind] = Counter()
            for leg, result in zip(legs, results, strict=True):
                ops["dense" if leg.name == "dense" else "sparse"] += result.ops
            step.ops = dict(ops)
            step.ops_source = weakest(result.ops_source for result in results)
            step.detail["hits"] = [len(r.hits) for r in results]
            return results

    async def catalogue(self) -> Sequence[Document]:
        """The filings the caller may see, listed once."""
        if self.listed is None:
            async with self._step("catalogue"):
                self.listed = await self.ports.catalogue.documents(self.access)
        return self.listed

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """A cross-encoder score per hit, in the hits' order."""
        reranker, cache = self.ports.reranker, self.ports.caches.grades
        if reranker is None:
            raise Unavailable(_LACKS["rerank"])
        texts = [hit.chunk.searchable for hit in hits]
        async with self._step("rerank", pairs=len(hits)) as step:
            step.ops = {"rerank": len(hits)}
            if not cache.most:
                return await reranker.score(query, texts)
            keys = [cache_key(self.access, reranker.name, query, text) for text in texts]
            scores, known = await cache.filled(keys, lambda fresh: reranker.score(query, [texts[i] for i in fresh]))
            step.ops, step.detail["cached"] = {"rerank": len(hits) - known}, known
            return scores

    async def late(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """MaxSim per hit, in the hits' order; an op is a row, one token of the query against all of a passage's."""
        if self.ports.tokens is None:
            raise Unavailable(_LACKS["late"])
        async with self._step("late", passages=len(hits)) as step:
            own, *others = await self.ports.tokens.tokens([query, *(hit.chunk.searchable for hit in hits)])
            step.ops = {"late": len(own) * len(hits)}
            return await asyncio.to_thread(lambda: [maxsim(own, other) for other in others])

    async def pack(self, question: str, hits: Sequence[Hit]) -> tuple[Excerpt, ...] | None:
        """What of the hits a model is to be shown; None: all of it."""
        if self.ports.packer is None:
            return None
        async with self._step("pack", passages=len(hits)) as step:
            packed = await self.ports.packer.pack(question, hits)
            step.ops = dict(packed.ops)
            step.detail["shown"] = [excerpt.marker for excerpt in packed.excerpts]
            return packed.excerpts

    async def quote(self, question: str, hits: Sequence[Hit]) -> Generation | None:
        """What of the hits answers, quoted without a model; None: the service leaves that to its model."""
        if self.ports.quoting is None:
            return None
        async with self._step("quote", passages=len(hits)) as step:
            out = await self.ports.quoting.generate(Prompt("answer", (), question, tuple(hits)))
            step.ops = dict(out.ops)
            return out

    async def external(self, query: str, limit: int) -> list[External]:
        """Passages from outside the filings, best first. Raises Unavailable."""
        if self.ports.external is None:
            raise Unavailable(_LACKS["external"])
        async with self._step("external") as step:
            found = await self.ports.external.search(query, limit)
            step.detail["hits"] = len(found)
            return found

    async def chunks(self, ids: Sequence[str], where: Filter) -> list[Chunk]:
        """Those of these chunks that pass, in the ids' order."""
        async with self._step("chunks", chunks=len(ids)):
            return await self.ports.store.chunks(ids, Filter(where.conditions, self.access))

    async def records(
        self, kind: type[R], where: Filter, matching: Mapping[RecordField, Sequence[str]] | None = None
    ) -> list[R]:
        """Entities or relations of the graph; each record read is an op."""
        matching = matching or {}
        async with self._step("records", kind=kind.__name__.lower(), by=sorted(matching)) as step:
            found = await self.ports.store.records(kind, Filter(where.conditions, self.access), matching)
            step.ops = {"graph": len(found)}
            return found

    async def communities(self, where: Filter) -> tuple[Community, ...]:
        """Of what passes, every level. Each record read is an op, and each community where they were kept."""
        async with self._step("communities") as step:
            documents = await self.ports.catalogue.documents(self.access)
            overview = await self.ports.overviews.of(Filter(where.conditions, self.access), documents)
            step.ops = {"graph": overview.read}
            step.detail |= {"communities": len(overview.communities), "fresh": overview.fresh}
            return overview.communities

    async def corpus_mean(self) -> FloatArray:
        """Mean of the dense vectors of (a sample of) the caller's chunks, shape (dimensions,); zeros where none is."""
        async with self._step("mean") as step:
            rows = await self.ports.store.dense_sample(Filter((), self.access), _SAMPLED)
            step.detail["chunks"] = len(rows)
            return rows.mean(axis=0) if len(rows) else np.zeros(self.ports.embedder.dimensions, np.float32)

    async def pages(self, keys: Sequence[tuple[str, int]]) -> list[Page | None]:
        async with self._step("pages", pages=len(keys)):
            return await self.ports.store.pages(keys, self.access)

    async def sql(self, statement: str, *, limit: int = 100) -> Rows:
        """One SELECT over the figures that the caller may see. Raises InvalidQuery, Unavailable, Timeout."""
        if self.ports.figures is None:
            raise Unavailable("this index keeps no figures; `sextant-ingest figures` derives them")
        async with self._step("sql", statement=statement) as step:
            rows = await self.ports.figures.query(statement, self.access, limit=limit)
            step.detail["rows"] = len(rows.rows)
            return rows

    async def generate(self, prompt: Prompt) -> Generation:
        """One call to the generator, counted before it is made. Raises LimitExceeded, GeneratorUnavailable."""
        generator = self.ports.generator
        if generator.purposes is not None and prompt.purpose not in generator.purposes:
            raise GeneratorUnavailable(
                f"the {generator.name!r} generator cannot serve purpose {prompt.purpose!r}; set GENERATOR=local, or "
                "GENERATOR=openai with OPENAI_BASE_URL and OPENAI_MODEL (any OpenAI-compatible endpoint)"
            )
        cache = self.ports.caches.generations
        key = prompt_key(self.access, generator.name, prompt) if cache.most else None
        if key is None:
            return await self._call(generator, prompt)
        known = cache.get(key)
        if known is None:
            cache.put(key, out := await self._call(generator, prompt, cached=0))
            return out
        async with self._step("generate", generator=generator.name, cached=1) as step:
            step.purpose = prompt.purpose
            if self.streaming and prompt.purpose == "answer":
                self.emit("token", known.text)
            return known

    async def _call(self, generator: Generator, prompt: Prompt, **detail: Any) -> Generation:
        is_llm = generator.purposes is None
        if is_llm:
            prompt = within_limits(prompt, self.trace, self.limits)
        async with self._step("generate", generator=generator.name, **detail) as step:
            step.purpose, step.llm_calls = prompt.purpose, int(is_llm)
            step.reserved_tokens = is_llm * (prompt.characters // 4 + prompt.max_tokens)
            try:
                out = await self._generation(generator, prompt)
            finally:
                step.reserved_tokens = 0
            step.llm_calls, step.ops = max(step.llm_calls, out.llm_calls), dict(out.ops)
            step.input_tokens, step.output_tokens = out.input_tokens, out.output_tokens
            return out

    async def generate_all(self, prompts: Sequence[Prompt]) -> list[Generation]:
        """In parallel, in the prompts' order; the first error cancels the rest and is raised as itself."""
        return await together([self.generate(prompt) for prompt in prompts])

    async def _generation(self, generator: Generator, prompt: Prompt) -> Generation:
        if not (self.streaming and prompt.purpose == "answer"):
            return await generator.generate(prompt)
        async for piece in generator.stream(prompt):
            if isinstance(piece, Generation):
                return piece
            self.emit("token", piece)
        raise AssertionError("a generator's stream must end with a Generation")

    @asynccontextmanager
    async def _step(self, name: str, **detail: Any) -> AsyncIterator[TraceStep]:
        with self._timed(TraceStep(name, detail)) as step:
            late = Timeout(f"the request's {self.limits.timeout_s:g} s ended during {name!r}")
            left = self.limits.timeout_s - (time.perf_counter() - self.started)
            if left <= 0:
                raise late
            try:
                async with asyncio.timeout(left):
                    yield step
            except TimeoutError:
                raise late from None

    @contextmanager
    def _timed(self, step: TraceStep) -> Iterator[TraceStep]:
        if (number := ACTION.get()) is not None:
            step.detail["action"] = number
        self.trace.append(step)
        begun = time.perf_counter()
        try:
            with spans.of_step(step):
                yield step
        except SextantError as error:
            step.detail["error"] = error.error_code
            raise
        except asyncio.CancelledError:
            step.detail["error"] = "cancelled"
            raise
        finally:
            step.ms = (time.perf_counter() - begun) * 1000
            self.emit("stage", step)
