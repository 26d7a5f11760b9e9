"""Questions that want words as well as figures: the rows stand first, what the filing says of them follows."""

from dataclasses import replace

import pytest

from app.adapters.extractive import ExtractiveGenerator
from app.architectures.agentic import Agentic
from app.tools import Ports, Tools
from app.types import Answer, Chunk, ChunkVectors, Document, DocumentMeta, Page, Question
from tests.fakes import STAMP, FakeStore, LetterEmbedder, WordEncoder

pytestmark = pytest.mark.anyio

PROSE = {
    "2022-09-30": (
        "Revenue rose in the quarter, primarily due to a drought that sold many pumps.",
        "Revenue may fall as a result of many factors.",
        "For a discussion of revenue, see Note 2.",
    ),
    "2022-12-31": (
        "Revenue fell in the quarter, driven by a strike at two mills.",
        "In November 2022 we acquired Tern Foods for $30 million in cash.",
        "The costs of acquisitions are expensed as they are incurred.",
    ),
}
AMOUNTS = {"2022-09-30": ("2,500", "2,200"), "2022-12-31": ("2,300", "2,400")}
HEADS = {"2022-09-30": "September 30", "2022-12-31": "December 31"}


def filing(quarter: int, end: str) -> Document:
    name = f"Orrin 10-Q Q{quarter} FY2023"
    meta = DocumentMeta(
        name, f"{end}.pdf", company="Orrin", form="10-Q", fiscal_year=2023, fiscal_period=f"Q{quarter}", period_end=end
    )
    return Document(f"orrin-{end}", "0" * 64, meta, 2, 2)


FILINGS = (filing(1, "2022-09-30"), filing(2, "2022-12-31"))


async def ask(question: str) -> Answer:
    store = FakeStore(STAMP)
    for document in FILINGS:
        end = document.meta.period_end or ""
        columns = tuple(f"Three Months Ended {HEADS[end]}, {year}" for year in (2022, 2021))
        row = "Total revenue " + " ".join(AMOUNTS[end])
        head = f"{' '.join(columns)}, in millions\n"
        table = Chunk(
            f"t-{end}", document.id, 1, 1, len(head), len(head + row), row, "", "table", "Statements of Income",
            document.meta, columns, "in millions",
        )  # fmt: skip
        told = "\n\n".join(PROSE[end])
        prose = Chunk(f"p-{end}", document.id, 2, 2, 0, len(told), told, "", "text", "MD&A", document.meta)
        for chunk in (table, prose):
            [dense], [sparse] = await LetterEmbedder().passages([chunk.text]), WordEncoder().passages([chunk.text])
            await store.put_chunks([chunk], [ChunkVectors(dense, {"bm25": sparse})])
        await store.put_pages(document, [Page(1, head + row), Page(2, told)])
        await store.put_document(replace(document, state="ready"))
    generator = ExtractiveGenerator(LetterEmbedder())
    tools = Tools(Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, generator))
    return await Agentic().answer(Question(question, k=6), tools)


async def test_the_cause_follows_the_line() -> None:
    answer = await ask("Why did Orrin's revenue change in the quarter ended December 31, 2022?")
    assert answer.text.splitlines() == [
        "Total revenue: 2,300 million, 2,400 million [1], for Three Months Ended December 31, 2022; "
        "Three Months Ended December 31, 2021 [1].",
        "Revenue fell in the quarter, driven by a strike at two mills. [2]",
    ]
    assert all(citation.verified for citation in answer.citations)


async def test_each_filings_row_has_its_own_cause_behind_it() -> None:
    answer = await ask("How has Orrin's revenue changed over the quarters, and what drove it?")
    assert answer.text.splitlines() == [
        "Orrin 10-Q Q1 FY2023:",
        "Total revenue: 2,500 million [1], for Three Months Ended September 30, 2022 [1].",
        "Revenue rose in the quarter, primarily due to a drought that sold many pumps. [3]",
        "Orrin 10-Q Q2 FY2023:",
        "Total revenue: 2,300 million [2], for Three Months Ended December 31, 2022 [2].",
        "Revenue fell in the quarter, driven by a strike at two mills. [4]",
    ]
    assert all(citation.verified for citation in answer.citations)


async def test_an_event_is_told_and_not_how_it_is_booked() -> None:
    answer = await ask("Did Orrin announce any acquisitions in the quarter ended December 31, 2022?")
    assert answer.text == "In November 2022 we acquired Tern Foods for $30 million in cash. [1]"
