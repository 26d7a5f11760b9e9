"""One line for every filing: chosen over all of them together, and asked of each."""

from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

import pytest

from app.adapters.extractive import ExtractiveGenerator
from app.agent.series import common_line, own_columns, printed
from app.architectures.agentic import Agentic
from app.tools import Ports, Tools
from app.types import Chunk, ChunkVectors, Document, DocumentMeta, Hit, Limits, Page, Question
from tests.fakes import STAMP, FakeStore, LetterEmbedder, ScriptedGenerator, WordEncoder

pytestmark = pytest.mark.anyio
QUARTERS = {"Q1": "March 31, 2023", "Q2": "June 30, 2023", "Q3": "September 30, 2023"}
ENDS = {"Q1": "2023-03-31", "Q2": "2023-06-30", "Q3": "2023-09-30"}


def table(quarter: str, text: str, columns: tuple[str, ...]) -> Chunk:
    meta = DocumentMeta(
        f"Acme 10-Q {quarter}",
        f"{quarter}.pdf",
        company="Acme",
        form="10-Q",
        fiscal_year=2023,
        fiscal_period=quarter,
        period_end=ENDS[quarter],
    )
    id_ = str(uuid5(NAMESPACE_OID, f"{quarter} {text}"))
    return Chunk(
        id_, f"acme-{quarter.lower()}", 0, 1, 0, len(text), text, "", "table", None, meta, columns, "in millions"
    )


def hits(*chunks: Chunk) -> list[Hit]:
    return [Hit(chunk, rank, 1 / rank) for rank, chunk in enumerate(chunks, start=1)]


def at(quarter: str, text: str) -> Chunk:
    return table(quarter, text, (QUARTERS[quarter], "December 31, 2022"))


def test_the_line_that_most_filings_print_is_chosen() -> None:
    """Alone, the first filing's `Inventory at cost` looks as good; two others print `Inventories` as well."""
    parts = [
        hits(at("Q1", "Inventory at cost 9 8\nInventories 40 38")),
        hits(at("Q2", "Inventories 41 38")),
        hits(at("Q3", "Goodwill 5 5")),
    ]
    line = common_line("inventory", parts)
    assert line is not None
    assert line.label == "Inventories"
    assert common_line("inventory", [parts[0], parts[2], parts[2]]) is None
    assert common_line("inventory", [[], [], []]) is None


def test_what_the_topic_names_the_line_must_name() -> None:
    part = hits(at("Q1", "Widgets revenue 7 6\nTotal revenue 90 80"))
    other = hits(at("Q2", "Widgets revenue 8 6\nTotal revenue 91 80"))
    line = common_line("Widgets revenue", [part, other])
    assert line is not None
    assert line.label == "Widgets revenue"
    assert common_line("Gadgets revenue", [part, other]) is None


def test_the_whole_line_is_no_part_of_it() -> None:
    parts = [hits(at(quarter, "Total revenue 90 80\nGoodwill 5 5")) for quarter in ("Q1", "Q2")]
    assert common_line("freight revenue", parts) is None
    assert common_line("revenue", parts) is not None
    parts = [hits(at(quarter, "Total revenue 90 80\nFreight 5 5")) for quarter in ("Q1", "Q2")]
    line = common_line("freight revenue", parts)
    assert line is not None
    assert line.label == "Freight"


def test_a_total_of_something_else_is_no_line() -> None:
    parts = [hits(at(quarter, "Total 9 8")) for quarter in ("Q1", "Q2")]
    assert common_line("total net sales", parts) is None


def test_a_line_that_says_something_else_besides_is_none() -> None:
    parts = [hits(at(quarter, "Mooring services revenue 9 8")) for quarter in ("Q1", "Q2")]
    assert common_line("towing services revenue", parts) is not None
    parts = [hits(at(quarter, "Mooring services 9 8")) for quarter in ("Q1", "Q2")]
    assert common_line("towing services", parts) is None


def test_names_are_no_abbreviations() -> None:
    parts = [hits(at(quarter, "Research and development 9 8")) for quarter in ("Q1", "Q2")]
    line = common_line("R&D expenditure", parts)
    assert line is not None
    assert line.label == "Research and development"


def test_a_row_with_one_value_for_the_period_is_preferred() -> None:
    end = QUARTERS["Q2"]
    effects = table("Q2", "Net sales 90 3 93", tuple(f"Three Months Ended {end} {n}" for n in ("A", "B", "C")))
    plain = table("Q2", "Net sales 90 170", (f"Three Months Ended {end}", f"Six Months Ended {end}"))
    none = at("Q2", "Goodwill 5 5")
    line = common_line("net sales", [hits(effects, plain), hits(plain)])
    assert line is not None
    row = printed(line, hits(effects, none, plain))
    assert row is not None
    assert (row.marker, row.chunk, own_columns(row)) == (3, plain, [0])
    assert printed(line, hits(none)) is None


