"""Vectors of passages kept on disk by content and model, so that the same text is embedded once."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import xxhash
from anyio import CapacityLimiter, to_thread

from app.errors import Unavailable
from app.ports import Embedder
from app.types import FloatArray

_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
_AT_ONCE = 500
"""Keys asked for in one statement: engines allow 999 parameters at least."""


class ClosableEmbedder(Embedder, Protocol):
    """An embedder that owns something, and gives vectors of tokens where its model does."""

    async def tokens(self, texts: Sequence[str]) -> list[FloatArray]: ...

    def close(self) -> None: ...


class CachedEmbedder:
    """Any embedder behind a SQLite file, which several processes may share.

    Only passages are kept: questions are private and short. The file holds hashes and vectors, no text; deleting it
    costs time and nothing else.
    """

    def __init__(self, inner: ClosableEmbedder, file: Path) -> None:
        """Raises Unavailable where the file cannot be opened."""
        self.name = inner.name
        self.dimensions = inner.dimensions
        self.hits = 0
        self.misses = 0
        self._inner = inner
        self._one_at_a_time = CapacityLimiter(1)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(file, timeout=30, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise Unavailable(f"the embedding cache {file} cannot be opened: {error}; see EMBEDDING_CACHE") from error

    async def queries(self, texts: Sequence[str]) -> FloatArray:
        return await self._inner.queries(texts)

    async def tokens(self, texts: Sequence[str]) -> list[FloatArray]:
        return await self._inner.tokens(texts)

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        keys = [self._key(text) for text in texts]
        known = await to_thread.run_sync(self._read, keys, limiter=self._one_at_a_time)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        self.hits, self.misses = self.hits + len(keys) - len(missing), self.misses + len(missing)
        if missing:
            made = await self._inner.passages(list(missing.values()))
            fresh = dict(zip(missing, made, strict=True))
            await to_thread.run_sync(self._write, fresh, limiter=self._one_at_a_time)
            known |= fresh
        return np.stack([known[key] for key in keys]) if keys else np.empty((0, self.dimensions), np.float32)

    def _key(self, text: str) -> bytes:
        return xxhash.xxh3_128_digest(f"{self.name}\0{self.dimensions}\0{text}".encode(errors="surrogatepass"))

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """A file that fails is a cache without the key."""
        found: dict[bytes, FloatArray] = {}
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            try:
                rows = self._database.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some)
                vectors = {key: np.frombuffer(blob, np.float32) for key, blob in rows}
            except sqlite3.Error:
                return found
            found |= {key: vector for key, vector in vectors.items() if len(vector) == self.dimensions}
        return found

    def _write(self, vectors: dict[bytes, FloatArray]) -> None:
        rows = [(key, np.ascontiguousarray(vector, np.float32).tobytes()) for key, vector in vectors.items()]
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            self._database.execute("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def close(self) -> None:
        self._inner.close()
        self._database.close()
