"""The unit of training: a query, the passage that answers it, and passages that look as if they did."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Group:
    source: str
    """Where it is from: rows, documents of a named set, or a source of labelled pairs."""
    query: str
    positive: str
    negatives: tuple[str, ...]
    """The hardest first."""


def held_out(company: str) -> bool:
    """Half of all companies, by the hash of the name: their filings are never trained on, only measured."""
    return sha256(company.encode()).digest()[0] % 2 == 1


def write(path: Path, groups: Iterable[Group]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(asdict(group)) + "\n" for group in groups), "utf-8")


def read(path: Path) -> list[Group]:
    rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return [Group(row["source"], row["query"], row["positive"], tuple(row["negatives"])) for row in rows]
