"""Which filings and questions the systems are given."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pypdfium2

from evals.errors import UsageError
from evals.questions import Question


@dataclass(frozen=True, slots=True)
class Corpus:
    files: tuple[Path, ...]
    pages: int
    questions: tuple[Question, ...]
    """Those with reliable evidence pages, all of whose evidence is in the files."""


def chosen(folder: Path, questions: Sequence[Question], cover: int | None) -> Corpus:
    """All PDFs of the folder, or the fewest, shortest first, that hold all evidence of `cover` questions.

    Raises UsageError where there is nothing to ask or not enough.
    """
    pages = {path: _pages(path) for path in sorted(folder.glob("*.pdf"))}
    files = sorted(pages, key=lambda path: (pages[path], path.name))
    scored = [question for question in questions if question.pages]
    taken: list[Path] = []
    for path in files:
        if cover is not None and len(_covered(taken, scored)) >= cover:
            break
        taken.append(path)
    covered = _covered(taken, scored)
    if not covered or len(covered) < (cover or 0):
        raise UsageError(f"{folder}: its {len(files)} PDFs hold all evidence of {len(covered)} questions")
    return Corpus(tuple(taken), sum(pages[path] for path in taken), tuple(covered))


def _covered(files: Sequence[Path], questions: Sequence[Question]) -> list[Question]:
    held = {path.stem for path in files}
    return [question for question in questions if question.documents <= held]


def _pages(path: Path) -> int:
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise UsageError(f"{path}: {error}; take it out of the folder") from error
    try:
        return len(document)
    finally:
        document.close()
