"""Draw a filing with reportlab: paragraphs, statement tables, running headers and printed page numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal, TypeAlias
from xml.sax.saxutils import escape

from reportlab.lib.colors import Color, HexColor, black
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY, TA_LEFT
from reportlab.lib.pagesizes import letter
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, KeepTogether, PageTemplate, Paragraph

RowKind = Literal["plain", "heading", "subtotal", "total"]
MARK = "SPECIMEN — INVENTED COMPANY, NOT A REAL FILING"
WIDTH, HEIGHT = letter
MARGIN = 54.0
FRAME = WIDTH - 2 * MARGIN
FAMILIES = {
    "Times": ("Times-Roman", "Times-Bold", "Times-Italic"),
    "Helvetica": ("Helvetica", "Helvetica-Bold", "Helvetica-Oblique"),
}


@dataclass(frozen=True, slots=True)
class Look:
    """How one company sets its filings."""

    family: Literal["Times", "Helvetica"] = "Times"
    size: float = 10.0
    shade: str | None = None
    """Hex colour behind every second table row; None draws none."""
    unnumbered: int = 0
    """Front pages that carry no printed number; the page after them prints 1."""
    header: Literal["contents", "item", "company"] = "contents"
    footer: Literal["centre", "outer"] = "centre"
    justified: bool = False
    outline: bool = False
    """Whether the PDF has bookmarks."""
    encrypted: bool = False
    """Whether the PDF is encrypted with an empty user password, as half of real filings are."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; a cell is printed as it is, a `)` and a `%` at its end hang to the right of the digits."""

    label: str
    cells: tuple[str, ...] = ()
    kind: RowKind = "plain"
    indent: int = 0
    currency: bool = False
    """Whether a `$` stands at the left of each number's column."""

    @property
    def text(self) -> str:
        """The line as a PDF reader gives it back, single spaces between its parts."""
        parts = [self.label]
        for cell in self.cells:
            parts += ["$"] * (self.currency and is_number(cell)) + [cell.replace(")%", ") %")]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Table:
    """A financial table. A header line is a list of (text, first column, last column), columns from 0."""

    header: tuple[tuple[tuple[str, int, int], ...], ...]
    rows: tuple[Row, ...]
    title: str = ""
    units: str = ""
    column: float = 74.0
    """Width of a value column in points; the label takes the rest."""
    left: int = 0
    """Leading value columns that hold words and are set flush left."""


def is_number(cell: str) -> bool:
    return cell[-1:].isdigit() or cell.endswith(")")


