"""The kept list of filings: fresh enough, and never older than what this process did itself."""

import asyncio

import pytest

from app.catalogue import Catalogue
from app.types import Access, Document
from tests.fakes import META, STAMP, FakeStore

pytestmark = pytest.mark.anyio
ACCESS = Access()


async def add(store: FakeStore, document_id: str) -> None:
    await store.put_document(Document(document_id, "0" * 64, META, 1, 1))


async def ids(catalogue: Catalogue) -> list[str]:
    return [document.id for document in await catalogue.documents(ACCESS)]


async def test_a_list_is_kept_until_it_is_forgotten() -> None:
    store = FakeStore(STAMP)
    catalogue = Catalogue(store)
    await add(store, "a")
    assert await ids(catalogue) == ["a"]
    await add(store, "b")
    assert await ids(catalogue) == ["a"]
    catalogue.forget()
    assert await ids(catalogue) == ["a", "b"]


class SlowStore(FakeStore):
    """Answers with what was there when it was asked."""

    async def documents(self, access: Access | None = None) -> list[Document]:
        found = await super().documents(access)
        await asyncio.sleep(0.01)
        return found


async def test_a_list_that_was_under_way_when_it_was_forgotten_is_not_kept() -> None:
    store = SlowStore(STAMP)
    catalogue = Catalogue(store)
    asking = asyncio.create_task(ids(catalogue))
    await asyncio.sleep(0)
    await add(store, "a")
    catalogue.forget()
    assert await asking == []
    assert await ids(catalogue) == ["a"]
