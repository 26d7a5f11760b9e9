"""A virtual environment for each peer, made once from its pinned requirements."""

import hashlib
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from evals.bench.measures import Say
from evals.errors import SubjectError

RUNNERS = Path(__file__).parent / "runners"


def requirements(peer: str) -> Path:
    return RUNNERS / f"{peer}.txt"


def interpreter(peer: Path, pinned: Path, say: Say) -> Path:
    """The Python of the environment in the folder `peer`, made anew where `pinned` has changed. Raises SubjectError.

    What this interpreter has installed (torch, transformers, FastAPI, ...) is seen from there, behind the peer's own
    packages, so that both run on the same libraries and some hundred megabytes are enough.
    """
    folder = peer / "venv"
    python = folder / "bin" / "python"
    stamp = folder / f"ready-{hashlib.sha256(pinned.read_bytes()).hexdigest()[:12]}"
    if stamp.exists():
        return python
    say(f"installing {pinned.stem}'s packages into {folder}")
    venv.create(folder, clear=True)
    ours = sysconfig.get_path("purelib")
    site = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    (Path(site) / "ours.pth").write_text(f"{ours}\n", encoding="utf-8")
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(pinned)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), done.stderr[-300:].strip())
        raise SubjectError(
            f"{pinned.stem}'s packages cannot be installed: {why}. A package index is needed once; "
            f"{sys.executable} -m pip config list shows which is asked. --peers leaves a peer out"
        )
    stamp.touch()
    return python
