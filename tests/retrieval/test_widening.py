"""From the chunk found to what is read in its place."""

from dataclasses import replace

import pytest

from app.answering import answer_from
from app.retrieval.widening import widened
from app.tools import Tools
from app.types import Chunk, Document, DocumentMeta, Hit, Page, Question
from tests.fakes import STAMP, FakeStore, ScriptedGenerator, fake_ports

pytestmark = pytest.mark.anyio
META = DocumentMeta("Acme 10-K", "acme.pdf")
TEXT = "Net sales (in millions)\n2022 2021\nAnvils 10 20\nHammers 30 40\nNails 50 60"
TABLE = (0, len(TEXT))


def hit(row: str, rank: int, parent: tuple[int, int] | None = TABLE, page: int = 1) -> Hit:
    start = TEXT.index(row)
    context = "Acme\nNet sales (in millions) | 2022 2021"
    chunk = Chunk(row, "acme", rank, page, start, start + len(row), row, context, "table", None, META, parent=parent)
    return Hit(chunk, rank, 1 / rank)


async def opened(reply: str = "") -> Tools:
    store = FakeStore(STAMP)
    document = Document("acme", "0" * 64, META, 2, 3)
    await store.put_pages(document, [Page(1, TEXT), Page(2, TEXT)])
    await store.put_document(document)
    return Tools(replace(await fake_ports(generator=ScriptedGenerator([reply])), store=store))


async def test_parts_of_one_table_are_read_once_as_the_table() -> None:
    tools = await opened()
    found = await widened([hit("Nails 50 60", 1), hit("Hammers 30 40", 2, page=2), hit("Anvils 10 20", 3)], tools)
    assert [(h.rank, h.chunk.id, h.chunk.page, h.chunk.text) for h in found] == [
        (1, "Nails 50 60", 1, TEXT),
        (2, "Hammers 30 40", 2, TEXT),
    ]
    assert [(h.chunk.context, h.chunk.parent) for h in found] == [("Acme", None)] * 2
    assert [step.name for step in tools.trace] == ["pages"]
    assert await widened(found, tools) == found


async def test_hits_further_down_take_the_places_of_joined_ones_and_no_more_pages_are_read() -> None:
    tools = await opened()
    hits = [hit("Nails 50 60", 1), hit("Hammers 30 40", 2), hit("Anvils 10 20", 3, None), hit("Nails 50 60", 4, page=2)]
    two = await widened(hits, tools, 2)
    assert [(h.rank, h.chunk.page, h.chunk.text) for h in two] == [(1, 1, TEXT), (2, 1, "Anvils 10 20")]
    assert [step.detail["pages"] for step in tools.trace] == [1]
    three = await widened(hits[1:], tools, 3, read=two[:1])
    assert [(h.rank, h.chunk.page, h.chunk.text) for h in three] == [
        *((h.rank, h.chunk.page, h.chunk.text) for h in two),
        (3, 2, TEXT),
    ]
    assert await widened(hits, tools, 1, read=two) == two


async def test_windows_that_overlap_are_joined() -> None:
    start = TEXT.index("Anvils")
    windows = [hit("Anvils 10 20", 1, (start, TEXT.index("\nNails"))), hit("Nails 50 60", 2, (start + 13, len(TEXT)))]
    (joined,) = await widened(windows, await opened())
    assert (joined.chunk.start, joined.chunk.text) == (start, TEXT[start:])
    assert joined.chunk.context == "Acme\nNet sales (in millions) | 2022 2021"


async def test_what_has_no_parent_or_no_such_page_is_left_alone() -> None:
    tools = await opened()
    alone = [hit("Nails 50 60", 1, None)]
    assert await widened(alone, tools) == tuple(alone)
    assert tools.trace == []
    strange = [hit("Nails 50 60", 1, page=3)]
    assert await widened(strange, tools) == tuple(strange)


async def test_a_sibling_of_the_part_found_is_cited_exactly() -> None:
    tools = await opened("Hammers were 30 [1].")
    answer = await answer_from(Question("hammers in 2022?"), [hit("Nails 50 60", 1)], tools)
    (citation,) = answer.citations
    assert citation.verified
    assert citation.quote == "Hammers 30 40" == TEXT[citation.span_start : citation.span_end]
