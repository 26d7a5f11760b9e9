"""Tables as aligned Markdown: for a terminal and for a README."""

from collections.abc import Sequence

from evals.statistics import Estimate


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right; ends with a line feed."""
    widths = [max(len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]
        return "| " + " | ".join(padded) + " |\n"

    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|\n"
    return line(headings) + rule + "".join(line(row) for row in rows)


def cell(estimate: Estimate) -> str:
    """`.640 [.55, .72]`, or a dash of nothing."""
    if estimate.mean is None or estimate.low is None or estimate.high is None:
        return "–"
    return f"{fraction(estimate.mean)} [{fraction(estimate.low, 2)}, {fraction(estimate.high, 2)}]"


def fraction(value: float, places: int = 3) -> str:
    """Without the leading zero of a share."""
    text = f"{value:.{places}f}"
    return text[1:] if text.startswith("0.") else text.replace("-0.", "-.", 1)
