"""The communities of what one caller may see, kept until the filings change, for they take reading every record."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from anyio import to_thread

from app.graph.communities import Community, communities
from app.ports import Store
from app.types import Document, Entity, Filter, Relation

_KEPT = 16


@dataclass(frozen=True, slots=True)
class Overview:
    communities: tuple[Community, ...]
    read: int
    """Records read for it this time: all there are, or one for each community that was kept."""
    fresh: bool


@dataclass(slots=True)
class Overviews:
    """By filter, access included, so that none is ever shown to another caller; the least used go first.

    Nothing of a community is stored: it is derived from the records that are visible, so that an invisible filing
    changes neither its members nor its counts, and a deleted one leaves none behind.
    """

    store: Store
    _kept: OrderedDict[Filter, tuple[frozenset[tuple[str, str]], tuple[Community, ...]]] = field(
        default_factory=OrderedDict
    )

    async def of(self, where: Filter, documents: Sequence[Document]) -> Overview:
        """`documents` are those that the caller sees now."""
        version = frozenset((document.id, document.ingested_at) for document in documents)
        kept = self._kept.get(where)
        if kept is not None and kept[0] == version:
            self._kept.move_to_end(where)
            return Overview(kept[1], len(kept[1]), fresh=False)
        entities = await self.store.records(Entity, where, {})
        relations = await self.store.records(Relation, where, {})
        found = await to_thread.run_sync(communities, entities, relations)
        self._kept[where] = (version, found)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return Overview(found, len(entities) + len(relations), fresh=True)
