"""An empty index for every test, copied: making one takes seconds on a busy disk."""

import subprocess
from pathlib import Path

import pytest

from app.adapters.qdrant_edge import EdgeStore
from tests.ingest.filings import stamp


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    EdgeStore.open(folder / "data" / "index" / "filings", stamp()).close()
    return folder / "data"


@pytest.fixture
def data(empty: Path, tmp_path: Path) -> Path:
    """Of one test."""
    # The engine's files are sparse: a plain copy would write a gigabyte of zeros.
    subprocess.run(["cp", "-r", "--sparse=always", empty, tmp_path / "data"], check=True)
    return tmp_path / "data"
