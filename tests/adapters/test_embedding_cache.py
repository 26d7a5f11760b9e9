"""The cache of passages' vectors: each text is embedded once, whatever happens to the file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from app.adapters.embedding_cache import CachedEmbedder
from app.errors import Unavailable
from app.types import FloatArray
from tests.fakes import LetterEmbedder

pytestmark = pytest.mark.anyio


class Counting(LetterEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.closed = False

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        self.seen += texts
        return await super().passages(texts)

    def close(self) -> None:
        self.closed = True


async def test_a_text_is_embedded_once_even_by_another_process_to_come(tmp_path: Path) -> None:
    first = Counting()
    cache = CachedEmbedder(first, tmp_path / "cache" / "vectors.sqlite")
    made = await cache.passages(["profit", "debt", "profit"])
    np.testing.assert_array_equal(made, await LetterEmbedder().passages(["profit", "debt", "profit"]))
    cache.close()
    second = Counting()
    again = CachedEmbedder(second, tmp_path / "cache" / "vectors.sqlite")
    made = await again.passages(["debt", "loss"])
    np.testing.assert_array_equal(made, await LetterEmbedder().passages(["debt", "loss"]))
    again.close()
    assert (first.seen, second.seen) == (["profit", "debt"], ["loss"])
    assert (cache.hits, cache.misses) == (1, 2)
    assert (again.hits, again.misses) == (1, 1)
    assert first.closed


async def test_another_model_shares_nothing(tmp_path: Path) -> None:
    cache = CachedEmbedder(Counting(), tmp_path / "vectors.sqlite")
    await cache.passages(["profit"])
    other = Counting()
    other.name = "another"
    await CachedEmbedder(other, tmp_path / "vectors.sqlite").passages(["profit"])
    assert other.seen == ["profit"]


async def test_nothing_to_embed(tmp_path: Path) -> None:
    assert (await CachedEmbedder(Counting(), tmp_path / "v.sqlite").passages([])).shape == (0, 26)


async def test_a_file_that_is_no_database_is_refused_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "v.sqlite").write_text("not a database, but long enough to be read as a header of one" * 20)
    with pytest.raises(Unavailable, match="EMBEDDING_CACHE"):
        CachedEmbedder(Counting(), tmp_path / "v.sqlite")
