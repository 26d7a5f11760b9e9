"""Which filings the index holds, and what that makes of a file's bytes."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from app.types import Document


class Registry:
    """The document records of every tenant, kept up to date during a batch, and the sources as they are now."""

    def __init__(self, documents: Iterable[Document], tenant: str) -> None:
        self._tenant = tenant
        self._documents = {document.id: document for document in documents}
        self._by_content: dict[str, set[str]] = {}
        self._by_source: dict[str, set[str]] = {}
        for document in self._documents.values():
            self._index(document)
        self.now: dict[str, str] = {}
        """SHA-256 by source URI, of the sources that this batch has read so far."""

    def _index(self, document: Document) -> None:
        if document.meta.tenant == self._tenant:
            self._by_content.setdefault(document.sha256, set()).add(document.id)
            self._by_source.setdefault(document.meta.source, set()).add(document.id)

    def put(self, document: Document) -> None:
        self.remove(document.id)
        self._documents[document.id] = document
        self._index(document)

    def remove(self, document_id: str) -> None:
        self._documents.pop(document_id, None)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._documents

    def _known(self, ids: Iterable[str]) -> list[Document]:
        return [self._documents[each] for each in sorted(ids) if each in self._documents]

    def holding(self, sha256: str) -> Document | None:
        """The finished record of this content, unless its source is known to hold other content now."""
        for record in self._known(self._by_content.get(sha256, ())):
            if record.state == "ready" and self.now.get(record.meta.source, sha256) == sha256:
                return record
        return None

    def replaced_by(self, source: str, document_id: str) -> list[Document]:
        """Finished records of the same source other than this one."""
        return [
            record
            for record in self._known(self._by_source.get(source, ()))
            if record.id != document_id and record.state == "ready" and record.meta.source == source
        ]

    def acl(self, source: str, sha256: str) -> tuple[str, ...] | None:
        """The groups of the same content or else of the same source, finished or not: an update must not publish."""
        known = self._known(self._by_content.get(sha256, ())) or self._known(self._by_source.get(source, ()))
        return known[0].meta.acl if known else None

    def replacing(self) -> list[Document]:
        """Finished records, of every tenant, of which what they replace was not yet removed."""
        return [record for record in self._documents.values() if record.replaces and record.state == "ready"]

    def unfinished(self, older_than: timedelta, now: datetime) -> list[Document]:
        """Records that a run left behind when it died, of every tenant."""
        return [
            record
            for record in self._documents.values()
            if record.state == "ingesting"
            and (not record.ingested_at or now - datetime.fromisoformat(record.ingested_at) >= older_than)
        ]

    def superseded(self) -> Iterator[Document]:
        """Finished records of a source that has a newer finished one: the present content's, else the latest."""
        for source, ids in self._by_source.items():
            records = [r for r in self._known(ids) if r.state == "ready" and r.meta.source == source]
            current = self.holding(self.now[source]) if source in self.now else None
            if source not in self.now and records:
                current = max(records, key=lambda record: record.ingested_at)
            if current is not None:
                yield from (record for record in records if record.id != current.id)
