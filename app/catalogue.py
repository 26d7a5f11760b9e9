"""Which filings a caller may ask about, kept for some seconds so that a question does not list them anew."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.ports import Store
from app.types import Access, Document


@dataclass(slots=True)
class Catalogue:
    """Document records by caller. What another process ingests shows after `fresh_s` seconds at the latest."""

    store: Store
    fresh_s: float = 10.0
    _kept: dict[Access, tuple[float, Sequence[Document]]] = field(default_factory=dict)
    _forgotten: int = 0
    _filled: bool = False

    async def documents(self, access: Access) -> Sequence[Document]:
        """Ordered by id."""
        kept = self._kept.get(access)
        if kept is not None and time.monotonic() - kept[0] < self.fresh_s:
            return kept[1]
        forgotten = self._forgotten
        documents = await self.store.documents(access)
        if forgotten == self._forgotten:
            self._kept[access] = (time.monotonic(), documents)
        return documents

    async def empty(self) -> bool:
        """Whether there is no filing at all, of any tenant. Costs nothing once there was one."""
        self._filled = self._filled or any(d.state == "ready" for d in await self.store.documents())
        return not self._filled

    def forget(self) -> None:
        """What this process has changed shows at once."""
        self._kept.clear()
        self._filled = False
        self._forgotten += 1