class TableFlowable(Flowable):  # type: ignore[misc]
    """Draws a Table; never split, so that a header stays with its rows."""

    def __init__(self, table: Table, look: Look) -> None:
        super().__init__()
        self.table, self.look = table, look
        self.regular, self.bold, _ = FAMILIES[look.family]
        self.size = look.size - 1.0
        self.leading = self.size + 4.0
        self.columns = max(last for line in table.header for _, _, last in line) + 1
        self.label_width = FRAME - self.columns * table.column
        self.labels = [
            simpleSplit(row.label, self._font(row), self.size, self.label_width - 8 - 10 * row.indent) or [""]
            if row.kind != "heading"
            else [row.label]
            for row in table.rows
        ]
        self.width = FRAME
        self.height = self.leading * (len(table.header) + sum(map(len, self.labels))) + 10

    def _font(self, row: Row) -> str:
        return self.regular if row.kind == "plain" else self.bold

    def wrap(self, _width: float, _height: float) -> tuple[float, float]:
        return self.width, self.height

    def _left(self, column: int) -> float:
        return float(self.label_width + column * self.table.column)

    def draw(self) -> None:
        y = self.height - self.leading
        for number, line in enumerate(self.table.header, start=1):
            self._draw_header(line, y, last_line=number == len(self.table.header))
            y -= self.leading
        for number, (row, lines) in enumerate(zip(self.table.rows, self.labels, strict=True)):
            bottom = y - (len(lines) - 1) * self.leading
            if self.look.shade and number % 2 == 0:
                self.canv.setFillColor(HexColor(self.look.shade))
                height = len(lines) * self.leading
                self.canv.rect(0, bottom - 3.2, FRAME, height, stroke=0, fill=1)
                self.canv.setFillColor(black)
            self._draw_row(row, lines, y, bottom)
            y = bottom - self.leading

    def _draw_header(self, line: Sequence[tuple[str, int, int]], y: float, *, last_line: bool) -> None:
        self.canv.setFont(self.bold, self.size - 0.5)
        for text, first, last in line:
            left, right = self._left(first) + 6, self._left(last) + self.table.column - 8
            if last < self.table.left:
                self.canv.drawString(left, y, text)
            else:
                self.canv.drawCentredString((left + right) / 2, y, text)
            if text and (last_line or last > first):
                self.canv.setLineWidth(0.6)
                self.canv.line(left, y - 3, right, y - 3)

    def _draw_row(self, row: Row, lines: Sequence[str], top: float, y: float) -> None:
        font = self._font(row)
        self.canv.setFont(font, self.size)
        for number, text in enumerate(lines):
            self.canv.drawString(10 * row.indent, top - number * self.leading, text)
        for column, cell in enumerate(row.cells):
            left, edge = self._left(column) + 8, self._left(column) + self.table.column - 18
            if column < self.table.left:
                self.canv.drawString(left - 2, y, cell)
                continue
            if row.kind in ("subtotal", "total") and cell:
                self._draw_rules(left - 2, edge + 5, y, double=row.kind == "total")
            self._draw_cell(cell, font, left, edge, y, currency=row.currency)

    def _draw_cell(self, cell: str, font: str, left: float, edge: float, y: float, *, currency: bool) -> None:
        if currency and is_number(cell):
            self.canv.drawString(left, y, "$")
        digits = cell.rstrip(")%")
        apart = cell.endswith(")%")
        self.canv.drawString(edge - stringWidth(digits, font, self.size), y, cell.removesuffix("%") if apart else cell)
        if apart:
            self.canv.drawString(edge + 9, y, "%")

    def _draw_rules(self, left: float, right: float, y: float, *, double: bool) -> None:
        self.canv.setLineWidth(0.5)
        self.canv.line(left, y + self.size - 0.6, right, y + self.size - 0.6)
        if double:
            for below in (2.2, 3.6):
                self.canv.line(left, y - below, right, y - below)


class Heading(Paragraph):  # type: ignore[misc]
    """A heading that the contents page and the outline know."""

    def __init__(self, text: str, style: ParagraphStyle, entry: str) -> None:
        super().__init__(text, style)
        self.entry = entry


class Whole(Paragraph):  # type: ignore[misc]
    """A paragraph that moves to the next page rather than break."""

    def split(self, _width: float, _height: float) -> list[Flowable]:
        return []


