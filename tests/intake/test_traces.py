"""After a removal or a replacement no store holds anything that came from the document, or that names it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.ingest.filings import cover, prose, statement, write_pdf
from tests.ingest.test_crash import contents
from tests.intake.serving import ingested, serving

pytestmark = pytest.mark.anyio


def traces(data: Path, *words: str) -> list[str]:
    """Where any of the words is found: in every point of every shard, every row of every table, every kept file."""
    found = [key for key, point in contents(data).items() if any(word in f"{key} {point}" for word in words)]
    for table in data.rglob("*.sqlite"):
        with closing(sqlite3.connect(table)) as connection:
            found += [row for row in connection.iterdump() if any(word in row for word in words)]
    for path in data.rglob("*"):
        kind = path.relative_to(data).parts[0]
        if kind == "jobs":
            continue  # what became of an upload may be told after its document is gone
        held = path.read_bytes() if path.is_file() and kind in ("uploads", "originals") else b""
        if any(word in path.name or word.encode() in held for word in words):
            found.append(str(path))
    return found


async def test_neither_removal_nor_replacement_leaves_a_trace(data: Path, tmp_path: Path) -> None:
    files = {
        name: write_pdf(
            tmp_path / "drawn.pdf", f"{cover(f'{name} Corporation')}\n{statement(name)}", prose(f"{name} again")
        ).read_bytes()
        for name in ("Ombrell", "Saltmarch", "Pellworth")
    }
    async with serving(data, graph=True) as client:
        old = await ingested(client, "annual.pdf", files["Ombrell"])
        other = await ingested(client, "other.pdf", files["Saltmarch"])
        new = await ingested(client, "annual.pdf", files["Pellworth"])
    words = {
        name: [job["document_id"], name] for name, job in (("Ombrell", old), ("Saltmarch", other), ("Pellworth", new))
    }
    look = {name: await asyncio.to_thread(traces, data, *words[name]) for name in words}
    assert look["Ombrell"] == [], "replaced"
    kinds = {found.partition("/")[0] for found in look["Pellworth"]}
    assert kinds >= {"chunks", "pages", "documents", "graph", "figures"}, "what is there is found"
    assert str(data / "originals" / "filings" / new["document_id"]) in look["Pellworth"]
    async with serving(data, graph=True) as client:
        reply = (await client.delete(f"/documents/{other['document_id']}")).json()
    assert reply["removed"].keys() == {"chunks", "pages", "figures", "records"}
    assert min(reply["removed"].values()) > 0
    assert await asyncio.to_thread(traces, data, *words["Saltmarch"]) == []
    assert await asyncio.to_thread(traces, data, *words["Pellworth"]) == look["Pellworth"]
