"""Builds the training groups from an index and a folder of retrieval sets."""

import random
from collections import Counter
from pathlib import Path

from app.adapters.bm25 import Bm25Encoder
from app.opening import any_stamp, open_embedder, open_store
from app.settings import Settings, read_settings
from evals.training import groups
from evals.training.filings import row_groups
from evals.training.sets import document_groups, labelled_groups

_DOCUMENTS = (
    ("financerag-finqa", "derived_pairs_dev.jsonl", 350),
    ("financerag-tatqa", "train_pairs_tatqa_dev.jsonl", 350),
)
_LABELLED = {"tatqa-dev": 250, "hotpot-train": 100, "trecqa-train": 60}
"""MuSiQue's labelled pairs are left out: their queries are those of the set it is measured on."""
_PER_FILING = 90


async def build(data_dir: Path, sets: Path, out: Path, seed: int) -> Counter[str]:
    """Writes `out`, a shuffled JSONL file of groups; the count of each source."""
    rng = random.Random(seed)
    settings = read_settings(data_dir=data_dir)
    found = await _from_filings(settings, rng)
    for name, pairs, limit in _DOCUMENTS:
        found += document_groups(sets / name, pairs, rng, limit)
    found += labelled_groups(sets / "train-pairs" / "pairs.jsonl", rng, _LABELLED)
    found = [group for group in found if group.negatives]
    rng.shuffle(found)
    groups.write(out, found)
    return Counter(group.source for group in found)


async def _from_filings(settings: Settings, rng: random.Random) -> list[groups.Group]:
    embedder = await open_embedder(settings)
    try:
        async with open_store(settings, any_stamp(settings), create=False) as store:
            return await row_groups(store, embedder, Bm25Encoder(), rng, _PER_FILING)
    finally:
        embedder.close()
