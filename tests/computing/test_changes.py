"""The change of a row or of a sentence's amounts that a question describes, with both numbers cited."""

from dataclasses import replace

import pytest

from app.architectures.agentic import Agentic
from app.computing.changes import asked_change
from app.tools import Ports, Tools
from app.types import Chunk, ChunkVectors, Document, DocumentMeta, Page, Question
from tests.fakes import STAMP, FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder

pytestmark = pytest.mark.anyio

META = DocumentMeta(
    "Orrin 10-K 2022", "o.pdf", company="Orrin", form="10-K", fiscal_year=2022, fiscal_period="FY",
    period_end="2022-12-31",
)  # fmt: skip
ORRIN = Document("orrin", "0" * 64, META, 3, 3)
YEARS = ("December 31, 2022", "December 31, 2021")
TABLE = "Pump rental fees 120 100\nPump rental fees of discontinued depots 9 3"
PROSE = "Storage fines were $7.4 million and $9.3 million in 2022 and 2021, respectively."


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What was the growth rate in pump rental fees of Orrin in 2022?", {"pump", "rental", "fee"}),
        ("By how much did Orrin's storage fines decrease from 2021 to 2022?", {"storag", "fine"}),
    ],
)
def test_what_is_described(question: str, terms: set[str]) -> None:
    plan = asked_change(question, ("Orrin",), (ORRIN,))
    assert plan is not None
    assert plan.described == terms


@pytest.mark.parametrize(
    "question",
    [
        "What was the growth of Orrin's revenue in 2022?",  # a line of the statements
        "What were Orrin's pump rental fees in 2022?",
        "What was the growth of Orrin's fees in 2022?",
        "Why did Orrin's pump rental fees grow in 2022?",
        "What was the growth of Orrin's pump rental fees in Q2 2022?",
        "What was the growth of Orrin's pump rental fees in 2012?",
    ],
)
def test_nothing_to_compute(question: str) -> None:
    assert asked_change(question, ("Orrin",), (ORRIN,)) is None


def test_a_quarterly_filing_is_no_years() -> None:
    quarterly = replace(ORRIN, meta=replace(META, form="10-Q", fiscal_period="Q4"))
    question = "What was the growth rate in pump rental fees of Orrin in 2022?"
    assert asked_change(question, ("Orrin",), (quarterly,)) is None


async def ask(question: str) -> tuple[list[str], bool]:
    store = FakeStore(STAMP)
    head = f"{' '.join(YEARS)}, in millions\n"
    table = Chunk(
        "c1", "orrin", 1, 1, len(head), len(head + TABLE), TABLE, "", "table", "Note 1", META, YEARS, "in millions"
    )
    prose = Chunk("c2", "orrin", 2, 2, 0, len(PROSE), PROSE, "", "text", "Note 2", META)
    for chunk, page in ((table, head + TABLE), (prose, PROSE)):
        [dense], [sparse] = await LetterEmbedder().passages([chunk.text]), WordEncoder().passages([chunk.text])
        await store.put_chunks([chunk], [ChunkVectors(dense, {"bm25": sparse})])
        await store.put_pages(ORRIN, [Page(chunk.page, page)])
    await store.put_document(ORRIN)
    tools = Tools(Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, QuotingGenerator()))
    answer = await Agentic().answer(Question(question, k=4), tools)
    return answer.text.splitlines(), all(made.verified for made in answer.calculations) and bool(answer.calculations)


async def test_of_the_row_that_says_least_else() -> None:
    lines, verified = await ask("What was the growth rate in pump rental fees of Orrin in 2022?")
    assert lines[-1] == "Change in pump rental fees, 2022: (120 - 100) / 100 = 20.0%"
    assert verified


async def test_of_a_sentences_amounts() -> None:
    lines, verified = await ask("By how much did Orrin's storage fines decrease from 2021 to 2022?")
    assert lines == [
        f"{PROSE} [1]",
        "Change in storage fines, 2021 to 2022, in millions: 7.4 - 9.3 = -1.9",
    ]
    assert verified


async def test_a_row_without_every_word_is_none() -> None:
    lines, verified = await ask("What was the growth rate in pump rental deposits of Orrin in 2022?")
    assert not verified
    assert "Change" not in lines[-1]
