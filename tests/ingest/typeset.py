"""Pages and PDF files for tests, written down as a reader sees them."""

import re
from collections.abc import Sequence
from pathlib import Path

import pikepdf

from app.types import Page
from ingest.formats.layout import Token, lay_out

CHARACTER = 5.0
LINE = 12.0


def typeset(art: str, number: int = 1) -> Page:
    """A page from monospaced text: characters 5 points wide, lines 12 high, two blanks between what is drawn apart."""
    fragments: list[list[Token]] = []
    lines = art.strip("\n").split("\n")
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    for row, line in enumerate(lines):
        for run in re.finditer(r"\S+(?: \S+)*", line[indent:]):
            fragments.append(
                [
                    Token(
                        50 + CHARACTER * (run.start() + word.start()),
                        50 + LINE * row,
                        50 + CHARACTER * (run.start() + word.end()),
                        50 + LINE * row + 9,
                        word[0],
                    )
                    for word in re.finditer(r"\S+", run[0])
                ]
            )
    text, words = lay_out(fragments)
    return Page(number, text, words)


def text_at(*placed: tuple[float, float, str], size: float = 10) -> str:
    """A content stream that draws each text at its x and y, in points from the page's bottom left."""
    return "".join(f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n" for x, y, text in placed)


def write_pdf(
    path: Path,
    contents: Sequence[str],
    *,
    crop: tuple[int, int, int, int] | None = None,
    rotate: int = 0,
    encryption: pikepdf.Encryption | None = None,
) -> Path:
    """A PDF of letter pages in Helvetica, one for each content stream."""
    with pikepdf.new() as pdf:
        font = pdf.make_indirect(
            pikepdf.Dictionary(
                Type=pikepdf.Name.Font,
                Subtype=pikepdf.Name.Type1,
                BaseFont=pikepdf.Name.Helvetica,
                Encoding=pikepdf.Name.WinAnsiEncoding,
            )
        )
        for content in contents:
            page = pdf.add_blank_page(page_size=(612, 792))
            page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=font))
            page.Contents = pdf.make_stream(content.encode("cp1252"))
            if crop:
                page.CropBox = pikepdf.Array(crop)
            if rotate:
                page.Rotate = rotate
        pdf.docinfo["/Title"] = "Annual\x00 Report"
        pdf.save(path, encryption=encryption or False)
    return path
