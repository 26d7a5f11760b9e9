"""Our reading of PDFs beside other loaders'."""

import sys
from pathlib import Path

import pytest

from evals import loaders
from evals.errors import UsageError
from evals.loading import rows
from tests.ingest.filings import prose, statement, write_pdf

pytestmark = pytest.mark.anyio


def test_a_row_is_one_where_its_words_and_numbers_are_on_one_line() -> None:
    text = """(in millions) 2023 2022
Purchases of equipment $ (1,577) $ (1,373)
Net income | 5,363 | 4,869
Net sales
36,575
35,355
Interest  — 12
In 2023 we sold 12,000 units in 4 regions."""
    assert rows(text) == 4


async def test_what_is_installed_is_measured_on_the_same_files_and_the_rest_is_named(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", statement("acme"), f"{statement('acme')}\n\n{prose('acme')}")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 nothing")
    found, missing = await loaders.run([tmp_path], sys.executable, ["sextant", "sextant-whole", "pymupdf"])
    assert [(one.loader, one.pages, one.failed, one.rows) for one in found] == [
        ("sextant", 2, 1, 8),
        ("sextant-whole", 2, 1, 8),
    ]
    assert missing == [f"pymupdf (pymupdf is not installed for {sys.executable})"]
    assert loaders.table(found).splitlines()[2].startswith("| sextant ")


async def test_no_file_and_no_such_loader_are_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no PDF there"):
        await loaders.run([tmp_path], sys.executable, ["sextant"])
    write_pdf(tmp_path / "a.pdf", "text")
    with pytest.raises(UsageError, match="no loader 'tika'; there are sextant,"):
        await loaders.run([tmp_path], sys.executable, ["tika"])
