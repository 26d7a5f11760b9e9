"""What every architecture promises, and what each costs: the table below is the summary to read first.

Counted on the small corpus of tests/conftest.py: N = 3 chunks that the caller may see, one of another tenant.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

import app.architectures
from app.architectures import ARCHITECTURES
from app.errors import GeneratorUnavailable, LimitExceeded, SextantError, StoreUnavailable, Timeout, UpstreamFailed
from app.tools import Tools
from app.types import (
    Access,
    Chunk,
    ChunkVectors,
    Condition,
    Document,
    DocumentMeta,
    Filter,
    Limits,
    OpKind,
    OpsSource,
    Page,
    Question,
)
from tests.conftest import FILINGS, MakePorts
from tests.fakes import FakeStore, HeldGenerator, QuotingGenerator, ScriptedGenerator
from tests.http.test_problems import BrokenStore

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Row:
    """The price of one question without options, answered at the first attempt."""

    steps: tuple[str, ...]
    ops: Mapping[OpKind, int]
    ops_source: OpsSource
    llm_calls: Mapping[str, int]
    partial: bool = False
    """At a limit it answers with what is known by then, or abstains for the limit, instead of failing."""


COST: dict[str, Row] = {
    # One query embedded, N dense comparisons, one generation; the cited pages are read.
    "naive": Row(
        steps=("embed", "search", "generate", "pages"),
        ops={"dense": 3},
        ops_source="counted",
        llm_calls={"answer": 1},
    ),
    # The same, and at most N chunks scored through the postings, in the same round trip; first the question is read.
    "hybrid": Row(
        steps=("catalogue", "read", "embed", "search", "generate", "pages"),
        ops={"dense": 3, "sparse": 3},
        ops_source="bound",
        llm_calls={"answer": 1},
    ),
    # A passage written and embedded beside the query, then as naive.
    "hyde": Row(
        steps=("embed", "generate", "hypothetical", "embed", "search", "generate", "pages"),
        ops={"dense": 3},
        ops_source="counted",
        llm_calls={"hyde": 1, "answer": 1},
    ),
    # As hybrid, and a cross-encoder pair per candidate; the best is correct, so nothing is searched anew.
    "crag": Row(
        steps=("catalogue", "read", "embed", "search", "rerank", "verdict", "generate", "pages"),
        ops={"dense": 3, "sparse": 3, "rerank": 3},
        ops_source="bound",
        llm_calls={"answer": 1},
    ),
    # As hybrid; then the entities in the passages found, two records, and the same two again with all their mentions.
    "graph": Row(
        steps=(
            *("mode", "catalogue", "read", "embed", "search", "records", "records", "records", "walk"),
            *("generate", "pages"),
        ),
        ops={"dense": 3, "sparse": 3, "graph": 4},
        ops_source="bound",
        llm_calls={"answer": 1},
    ),
    # As hybrid, in one action: what a model answers from it is not judged.
    "agentic": Row(
        steps=("catalogue", "plan", "act", "read", "embed", "search", "generate", "pages"),
        ops={"dense": 3, "sparse": 3},
        ops_source="bound",
        llm_calls={"answer": 1},
        partial=True,
    ),
    # The question names nobody, so hybrid is taken; its citation verifies, so nothing else is tried.
    "auto": Row(
        steps=("catalogue", "route", "read", "embed", "search", "generate", "pages"),
        ops={"dense": 3, "sparse": 3},
        ops_source="bound",
        llm_calls={"answer": 1},
    ),
}

QUESTION = Question("debt", k=2)
LINE = "Debt was $4 million [1]."
every = pytest.mark.parametrize("arch", ARCHITECTURES)


def sum_of(trace: list[Any]) -> tuple[Counter[str], Counter[str], int, int]:
    ops: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for step in trace:
        ops.update(step.ops)
        calls.update({step.purpose: step.llm_calls} if step.llm_calls else {})
    return ops, calls, sum(s.input_tokens for s in trace), sum(s.output_tokens for s in trace)


def test_no_architecture_is_missing_from_the_table() -> None:
    modules = {path.stem for path in Path(app.architectures.__path__[0]).glob("*.py")} - {"__init__"}
    assert modules == set(ARCHITECTURES) == set(COST)
    tests = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert modules <= tests


@every
async def test_cost(make_ports: MakePorts, arch: str) -> None:
    tools = Tools(await make_ports(ScriptedGenerator([LINE])))
    await ARCHITECTURES[arch]().answer(QUESTION, tools)
    row, cost = COST[arch], tools.cost
    assert tuple(step.name for step in tools.trace) == row.steps
    assert cost.ops_by_kind == row.ops
    assert cost.ops_source == row.ops_source
    assert cost.llm_calls_by_purpose == row.llm_calls
    assert sum_of(tools.trace) == (
        Counter(cost.ops_by_kind),
        Counter(cost.llm_calls_by_purpose),
        cost.input_tokens,
        cost.output_tokens,
    )


@every
async def test_parts_of_a_table_that_are_read_as_one_leave_no_place_empty(make_ports: MakePorts, arch: str) -> None:
    """Its three rows are the best for the question; k passages are read, for the same ops and calls."""
    meta, rows = DocumentMeta("Hooli 10-K 2021", "hooli.pdf", company="Hooli"), ("Debt 1 2", "Debt 3 4", "Debt 5 6")
    table, ports = "\n".join(rows), await make_ports(ScriptedGenerator([LINE]))
    parts = [
        Chunk(f"hooli/{n}", "hooli", n, 1, 9 * n, 9 * n + 8, row, "", "table", None, meta, parent=(0, len(table)))
        for n, row in enumerate(rows)
    ]
    dense, sparse = await ports.embedder.passages(rows), ports.sparse["bm25"].passages(rows)
    assert isinstance(ports.store, FakeStore)
    await ports.store.put_pages(Document("hooli", "0" * 64, meta, 1, 3), [Page(1, table)])
    await ports.store.put_chunks(parts, [ChunkVectors(d, {"bm25": s}) for d, s in zip(dense, sparse, strict=True)])
    await ports.store.put_document(Document("hooli", "0" * 64, meta, 1, 3))
    tools = Tools(ports)
    answer = await ARCHITECTURES[arch]().answer(replace(QUESTION, k=3), tools)
    assert [hit.rank for hit in answer.passages] == [1, 2, 3]
    assert [hit.chunk.text for hit in answer.passages if hit.chunk.document_id == "hooli"] == [table]
    assert tools.cost.ops_by_kind["dense"] == 6
    assert tools.cost.llm_calls_by_purpose == COST[arch].llm_calls


@every
async def test_without_an_llm_it_answers_or_says_what_it_needs(make_ports: MakePorts, arch: str) -> None:
    tools = Tools(await make_ports(QuotingGenerator()))
    if ARCHITECTURES[arch].needs_llm:
        with pytest.raises(GeneratorUnavailable, match="set GENERATOR="):
            await ARCHITECTURES[arch]().answer(QUESTION, tools)
    else:
        assert (await ARCHITECTURES[arch]().answer(QUESTION, tools)).citations
        assert tools.cost.ops_by_kind == COST[arch].ops
    assert tools.cost.llm_calls == 0


@every
async def test_every_marker_resolves_and_every_quote_is_a_slice(make_ports: MakePorts, arch: str) -> None:
    tools = Tools(await make_ports(ScriptedGenerator(["Debt was $4 million [1]. It is due in 2027 [1][2]. More [9]."])))
    answer = await ARCHITECTURES[arch]().answer(QUESTION, tools)
    assert {int(n) for n in re.findall(r"\[(\d+)\]", answer.text)} == {c.marker for c in answer.citations}
    assert [hit.rank for hit in answer.passages] == list(range(1, len(answer.passages) + 1))
    assert len(answer.passages) <= QUESTION.k
    for citation in answer.citations:
        page = FILINGS[citation.document_id][1][citation.page - 1]
        assert page[citation.span_start : citation.span_end] == citation.quote
        assert answer.passages[citation.marker - 1].chunk.id == citation.chunk_id


@every
@pytest.mark.parametrize("tenant", ["default", "other", "nobody"])
async def test_nobody_sees_what_is_not_theirs(make_ports: MakePorts, arch: str, tenant: str) -> None:
    tools = Tools(await make_ports(ScriptedGenerator([LINE])), access=Access(tenant))
    spoofed = Question("revenue debt risk", k=100, where=Filter((), Access("default")))
    answer = await ARCHITECTURES[arch]().answer(spoofed, tools)
    theirs = {document_id for document_id, (meta, _) in FILINGS.items() if meta.tenant == tenant}
    assert {hit.chunk.document_id for hit in answer.passages} == theirs
    assert (answer.reason == "no_passages") is (not theirs)


@every
async def test_filters_hold(make_ports: MakePorts, arch: str) -> None:
    tools = Tools(await make_ports(ScriptedGenerator([LINE])))
    where = Filter((Condition("fiscal_year", "$eq", 2022),))
    answer = await ARCHITECTURES[arch]().answer(Question("Acme's debt", where=where), tools)
    assert {hit.chunk.document_id for hit in answer.passages} == {"globex-2022"}


@every
@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (Limits(max_llm_calls=0), LimitExceeded),
        (Limits(max_tokens=1), LimitExceeded),
        (Limits(timeout_s=0.02), Timeout),
    ],
)
async def test_limits(make_ports: MakePorts, arch: str, limits: Limits, error: type[SextantError]) -> None:
    tools = Tools(await make_ports(ScriptedGenerator([LINE], delay_s=30)), limits)
    if COST[arch].partial:
        assert (await ARCHITECTURES[arch]().answer(QUESTION, tools)).reason == "limit"
    else:
        with pytest.raises(error):
            await ARCHITECTURES[arch]().answer(QUESTION, tools)
    assert tools.cost.llm_calls <= 1
    assert sum_of(tools.trace)[0] == Counter(tools.cost.ops_by_kind)


@every
async def test_a_failure_keeps_its_bill(make_ports: MakePorts, arch: str) -> None:
    tools = Tools(await make_ports(ScriptedGenerator([UpstreamFailed("nonsense")])))
    with pytest.raises(UpstreamFailed):
        await ARCHITECTURES[arch]().answer(QUESTION, tools)
    assert tools.cost.llm_calls == 1
    assert tools.trace[-1].detail["error"] == "upstream_failed"
    tools = Tools(await make_ports(ScriptedGenerator([LINE]), store=BrokenStore(StoreUnavailable("gone"))))
    with pytest.raises(StoreUnavailable):
        await ARCHITECTURES[arch]().answer(QUESTION, tools)
    assert tools.trace[-1].detail["error"] == "store_unavailable"


@every
async def test_a_cancellation_keeps_its_bill(make_ports: MakePorts, arch: str) -> None:
    generator = HeldGenerator([LINE])
    tools = Tools(await make_ports(generator))
    working = asyncio.create_task(ARCHITECTURES[arch]().answer(QUESTION, tools))
    await generator.begun.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert generator.cancelled == 1
    assert tools.cost.llm_calls == 1
    assert tools.trace[-1].detail["error"] == "cancelled"


@every
def test_options_have_defaults_and_allow_nothing_else(arch: str) -> None:
    kind = ARCHITECTURES[arch]
    assert all(option.default is not MISSING for option in fields(kind))
    adapter = TypeAdapter(kind)
    assert adapter.validate_python({}) == kind()
    with pytest.raises(ValidationError):
        adapter.validate_python({"no_such_option": 1})
    with pytest.raises((FrozenInstanceError, TypeError)):
        kind().no_such_option = 1  # type: ignore[attr-defined]
