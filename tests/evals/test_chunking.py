"""Two strategies over the same small filings: each its own index, the same questions, paired."""

from pathlib import Path

import pytest

from app.adapters.bm25 import Bm25Encoder
from app.errors import InvalidOptions
from evals.chunking import NUMBER_READ, Blind, Comparison, Scratch, run, table
from evals.errors import UsageError
from evals.questions import Evidence, Question
from evals.subjects import parse_system
from tests.ingest.filings import write_pdf

pytestmark = pytest.mark.anyio
LABELS = [f"{a}{b}" for a in ("Alder", "Birch", "Cedar", "Maple") for b in ("wood", "land", "ton", "field", "dale")]
TABLE = "\n".join(["(in millions)\t2023\t2022", *(f"{label}\t{n},700\t{n},650" for n, label in enumerate(LABELS, 11))])
QUESTIONS = [
    Question("far", "Alderwood Alderland Alderton", "numeric", "$30,700 million", "", (Evidence("timber", 1),)),
    Question("near", "Alderwood Alderland Alderton", "numeric", "$11,700 million", "", (Evidence("timber", 1),)),
    Question("elsewhere", "Alderwood", "numeric", "$1 million", "", (Evidence("coal", 1),)),
]
BM25 = parse_system("bm25")


@pytest.fixture
def filings(tmp_path: Path) -> list[str]:
    return [str(write_pdf(tmp_path / "filings" / "timber.pdf", TABLE, "We plant trees.").parent)]


async def compared(folder: Path, specs: list[str], filings: list[str], questions: list[Question]) -> Comparison:
    """By BM25 alone, of one passage."""
    return await run(Scratch(folder, Blind(), Bm25Encoder()), specs, filings, questions, [BM25], k=1, parallel=1)


async def test_a_strategy_that_reads_the_whole_table_reads_its_last_row(tmp_path: Path, filings: list[str]) -> None:
    specs = ["structure:max_tokens=60:tables=parts", "structure:max_tokens=60"]
    found = await compared(tmp_path / "run", specs, filings, QUESTIONS)
    assert found.questions == 2
    parts, whole = found.variants
    assert [v.chunker for v in found.variants] == specs
    assert parts.chunks == whole.chunks > 3
    assert whole.tokens_read["bm25"] > 2 * parts.tokens_read["bm25"]
    effects = {e.measure: e for e in found.effects["bm25"]}
    read = effects[NUMBER_READ]
    assert (read.base, read.changed, read.paired.wins, read.paired.damages) == (0.5, 1.0, 1, 0)
    assert effects["page hit@10"].paired.difference == 0
    text = table(found)
    assert text.startswith("2 questions\n")
    assert "structure:max_tokens=60 | number read | 2 | .500 | 1.000 | +0.500" in " ".join(text.split())


async def test_what_was_asked_is_not_asked_again(tmp_path: Path, filings: list[str]) -> None:
    folder = tmp_path / "run"
    first = await compared(folder, ["structure"], filings, QUESTIONS)
    replies = (folder / "replies.jsonl").read_bytes()
    again = await compared(folder, ["structure"], filings, QUESTIONS)
    assert again == first
    assert (folder / "replies.jsonl").read_bytes() == replies


async def test_what_cannot_be_compared_is_said(tmp_path: Path, filings: list[str]) -> None:
    with pytest.raises(InvalidOptions, match="no chunker 'words'"):
        await compared(tmp_path / "run", ["structure", "words"], filings, QUESTIONS)
    with pytest.raises(UsageError, match="no question has all of its evidence"):
        await compared(tmp_path / "run", ["structure"], filings, QUESTIONS[2:])
    (tmp_path / "filings" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    with pytest.raises(UsageError, match="1 of 2 filings failed"):
        await compared(tmp_path / "run", ["structure"], filings, QUESTIONS)
