"""One loader over some PDFs, in a process of its own and for whichever Python has it: what it gives, how fast.

Started by evals.loaders; imports nothing of ours but in its own loaders.
"""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

Load: TypeAlias = Callable[[Path], list[str]]
"""From a file to the text of each page."""

NUMBER = re.compile(r"\d[\d,.]*")
_CELL = re.compile(r"\d[\d,.]*|[-–—]")
_MARKS = str.maketrans(dict.fromkeys("$€£%|()", " "))


def pypdf() -> Load:
    from pypdf import PdfReader

    return lambda path: [page.extract_text() for page in PdfReader(path).pages]


def pypdf_layout() -> Load:
    from pypdf import PdfReader

    return lambda path: [page.extract_text(extraction_mode="layout") for page in PdfReader(path).pages]


def pdfplumber() -> Load:
    import pdfplumber

    def load(path: Path) -> list[str]:
        texts = []
        with pdfplumber.open(path) as pdf:
            for page in pdf.pages:
                texts.append(page.extract_text())
                page.close()
        return texts

    return load


def pymupdf() -> Load:
    import pymupdf

    return lambda path: [page.get_text("text", sort=True) for page in pymupdf.open(path)]


def sextant() -> Load:
    """Text with the place of every word, no more; pictures stay unread, as the others leave them."""
    from ingest.formats.reading import read_filing
    from ingest.formats.scans import Ocr

    return lambda path: [page.text for page in read_filing(path, max_pages=5000, ocr=Ocr("off")).pages]


def sextant_whole() -> Load:
    """All that ingestion does before the model: tables, sections, metadata, figures, names and relations, chunks."""
    from tempfile import TemporaryDirectory

    from ingest.chunking import StructureChunker
    from ingest.parsing import Job, parse
    from ingest.sources import hash_file

    def load(path: Path) -> list[str]:
        with TemporaryDirectory() as folder:
            who = (path.stem, path.stem, path.as_uri(), "default", ("public",))
            job = Job(path, hash_file(path), *who, StructureChunker(), 5000, Path(folder), graph=True, ocr="off")
            return [page.text for batch in parse(job).pages() for page in batch]

    return load


LOADERS: dict[str, Callable[[], Load]] = {
    "sextant": sextant,
    "sextant-whole": sextant_whole,
    "pymupdf": pymupdf,
    "pypdf": pypdf,
    "pypdf-layout": pypdf_layout,
    "pdfplumber": pdfplumber,
}


def rows(page: str) -> int:
    """Lines that begin with words and end with two numbers or more: rows of tables that are still one."""
    lines = [line.translate(_MARKS).split() for line in page.splitlines()]
    return sum(len(words) > 2 and words[0][:1].isalpha() and all(map(_CELL.fullmatch, words[-2:])) for words in lines)


def main(name: str, *files: str) -> None:
    """Prints one JSON object; with `missing` alone where the loader is not installed here."""
    try:
        load = LOADERS[name]()
    except ImportError as error:
        print(json.dumps({"missing": error.name or name}))  # noqa: T201
        return
    pages: list[str] = []
    failed = 0
    began, busy = time.perf_counter(), time.process_time()
    for file in files:
        try:
            pages += load(Path(file))
        except Exception:  # noqa: BLE001 - every loader raises errors of its own
            failed += 1
    cpu, wall = time.process_time() - busy, time.perf_counter() - began
    whole, numbers = sum(map(rows, pages)), sum(len(NUMBER.findall(page)) for page in pages)
    found = {"pages": len(pages), "failed": failed, "cpu_s": cpu, "wall_s": wall, "rows": whole, "numbers": numbers}
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
