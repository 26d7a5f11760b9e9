"""Which build of a collection its name stands for: a small file in the data directory, replaced in one step.

Of an embedded collection that is the truth; of a server's, whose aliases are it, this says whose figures are read.
"""

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from app.errors import StoreUnavailable


@dataclass(frozen=True, slots=True)
class Versions:
    """Numbers of builds; the first is 1, and its folder bears the collection's own name."""

    current: int = 1
    previous: int | None = None
    """What a rollback goes back to."""


def name_of(collection: str, version: int) -> str:
    return collection if version == 1 else f"{collection}@{version}"


def read_versions(data_dir: Path, collection: str) -> Versions:
    """Raises StoreUnavailable where the file is damaged."""
    path = _file(data_dir, collection)
    try:
        return Versions(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return Versions()
    except (ValueError, TypeError) as error:
        raise StoreUnavailable(f"{path} is damaged: {error}") from error


def write_versions(data_dir: Path, collection: str, versions: Versions) -> None:
    """After a crash on the way the file is as it was before, or as it is now."""
    path = _file(data_dir, collection)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(asdict(versions), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def builds(data_dir: Path, collection: str) -> list[int]:
    """Numbers of those that there are, whole or not."""
    pattern = re.compile(rf"{re.escape(collection)}(?:@(\d+))?")
    names = [path.name for path in (data_dir / "index").glob(f"{collection}*") if path.is_dir()]
    return sorted(int(found[1] or 1) for found in map(pattern.fullmatch, names) if found)


def remove_build(data_dir: Path, collection: str, version: int) -> None:
    """Its folder and its figures."""
    name = name_of(collection, version)
    for path in (data_dir / "figures").glob(f"{name}.sqlite*"):
        path.unlink()
    shutil.rmtree(data_dir / "index" / name, ignore_errors=True)


def _file(data_dir: Path, collection: str) -> Path:
    return data_dir / "index" / f"{collection}.json"
