"""External search over a folder of text files: a stand-in for a web search, and a pattern for one."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi

from app.adapters.bm25 import query_tokens, tokens
from app.errors import Unavailable
from app.types import External

_LONGEST = 600
"""Characters of a passage."""


@dataclass(slots=True)
class FolderSearch:
    """BM25 over the paragraphs of `*.txt` and `*.md`, read at the first question."""

    folder: Path
    _passages: list[tuple[str, str]] | None = None
    _index: BM25Okapi | None = None
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def search(self, query: str, limit: int) -> list[External]:
        """Best first; a paragraph without a term of the query is none."""
        async with self._reading:
            if self._passages is None:
                self._passages = await asyncio.to_thread(self._read)
                self._index = BM25Okapi([tokens(text) for _, text in self._passages]) if self._passages else None
        if self._index is None:
            return []
        terms = query_tokens(query)
        scores = np.asarray(self._index.get_scores(terms))
        found = [int(i) for i in np.argsort(-scores, kind="stable") if set(terms) & set(tokens(self._passages[i][1]))]
        return [External(*self._passages[i], float(scores[i])) for i in found[:limit]]

    def _read(self) -> list[tuple[str, str]]:
        try:
            paths = sorted(p for p in self.folder.iterdir() if p.suffix in (".txt", ".md"))
            texts = [(path.name, path.read_text("utf-8", errors="replace")) for path in paths]
        except OSError as error:
            raise Unavailable(f"EXTERNAL_DIR {self.folder} cannot be read: {error.strerror}") from error
        return [(name, part.strip()[:_LONGEST]) for name, text in texts for part in text.split("\n\n") if part.strip()]
