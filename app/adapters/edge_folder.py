"""The folder of an embedded index: one owner, a stamp of what it was built with, shards that are whole or not there."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import qdrant_edge as edge
from pydantic import TypeAdapter

from app.adapters import graph_payload as gp
from app.adapters import payload as pl
from app.errors import SextantError, StoreLocked, StoreUnavailable
from app.types import IndexStamp

_NEW_INDEX_BYTES = 256 * 2**20
"""What a new shard needs at once."""
_STAMP = TypeAdapter(IndexStamp)
_SHARDS = ("chunks", "pages", "documents")
"""In the order in which a new folder gets them."""
GRAPH = "graph"
"""A shard that a folder of an older version lacks and gets empty."""
_INDEX_TYPES: Mapping[pl.IndexType, Any] = {
    "tenant": edge.KeywordIndexParams(is_tenant=True),
    "keyword": edge.PayloadSchemaType.Keyword,
    "integer": edge.PayloadSchemaType.Integer,
    "datetime": edge.PayloadSchemaType.Datetime,
}


@contextmanager
def engine_errors(directory: Path) -> Iterator[None]:
    """The engine raises bare Exception for its own failures, ValueError and TypeError for the caller's."""
    try:
        yield
    except (SextantError, ValueError, TypeError):
        raise
    except Exception as exc:
        raise StoreUnavailable(f"the index at {directory} failed: {exc}") from exc


@contextmanager
def file_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreUnavailable(f"the index at {directory} cannot be opened: {exc}") from exc


def take_lock(directory: Path) -> int:
    """A file descriptor that holds the lock; the system frees it when the process ends, however it ends."""
    lock = os.open(directory / "owner.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(lock, 20).decode("ascii", "replace") or "unknown"
        os.close(lock)
        raise StoreLocked(
            f"the index at {directory} is open in process {owner}. Stop that process, "
            "or run a Qdrant server (QDRANT_URL), which many processes may share."
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode("ascii"), 0)
    return lock


def need_room(directory: Path, least: int) -> None:
    """The engine writes through memory maps, where a full disk kills the process (SIGBUS): refuse well before."""
    free = shutil.disk_usage(directory).free
    if free < least:
        raise StoreUnavailable(
            f"the disk of {directory} has {free / 2**20:.0f} MiB left and this write needs {least / 2**20:.0f} free; "
            "what is stored stays readable, make room and repeat"
        )


def settled_stamp(directory: Path, stamp: IndexStamp) -> IndexStamp:
    """The folder's stamp, checked; in a new folder it is written first, complete or not at all."""
    path = directory / "stamp.json"
    if path.exists():
        try:
            found = _STAMP.validate_json(path.read_bytes(), strict=True)
        except ValueError as exc:
            raise StoreUnavailable(f"{path} is damaged; restore it or ingest into another folder") from exc
        pl.check_stamp(found, stamp, str(directory))
        return found
    draft = path.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(asdict(stamp), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return stamp


def check_whole(directory: Path, create: bool) -> None:
    """A shard that is gone must not come back empty; only a new folder lacks some, and never without the last one."""
    missing = [name for name in _SHARDS if not (directory / name).exists()]
    if missing and (not create or _SHARDS[-1] not in missing):
        raise StoreUnavailable(
            f"the index at {directory} lacks {', '.join(missing)}; restore it, or remove what is left and ingest again"
        )


def designs(stamp: IndexStamp) -> dict[str, tuple[edge.EdgeConfig, Mapping[str, pl.IndexType]]]:
    """Configuration and payload indexes by shard.

    All but chunks are payload alone, but the engine wants a vector configured: a sparse one that no point has.
    """
    never_graph = edge.EdgeOptimizersConfig(indexing_threshold=0)
    chunks = edge.EdgeConfig(
        vectors={pl.DENSE: edge.EdgeVectorParams(size=stamp.dimensions, distance=edge.Distance.Cosine)},
        sparse_vectors={
            "bm25": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf),
            "splade": edge.EdgeSparseVectorParams(),
        },
        optimizers=never_graph,
    )
    plain = edge.EdgeConfig(sparse_vectors={"none": edge.EdgeSparseVectorParams()}, optimizers=never_graph)
    of_shards = ((chunks, pl.CHUNK_INDEXES), (plain, pl.PAGE_INDEXES), (plain, pl.DOCUMENT_INDEXES))
    return {**dict(zip(_SHARDS, of_shards, strict=True)), GRAPH: (plain, gp.RECORD_INDEXES)}


def open_shard(path: Path, design: tuple[edge.EdgeConfig, Mapping[str, pl.IndexType]]) -> edge.EdgeShard:
    """Load a shard, made complete with its indexes under another name first where there is none."""
    with engine_errors(path):
        if not path.exists():
            need_room(path.parent, _NEW_INDEX_BYTES)
            config, indexes = design
            draft = path.with_suffix(".new")
            shutil.rmtree(draft, ignore_errors=True)
            shard = edge.EdgeShard.create(str(draft), config)
            for name, kind in indexes.items():
                shard.update(edge.UpdateOperation.create_field_index(name, _INDEX_TYPES[kind]))
            shard.flush()
            shard.close()
            draft.rename(path)
        return edge.EdgeShard.load(str(path))
