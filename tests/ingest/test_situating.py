"""Sentences on where chunks stand, by a model at an endpoint of OpenAI's protocol: searched, never read or quoted."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from app.adapters.bm25 import Bm25Encoder
from app.errors import InvalidOptions
from app.settings import Settings
from app.types import Chunk, DocumentMeta, Filter, Leg, LegResult, SparseVector
from ingest.chunking import StructureChunker, read_chunker
from ingest.indexing import Index
from ingest.model_calls import summed
from ingest.pipeline import Batch, Options, Outcome
from ingest.situating import MOST_CHARACTERS, SituatingCost, open_situating, situations
from ingest.sources import find_sources
from tests.fakes import FakeStore
from tests.ingest.filings import HashEmbedder, prose, stamp, write_pdf
from tests.integration.openai_server import COMPLETION, Reply, ScriptedEndpoint, error, scripted_endpoint

pytestmark = pytest.mark.anyio

META = DocumentMeta("Acme 10-K", "acme.pdf")
CHUNKS = [Chunk(f"c{n}", "acme-1", n, 1, 0, 4, "text", "", "text", None, META) for n in range(2)]
SITUATED = read_chunker("structure:situate=model")


def listed(*sentences: tuple[Any, Any]) -> str:
    return json.dumps({"sentences": [{"passage": number, "sentence": said} for number, said in sentences]})


def reply(text: str) -> Reply:
    message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return Reply(body={**COMPLETION, "choices": [message], "usage": {"prompt_tokens": 1000, "completion_tokens": 50}})


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted_endpoint() as served:
        yield served


def test_a_sentence_belongs_to_the_passage_it_names_and_is_one_line() -> None:
    said = listed(
        (2, "About\nthe \x00pension plan."), (1, "word " * 100), (2, "again"), (3, "none"), ("1", "no"), (0, "no")
    )
    found = situations(said, CHUNKS)
    assert found["c1"] == "About the pension plan."
    assert len(found["c0"]) <= MOST_CHARACTERS
    assert found["c0"].split() == ["word"] * 48
    assert situations(listed((1, " ")), CHUNKS) == {}


@pytest.mark.parametrize("text", ["no JSON", "[]", "[" * 100_000, '{"sentences": 3}'])
def test_a_reply_that_is_not_of_the_schema_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        situations(text, CHUNKS)


def test_the_collection_records_it_and_without_it_is_the_same_as_before() -> None:
    assert SITUATED.name == StructureChunker().name.replace(")", ",situate=model)")
    with pytest.raises(InvalidOptions, match="one of none, model"):
        read_chunker("structure:situate=yes")


async def ingested(endpoint: ScriptedEndpoint, folder: Path, store: FakeStore | None = None, **changes: Any) -> Outcome:
    named: dict[str, Any] = {"context_model": "say-1", "context_base_url": endpoint.base_url}
    prices = {"context_usd_per_million_input_tokens": 2, "context_usd_per_million_output_tokens": 10}
    outcomes: list[Outcome] = []
    settings = Settings(data_dir=folder, **{**named, **prices, **changes})
    async with open_situating(settings, SITUATED) as situating:
        index = Index(store, HashEmbedder(), {"bm25": Bm25Encoder()}) if store else None
        batch = Batch(index, SITUATED, Options(situating=situating), outcomes.append)
        await batch.run(list(find_sources([str(folder / "a.pdf")])), [])
    return outcomes[0]


async def found(store: FakeStore, words: str) -> LegResult:
    [query] = Bm25Encoder().queries([words])
    assert isinstance(query, SparseVector)
    [result] = await store.search([Leg("bm25", query, 5)], Filter())
    return result


async def test_a_chunk_is_found_by_its_sentence_and_reads_as_without_it(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    write_pdf(tmp_path / "a.pdf", prose("acme", 3))
    endpoint.play(reply(listed((1, "The pension plan of Acme."))))
    store = FakeStore(stamp(chunker=SITUATED.name))
    outcome = await ingested(endpoint, tmp_path, store)
    assert outcome.situating == SituatingCost(
        1, 1, llm_calls=1, input_tokens=1000, output_tokens=50, usd=Decimal("0.0025")
    )
    [hit] = (await found(store, "pension plan")).hits
    assert (await found(store, "acme units")).hits[0].chunk == hit.chunk
    [page] = await store.pages([(hit.chunk.document_id, 1)], Filter().access)
    assert page is not None
    assert page.text[hit.chunk.start : hit.chunk.end] == hit.chunk.text
    assert "pension" not in f"{hit.chunk.context} {hit.chunk.text} {page.text}"


async def test_what_was_said_once_is_not_paid_for_again(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", prose("acme", 3))
    endpoint.play(reply(listed((1, "The pension plan of Acme."))))
    await ingested(endpoint, tmp_path, FakeStore(stamp(chunker=SITUATED.name)))
    again = FakeStore(stamp(chunker=SITUATED.name))
    outcome = await ingested(endpoint, tmp_path, again)
    assert outcome.situating == SituatingCost(1, 1, cached=1)
    assert len(endpoint.requests) == 1
    assert len((await found(again, "pension")).hits) == 1


async def test_a_dry_run_asks_nothing_and_says_the_most_it_would_cost(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    write_pdf(tmp_path / "a.pdf", *(prose(f"acme {page}", 3) for page in range(3)))
    cost = (await ingested(endpoint, tmp_path, context_max_calls_per_file=2)).situating
    assert cost is not None
    assert (cost.estimated, cost.passages, cost.llm_calls, cost.output_tokens) == (True, 2, 2, 240)
    assert cost.usd == (Decimal(2) * cost.input_tokens + Decimal(10) * 240) / 1_000_000
    assert endpoint.requests == []
    assert summed([cost, SituatingCost(usd=None)]).usd is None


async def test_a_page_whose_call_fails_goes_without(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", prose("acme", 3))
    endpoint.play(error(400, "no"))
    store = FakeStore(stamp(chunker=SITUATED.name))
    outcome = await ingested(endpoint, tmp_path, store)
    assert outcome.outcome == "created"
    assert outcome.situating is not None
    assert (outcome.situating.sentences, outcome.situating.failed) == (0, 1)
    assert len((await found(store, "acme units")).hits) == 1


async def test_it_needs_a_model_and_is_off_by_default() -> None:
    with pytest.raises(InvalidOptions, match="set CONTEXT_MODEL"):
        async with open_situating(Settings(), SITUATED):
            pass
    async with open_situating(Settings(context_model="say-1"), StructureChunker()) as situating:
        assert situating is None
