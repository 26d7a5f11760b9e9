"""Fixtures of the integration tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.edge_rest import EdgeRest

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 2**30


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder for an index: in memory where there is room, for the engine syncs each write to the disk."""
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _ROOM_BYTES:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
        yield Path(name)


@pytest.fixture
def rest(folder: Path) -> Iterator[EdgeRest]:
    """A Qdrant server's REST routes over the embedded engine."""
    stand_in = EdgeRest(folder)
    yield stand_in
    stand_in.close()
