"""The builds of a collection, whichever engine keeps them: which is in use, which there are, switching, removing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from app.settings import Settings
from app.versions import Versions, builds, read_versions, remove_build, write_versions


class Builds(Protocol):
    """Raises StoreUnavailable."""

    async def read(self) -> Versions: ...

    async def existing(self) -> list[int]:
        """Numbers of those that there are, whole or not."""

    async def switch(self, to: Versions) -> None:
        """Wholly or not at all."""

    async def remove(self, number: int) -> None: ...


@dataclass(frozen=True, slots=True)
class EmbeddedBuilds:
    """Folders below the data directory."""

    settings: Settings

    async def read(self) -> Versions:
        return read_versions(self.settings.data_dir, self.settings.collection)

    async def existing(self) -> list[int]:
        return builds(self.settings.data_dir, self.settings.collection)

    async def switch(self, to: Versions) -> None:
        write_versions(self.settings.data_dir, self.settings.collection, to)

    async def remove(self, number: int) -> None:
        await asyncio.to_thread(remove_build, self.settings.data_dir, self.settings.collection, number)


@dataclass(frozen=True, slots=True)
class SharedBuilds:
    """A server's, with their figures in the data directory of whoever builds."""

    server: Builds
    here: EmbeddedBuilds

    async def read(self) -> Versions:
        """Also mends what a switch that was killed between its two halves has left."""
        versions = await self.server.read()
        if await self.here.read() != versions:
            await self.here.switch(versions)
        return versions

    async def existing(self) -> list[int]:
        return await self.server.existing()

    async def switch(self, to: Versions) -> None:
        await self.server.switch(to)
        await self.here.switch(to)

    async def remove(self, number: int) -> None:
        await self.server.remove(number)
        await self.here.remove(number)


@asynccontextmanager
async def open_builds(settings: Settings) -> AsyncIterator[Builds]:
    """Those of the collection that the settings name."""
    here = EmbeddedBuilds(settings)
    if not settings.qdrant_url:
        yield here
        return
    from app.adapters.qdrant_builds import ServerBuilds

    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    opening = ServerBuilds.open(settings.qdrant_url, key, settings.qdrant_timeout_s, settings.collection)
    async with opening as server:
        yield SharedBuilds(server, here)
