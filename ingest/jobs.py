"""Jobs on disk, one JSON file each, so that neither a restart nor a crash loses one."""

import asyncio
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from app.types import Job

log = logging.getLogger("sextant.jobs")
_JOB = TypeAdapter(Job)
_KEPT = 1000
"""Finished jobs that are remembered."""


@dataclass(slots=True)
class Jobs:
    """All jobs of one collection, in memory too. One process owns the folder."""

    folder: Path
    _all: dict[str, Job] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> "Jobs":
        """Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        jobs = cls(folder)
        for path in folder.glob("*.json"):
            try:
                job = _JOB.validate_json(path.read_bytes())
            except ValueError:
                log.warning("not a job", extra={"fields": {"path": str(path)}})
                continue
            jobs._all[job.id] = job
        return jobs

    def get(self, job_id: str) -> Job | None:
        return self._all.get(job_id)

    def __iter__(self) -> Iterator[Job]:
        """In the order they came."""
        return iter(sorted(self._all.values(), key=lambda job: (job.created_at, job.id)))

    def unfinished(self) -> list[Job]:
        """In the order they came."""
        return [job for job in self if job.finished_at is None]

    async def put(self, job: Job) -> None:
        """Durable when it returns: the job as it is now or, after a crash on the way, as it was before."""
        await asyncio.to_thread(self._write, job)
        self._all[job.id] = job
        finished = [each for each in self if each.finished_at is not None]
        for old in finished[: max(0, len(finished) - _KEPT)]:
            del self._all[old.id]
            self._path(old.id).unlink(missing_ok=True)

    def _write(self, job: Job) -> None:
        draft = self._path(job.id).with_suffix(".new")
        with draft.open("wb") as file:
            file.write(orjson.dumps(job))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path(job.id))

    def _path(self, job_id: str) -> Path:
        return self.folder / f"{job_id}.json"
