"""Builds of a collection on a Qdrant server, and which of them its name stands for: aliases, switched in one call.

Build `n` of `filings` is the collections `filings-v<n>`, `filings-v<n>-pages` and so on. The aliases `filings...` point
to the one in use; `filings@previous`, a name that no collection of ours can have, to the one that a rollback goes
back to.
"""

import math
import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from qdrant_client import AsyncQdrantClient, models

from app.adapters.qdrant_server import SUFFIXES, connect, server_errors
from app.errors import StoreUnavailable
from app.versions import Versions


class ServerBuilds:
    """The builds of one collection. Raises StoreUnavailable, Timeout, Busy."""

    def __init__(self, client: AsyncQdrantClient, url: str, collection: str) -> None:
        self._client = client
        self._url = url
        self._collection = collection
        self._previous = f"{collection}@previous"

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, api_key: str | None, timeout_s: float, collection: str
    ) -> AsyncIterator["ServerBuilds"]:
        client = connect(url, api_key, math.ceil(timeout_s))
        try:
            yield cls(client, url, collection)
        finally:
            await client.close()

    async def read(self) -> Versions:
        aliases = await self._aliases()
        target = aliases.get(self._collection, f"{self._collection}-v1")
        if (current := self._number(target)) is None:
            raise StoreUnavailable(
                f"{self._collection!r} at {self._url} is an alias of {target!r}, which is no build of ours"
            )
        return Versions(current, self._number(aliases.get(self._previous, "")))

    async def existing(self) -> list[int]:
        """Numbers of those that there are, whole or not."""
        return sorted({number for name in await self._names() if (number := self._number(name)) is not None})

    async def switch(self, to: Versions) -> None:
        """All aliases in one call, which the server does wholly or not at all."""
        aliases, names = await self._aliases(), await self._names()
        targets = {self._collection + suffix: f"{self._collection}-v{to.current}{suffix}" for suffix in SUFFIXES}
        if to.previous:
            targets[self._previous] = f"{self._collection}-v{to.previous}"
        changed = {*targets, self._previous} & aliases.keys()
        removed = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name)) for name in sorted(changed)
        ]
        made = [
            models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=target, alias_name=name))
            for name, target in targets.items()
            if target in names  # one of an older version has no graph
        ]
        with server_errors(self._url):
            await self._client.update_collection_aliases([*removed, *made])

    async def remove(self, number: int) -> None:
        names = await self._names()
        for suffix in SUFFIXES:
            if (name := f"{self._collection}-v{number}{suffix}") in names:
                with server_errors(self._url):
                    await self._client.delete_collection(name)

    def _number(self, name: str) -> int | None:
        suffixes = "|".join(map(re.escape, SUFFIXES))
        found = re.fullmatch(rf"{re.escape(self._collection)}-v(\d+)(?:{suffixes})", name)
        return int(found[1]) if found else None

    async def _names(self) -> Collection[str]:
        with server_errors(self._url):
            return {each.name for each in (await self._client.get_collections()).collections}

    async def _aliases(self) -> dict[str, str]:
        """Collections by alias."""
        with server_errors(self._url):
            return {each.alias_name: each.collection_name for each in (await self._client.get_aliases()).aliases}
