"""What models made of a content, kept in memory: vectors of questions, cross-encoder scores, generations.

A key is a digest of who asks, the model and the whole content. The rights belong to it although the value depends on
the content alone: otherwise a hit, and the price that it spares, would tell one tenant what another one has asked.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic, TypeVar

from app.types import Access, FloatArray, Generation, Prompt

V = TypeVar("V")


class Cache(Generic[V]):
    """At most `most` values by key, those used longest ago forgotten first; 0 keeps nothing."""

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self._values: OrderedDict[bytes, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: bytes) -> V | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: bytes, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self.most:
            self._values.popitem(last=False)

    async def filled(
        self, keys: Sequence[bytes], make: Callable[[list[int]], Awaitable[Iterable[V]]]
    ) -> tuple[list[V], int]:
        """A value per key, and how many were known; `make` is given the positions of the others, first is 0."""
        found = [self.get(key) for key in keys]
        missing = [i for i, value in enumerate(found) if value is None]
        for i, value in zip(missing, await make(missing) if missing else (), strict=True):
            found[i] = value
            self.put(keys[i], value)
        return [value for value in found if value is not None], len(keys) - len(missing)


@dataclass(frozen=True, slots=True)
class Caches:
    """Of one service; off unless given a size."""

    queries: Cache[FloatArray] = field(default_factory=Cache)
    grades: Cache[float] = field(default_factory=Cache)
    generations: Cache[Generation] = field(default_factory=Cache)


def cache_key(access: Access, model: str, *content: Any) -> bytes:
    """Of what `repr` tells apart."""
    told = repr((access.tenant, sorted(access.groups), model, content))
    return sha256(told.encode(errors="surrogatepass")).digest()


def prompt_key(access: Access, model: str, prompt: Prompt) -> bytes | None:
    """None where every call is to give something else (temperature above 0).

    The passages are part of it, as text: an answer outlives no change of them, and none is given for others.
    """
    if prompt.temperature > 0:
        return None
    passages = [(hit.chunk.id, hit.chunk.searchable) for hit in prompt.passages]
    schema = prompt.json_schema and sorted(prompt.json_schema.items())
    asked = (prompt.purpose, prompt.messages, prompt.question, passages, prompt.max_tokens, schema, prompt.logprobs)
    return cache_key(access, model, *asked, *filter(None, [prompt.picture, prompt.calling]))
