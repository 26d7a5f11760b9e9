"""Scans for tests: typeset pages drawn as pictures, the way a scanner would see them."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pikepdf
import pypdfium2
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

DPI = 200


def pictures(pdf: Path) -> list[Image.Image]:
    """Of each page, in grey."""
    with pypdfium2.PdfDocument(pdf) as document:
        return [page.render(scale=DPI / 72, grayscale=True).to_pil() for page in document]


def write_scan(path: Path, pages: Sequence[Image.Image], over: Callable[[Canvas], object] | None = None) -> Path:
    """A PDF of pictures, as large as they are at 200 dots per inch; `over` draws on top of each page."""
    canvas = Canvas(str(path), invariant=1)
    for picture in pages:
        width, height = picture.width * 72 / DPI, picture.height * 72 / DPI
        canvas.setPageSize((width, height))
        canvas.drawImage(ImageReader(picture), 0, 0, width, height)
        if over:
            over(canvas)
        canvas.showPage()
    canvas.save()
    return path


def scan(pdf: Path, *, turn: int = 0, skew: float = 0.0) -> Path:
    """A scan of a PDF beside it, every page turned by quarters and skewed, in degrees counterclockwise."""
    seen = [p.rotate(turn, expand=True).rotate(skew, Image.Resampling.BICUBIC, fillcolor=255) for p in pictures(pdf)]
    return write_scan(pdf.with_name(f"scan-{pdf.name}"), seen)


def write_garbled(path: Path, lines: Sequence[str]) -> Path:
    """A page in a Type 3 font: it shows these lines, but its codes mean nothing and no map says what they stand for."""
    characters = sorted(set("".join(lines)))
    widths = {character: round(stringWidth(character, "Helvetica", 1000)) for character in characters}
    codes = {character: 0xA1 + number for number, character in enumerate(characters)}
    with pikepdf.new() as pdf:
        helvetica = pikepdf.Dictionary(
            Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica
        )
        glyphs = {
            f"/g{code}": pdf.make_stream(b"%d 0 d0 BT /F0 1000 Tf <%02x> Tj ET" % (widths[character], ord(character)))
            for character, code in codes.items()
        }
        font = pikepdf.Dictionary(
            Type=pikepdf.Name.Font,
            Subtype=pikepdf.Name.Type3,
            FontBBox=pikepdf.Array([0, -300, 1000, 900]),
            FontMatrix=pikepdf.Array([0.001, 0, 0, 0.001, 0, 0]),
            CharProcs=pikepdf.Dictionary(glyphs),
            Encoding=pikepdf.Dictionary(
                Differences=pikepdf.Array([0xA1, *(pikepdf.Name(f"/g{code}") for code in codes.values())])
            ),
            FirstChar=0xA1,
            LastChar=0xA0 + len(characters),
            Widths=pikepdf.Array([*widths.values()]),
            Resources=pikepdf.Dictionary(Font=pikepdf.Dictionary(F0=helvetica)),
        )
        out = io.BytesIO()
        for number, line in enumerate(lines):
            shown = bytes(codes[character] for character in line).hex().encode()
            out.write(b"BT /F1 12 Tf 1 0 0 1 72 %d Tm <%s> Tj ET\n" % (700 - 16 * number, shown))
        page = pdf.add_blank_page(page_size=(612, 792))
        page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=pdf.make_indirect(font)))
        page.Contents = pdf.make_stream(out.getvalue())
        pdf.save(path)
    return path