async def ports(*chunks: Chunk) -> Ports:
    store = FakeStore(STAMP)
    for chunk in chunks:
        [dense], [sparse] = await LetterEmbedder().passages([chunk.text]), WordEncoder().passages([chunk.text])
        await store.put_chunks([chunk], [ChunkVectors(dense, {"bm25": sparse})])
        record = Document(chunk.document_id, "0" * 64, chunk.meta, 1, 1)
        await store.put_pages(record, [Page(1, chunk.text)])
        await store.put_document(record)
    return Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, ExtractiveGenerator(LetterEmbedder()))


async def test_each_filing_gives_its_value_of_the_same_line() -> None:
    found = await ports(
        *(at(q, f"Inventories {n} 38\nGoodwill 5 5") for q, n in zip(QUARTERS, (40, 41, 42), strict=True))
    )
    tools = Tools(found)
    answer = await Agentic().answer(Question("How have Acme's inventories shifted over these quarters?"), tools)
    assert [step.detail for step in tools.trace if step.name == "series"] == [
        {"topic": "inventories", "line": "Inventories"}
    ]
    values = [line for line in answer.text.splitlines() if line.startswith("Inventories")]
    assert [line.split()[1] for line in values] == ["40", "41", "42"]
    assert {citation.document_id for citation in answer.citations} == {"acme-q1", "acme-q2", "acme-q3"}


@pytest.mark.parametrize(
    ("question", "said", "told"),
    [
        ("How have Acme's inventories shifted over these quarters?", "never asked", 0),
        ("How have Acme's inventories shifted over these quarters, and why?", "Goodwill was 5 in all [1].", 1),
        ("How have Acme's inventories shifted over these quarters, and why?", "NOT IN THE PASSAGES", 0),
    ],
)
async def test_a_model_is_asked_once_and_only_for_what_rows_do_not_tell(question: str, said: str, told: int) -> None:
    rows = (at(q, f"Inventories {n} 38\nGoodwill 5 5") for q, n in zip(QUARTERS, (40, 41, 42), strict=True))
    tools = Tools(replace(await ports(*rows), generator=ScriptedGenerator([said])), Limits(max_llm_calls=1))
    answer = await Agentic().answer(Question(question), tools)
    values = [line.split()[1] for line in answer.text.splitlines() if line.startswith("Inventories")]
    assert values == ["40", "41", "42"]
    assert tools.cost.llm_calls == ("why" in question)
    assert answer.text.count("Goodwill") == told


async def test_a_filing_that_does_not_print_the_line_is_said_to_lack_it() -> None:
    chunks = [at("Q1", "Inventories 40 38"), at("Q2", "Inventories 41 38"), at("Q3", "Goodwill 5 5")]
    answer = await Agentic().answer(
        Question("How have Acme's inventories shifted over these quarters?"), Tools(await ports(*chunks))
    )
    assert "Goodwill" not in answer.text
    assert any(note.startswith("not answered for Acme 10-Q Q3") for note in answer.notes)


async def test_without_a_line_in_common_each_filing_is_asked_as_before() -> None:
    chunks = [replace(at(q, f"The {w} strike slowed production."), kind="text", columns=(), unit=None)
              for q, w in zip(QUARTERS, ("first", "second", "third"), strict=True)]  # fmt: skip
    tools = Tools(await ports(*chunks))
    answer = await Agentic().answer(Question("How did Acme's production change over these quarters?"), tools)
    assert [step.detail["line"] for step in tools.trace if step.name == "series"] == [None]
    assert [c.document_id for c in answer.citations] == ["acme-q1", "acme-q2", "acme-q3"]


async def test_a_filing_is_not_searched_again_for_a_label_that_is_the_topic_itself() -> None:
    chunks = [at("Q1", "Widgets 40 38"), at("Q2", "Widgets 41 38"), at("Q3", "Goodwill 5 5")]
    answer = await Agentic().answer(
        Question("How have Acme's Widgets changed over these quarters?"), Tools(await ports(*chunks))
    )
    values = [line for line in answer.text.splitlines() if line.startswith("Widgets")]
    assert [line.split()[1] for line in values] == ["40", "41"]
    assert any(note.startswith("not answered for Acme 10-Q Q3") for note in answer.notes)


async def test_of_periods_after_the_last_filing_no_row_is_given() -> None:
    chunks = [at("Q1", "Inventories 40 38"), at("Q2", "Inventories 41 38"), at("Q3", "Inventories 42 38")]
    answer = await Agentic().answer(
        Question("How have Acme's inventories shifted over the quarters of 2030?"), Tools(await ports(*chunks))
    )
    assert answer.reason == "off_corpus"


async def test_one_passage_has_no_room_for_several_filings() -> None:
    chunks = [at("Q1", "Inventories 40 38"), at("Q2", "Inventories 41 38"), at("Q3", "Inventories 42 38")]
    tools = Tools(await ports(*chunks))
    await Agentic().answer(Question("How have Acme's inventories shifted over these quarters?", k=1), tools)
    assert [step.name for step in tools.trace if step.name == "series"] == []
