"""Two strategies over the same small filings: each its own index, the same questions, paired."""

from pathlib import Path

import pytest

from app import opening
from app.errors import InvalidOptions
from app.settings import Settings
from evals import chunking
from evals.errors import UsageError
from evals.questions import Evidence, Question
from evals.subjects import parse_system
from ingest import commands
from tests.fakes import LetterEmbedder
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


@pytest.fixture(autouse=True)
def _letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embeds by letters, in ingestion and service."""

    class Closable(LetterEmbedder):
        def close(self) -> None:
            """Nothing to close."""

    async def letters(settings: Settings) -> LetterEmbedder:
        return Closable()

    for module in (opening, commands):
        monkeypatch.setattr(module, "open_embedder", letters)
    monkeypatch.setenv("RERANKER_MODEL", "none")


@pytest.fixture
def filings(tmp_path: Path) -> list[str]:
    return [str(write_pdf(tmp_path / "filings" / "timber.pdf", TABLE, "We plant trees.").parent)]


async def test_a_strategy_that_reads_the_whole_table_reads_its_last_row(tmp_path: Path, filings: list[str]) -> None:
    specs = ["structure:max_tokens=60", "structure:max_tokens=60:tables=whole"]
    found = await chunking.run(specs, filings, QUESTIONS, [BM25], tmp_path / "run", k=1, parallel=1)
    assert found.questions == 2
    parts, whole = found.variants
    assert [v.chunker for v in found.variants] == specs
    assert parts.chunks == whole.chunks > 3
    assert whole.tokens_read["bm25"] > 2 * parts.tokens_read["bm25"]
    effects = {e.measure: e for e in found.effects["bm25"]}
    read = effects[chunking.NUMBER_READ]
    assert (read.base, read.changed, read.paired.wins, read.paired.damages) == (0.5, 1.0, 1, 0)
    assert effects["page hit@10"].paired.difference == 0
    text = chunking.table(found)
    assert text.startswith("2 questions\n")
    assert "structure:max_tokens=60:tables=whole | number read | 2 | .500 | 1.000 | +0.500" in " ".join(text.split())


async def test_what_was_asked_is_not_asked_again(tmp_path: Path, filings: list[str]) -> None:
    folder = tmp_path / "run"
    first = await chunking.run(["structure"], filings, QUESTIONS, [BM25], folder, k=1, parallel=1)
    replies = (folder / "replies.jsonl").read_bytes()
    again = await chunking.run(["structure"], filings, QUESTIONS, [BM25], folder, k=1, parallel=1)
    assert again == first
    assert (folder / "replies.jsonl").read_bytes() == replies


async def test_what_cannot_be_compared_is_said(tmp_path: Path, filings: list[str]) -> None:
    with pytest.raises(InvalidOptions, match="no chunker 'words'"):
        await chunking.run(["structure", "words"], filings, QUESTIONS, [BM25], tmp_path, k=1, parallel=1)
    with pytest.raises(UsageError, match="no question has all of its evidence"):
        await chunking.run(["structure"], filings, QUESTIONS[2:], [BM25], tmp_path, k=1, parallel=1)
    (tmp_path / "filings" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    with pytest.raises(UsageError, match="1 of 2 filings failed"):
        await chunking.run(["structure"], filings, QUESTIONS, [BM25], tmp_path, k=1, parallel=1)
