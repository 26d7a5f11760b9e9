"""Records of the graph against the pages, passages and documents they point to."""

import argparse
import json
from dataclasses import replace
from decimal import Decimal

import pytest

from app.billing import Prices
from app.types import Chunk, ChunkVectors, Document, DocumentMeta, Entity, Mention, Page, Relation
from ingest.commands.graph import derive
from ingest.extraction.model_relations import MOST_TOKENS
from ingest.indexing import Index
from ingest.model_calls import PricedModel
from ingest.relating import Relating
from ingest.verification import problems
from tests.fakes import FakeStore, ScriptedGenerator
from tests.ingest.filings import HashEmbedder, stamp

pytestmark = pytest.mark.anyio

META = DocumentMeta("Alder 10-K", "alder.pdf", company="Alder Mills, Inc.")
TEXT = "Alder Mills fears hail. Birch Flour Corp buys its flour."
AT = Mention("00000000-0000-0000-0000-000000000001", 1, 0, 11)
OWN = Entity("alder-1", "company:alder mills", "company", "Alder Mills", ("alder mills",), (AT,), 1, META)
BIRCH = replace(OWN, key="company:birch flour", name="Birch Flour Corp", mentions=(replace(AT, start=24, end=40),))
SOLD = Relation("alder-1", OWN.key, "customer", BIRCH.key, OWN.name, BIRCH.name, None, AT, META)


async def indexed(*records: Entity | Relation) -> FakeStore:
    store = FakeStore(stamp())
    document = Document("alder-1", "0" * 64, META, 1, 1, ingested_at="2024-01-01")
    chunk = Chunk(AT.chunk_id, "alder-1", 0, 1, 0, len(TEXT), TEXT, "", "text", None, META)
    [dense] = await HashEmbedder().passages([TEXT])
    await store.put_pages(document, [Page(1, TEXT)])
    await store.put_chunks([chunk], [ChunkVectors(dense)])
    await store.put_records("alder-1", records)
    await store.put_document(document)
    return store


async def found(*records: Entity | Relation) -> list[str]:
    return [problem async for _, problem in problems(await indexed(*records))]


async def test_records_that_point_to_what_is_there_are_no_problem() -> None:
    assert await found(OWN, BIRCH, SOLD) == []


async def test_what_points_nowhere_is_said() -> None:
    assert await found(OWN, SOLD) == [
        "relation 'company:alder mills' customer 'company:birch flour': no entity 'company:birch flour'"
    ]
    assert await found(replace(OWN, mentions=(replace(AT, chunk_id="gone"),))) == [
        "entity 'company:alder mills': its passage gone does not exist"
    ]
    assert await found(replace(OWN, mentions=(replace(AT, end=99),))) == [
        "entity 'company:alder mills': page 1 has no characters 0 to 99"
    ]
    assert await found(OWN, BIRCH, replace(SOLD, mention=replace(AT, page=2))) == [
        "relation 'company:alder mills' customer 'company:birch flour': page 2 has no characters 0 to 11"
    ]
    assert await found(replace(OWN, key="theme:hail", type="theme")) == ["entity 'theme:hail': no such theme"]


async def test_records_of_no_document_are_said_and_deriving_the_graph_removes_them() -> None:
    store = await indexed(OWN)
    await store.put_records("gone-1", [replace(r, document_id="gone-1") for r in (OWN, BIRCH)])
    wrong = "2 entities and relations of no document; `sextant-ingest graph` removes them"
    assert [problem async for problem in problems(store)] == [("gone-1", wrong)]
    options = argparse.Namespace(json=True, dry_run=False)
    await derive(options, Index(store, HashEmbedder(), {}), None)
    assert [problem async for problem in problems(store)] == []


async def test_a_dry_run_of_the_graph_says_what_a_model_would_cost_and_changes_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = await indexed(replace(OWN, count=7))
    before = dict(store._records)
    generator = ScriptedGenerator(["never asked"])
    relating = Relating(PricedModel(generator, Prices(Decimal(1), Decimal(10))))
    options = argparse.Namespace(json=True, dry_run=True)
    await derive(options, Index(store, HashEmbedder(), {}), relating)
    [line] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    cost = line["model_relations"]
    assert (cost["estimated"], cost["llm_calls"], cost["output_tokens"]) == (True, 1, MOST_TOKENS)
    assert Decimal(cost["usd"]) == Decimal(cost["input_tokens"] + 10 * MOST_TOKENS) / 1_000_000
    assert generator.prompts == []
    assert store._records == before