class Styles:
    """The paragraph makers of one look."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.regular, self.bold, self.italic = FAMILIES[look.family]
        size = look.size
        align = TA_JUSTIFY if look.justified else TA_LEFT
        self._body = ParagraphStyle("body", fontName=self.regular, fontSize=size, leading=size * 1.28, alignment=align)
        self._body.spaceAfter = size * 0.75

    def _style(self, name: str, **changes: Any) -> ParagraphStyle:
        return ParagraphStyle(name, parent=self._body, **changes)

    def text(self, text: str) -> Flowable:
        return Whole(escape(text), self._body)

    def small(self, text: str) -> Flowable:
        size = self.look.size - 1.5
        style = self._style("small", fontSize=size, leading=size * 1.25, spaceAfter=4)
        return Whole(escape(text), style)

    def bullet(self, text: str) -> Flowable:
        return Whole(escape(text), self._style("bullet", leftIndent=22, bulletIndent=8, spaceAfter=5), bulletText="•")

    def centred(self, text: str, size: float, *, bold: bool = False, after: float = 4.0) -> Flowable:
        font = self.bold if bold else self.regular
        style = self._style("centred", fontName=font, fontSize=size, leading=size * 1.2)
        style.alignment, style.spaceAfter = TA_CENTER, after
        return Paragraph(escape(text), style)

    def part(self, text: str) -> Flowable:
        style = self._style("part", fontName=self.bold, fontSize=self.look.size + 2, leading=self.look.size + 5)
        style.alignment, style.keepWithNext, style.spaceBefore = TA_CENTER, 1, 16
        return Heading(escape(text), style, text)

    def item(self, text: str) -> Flowable:
        style = self._style("item", fontName=self.bold, fontSize=self.look.size + 1, spaceBefore=8, keepWithNext=1)
        return Heading(escape(text), style, text)

    def head(self, text: str) -> Flowable:
        return Paragraph(
            escape(text), self._style("head", fontName=self.bold, spaceBefore=4, spaceAfter=5, keepWithNext=1)
        )

    def lead(self, text: str) -> Flowable:
        style = self._style("lead", fontName=self.italic, spaceBefore=3, spaceAfter=4, keepWithNext=1)
        return Paragraph(f"<b><i>{escape(text)}</i></b>", style)

    def table(self, table: Table) -> Flowable:
        drawn: list[Flowable] = []
        if table.title:
            drawn.append(self.centred(table.title, self.look.size + 1, bold=True, after=1))
        if table.units:
            drawn.append(self.centred(table.units, self.look.size - 1, after=6))
        return KeepTogether([*drawn, TableFlowable(table, self.look)])


class Filing(BaseDocTemplate):  # type: ignore[misc]
    """One PDF being written; records on which printed page each heading falls."""

    def __init__(self, stream: BytesIO, look: Look, running: str, title: str) -> None:
        options: dict[str, Any] = {"pagesize": letter, "invariant": 1, "pageCompression": 1}
        if look.encrypted:
            options["encrypt"] = StandardEncryption("", ownerPassword="specimen", canModify=0, strength=128)
        super().__init__(stream, title=title, author="Specimen generator", **options)
        self.look, self.running = look, running
        self.pages: dict[str, str] = {}
        self.part_name = self.item_name = ""
        frame = Frame(MARGIN, 60, FRAME, HEIGHT - 60 - 74, leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0)
        self.addPageTemplates(PageTemplate("page", [frame], onPage=self._draw_mark, onPageEnd=self._draw_running))

    def printed(self) -> str:
        """The number printed on the page being drawn, empty on unnumbered front pages."""
        number = self.page - self.look.unnumbered
        return str(number) if number > 0 else ""

    def afterFlowable(self, flowable: Flowable) -> None:
        if not isinstance(flowable, Heading):
            return
        if flowable.entry.startswith("PART"):
            self.part_name, self.item_name = flowable.entry, ""
        else:
            self.item_name = flowable.entry.split(".")[0]
        self.pages.setdefault(f"{self.part_name}/{flowable.entry}", self.printed())
        if self.look.outline:
            key = f"heading-{len(self.pages)}"
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(flowable.entry, key, level=0)

    def _draw_mark(self, canvas: Any, _document: BaseDocTemplate) -> None:
        canvas.setFillColor(Color(0.66, 0.1, 0.1))
        canvas.setFont("Helvetica-Bold", 7.5)
        canvas.drawCentredString(WIDTH / 2, HEIGHT - 30, MARK)
        canvas.setFillColor(black)

    def _draw_running(self, canvas: Any, _document: BaseDocTemplate) -> None:
        regular = FAMILIES[self.look.family][0]
        canvas.setFont(regular, 8)
        if self.page > 1:
            if self.look.header == "contents":
                canvas.drawString(MARGIN, HEIGHT - 50, "Table of Contents")
            elif self.look.header == "company":
                canvas.drawString(MARGIN, HEIGHT - 50, self.running)
            elif self.item_name:
                canvas.drawString(MARGIN, HEIGHT - 44, self.part_name)
                canvas.drawString(MARGIN, HEIGHT - 53, self.item_name)
        if self.look.footer == "centre":
            canvas.drawCentredString(WIDTH / 2, 36, self.printed())
        else:
            canvas.drawString(MARGIN, 36, self.running)
            canvas.drawRightString(WIDTH - MARGIN, 36, self.printed())


Story: TypeAlias = Callable[[Mapping[str, str]], list[Flowable]]
"""Makes a document's flowables, given the printed page of each heading ({part/heading: number}) where it is known."""


def write(look: Look, running: str, title: str, story: Story) -> bytes:
    """The PDF's bytes, the same on every run; laid out twice so that the contents page knows the printed pages."""
    pages: Mapping[str, str] = {}
    stream = BytesIO()
    for _ in range(2):
        stream = BytesIO()
        filing = Filing(stream, look, running, title)
        filing.build(story(pages))
        pages = filing.pages
    return stream.getvalue()
