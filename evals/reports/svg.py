"""Charts as inline SVG, drawn for the width of a phone so that text keeps its size everywhere."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 400
_ROW = 24
_LABEL = 112
"""Width of the column of names."""
_CHAR = 6.6
"""Width of a character of 11 px, about."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to x or y coordinates, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            low, high, value = math.log10(self.low), math.log10(self.high), math.log10(max(value, self.low))
        else:
            low, high = self.low, self.high
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + min(max(share, 0), 1) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Three to six round values."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if self.high < self.low * 500 else (1,)
            return [
                v for p in range(first, last + 1) for s in steps if self.low <= (v := s * 10.0**p) <= self.high * 1.001
            ]
        span = self.high - self.low or 1
        step = next(s for p in range(-9, 13) for m in (1, 2, 5) if span / (s := m * 10.0**p) <= 5)
        return [i * step for i in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """1234567 -> 1.2M; 0.25 -> 0.25."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"


def fit(values: Sequence[float], start: float, end: float) -> Scale:
    """From just below the smallest to just above the largest, logarithmic where they span more than tenfold."""
    low, high = min(values), max(values)
    if low > 0 and high / low > 10:
        return Scale(low / 1.3, high * 1.3, start, end, log=True)
    margin = (high - low) * 0.1 or max(abs(high), 1) * 0.1
    return Scale(max(0.0, low - margin) if low >= 0 else low - margin, high + margin, start, end)


def _svg(height: float, body: Sequence[str], title: str) -> str:
    inner = "".join(body)
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">{inner}</svg>'


def _text(x: float, y: float, text: str, anchor: str = "start", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def _rect(x: float, y: float, width: float, height: float, style: str, title: str = "") -> str:
    tip = f"<title>{escape(title)}</title>" if title else ""
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" rx="2" class="{style}"'
    return f"<rect {shape}>{tip}</rect>"


def _clipped(text: str, width: float) -> str:
    most = int(width / _CHAR)
    return text if len(text) <= most else text[: most - 1] + "…"


def damage_bars(rows: Sequence[tuple[str, int, int, float]], title: str) -> str:
    """Per (class, wins, damages, adjusted p): damages to the left, wins to the right, counts at the ends."""
    most = max([1, *(max(wins, damages) for _, wins, damages, _ in rows)])
    middle = _LABEL + (WIDTH - _LABEL) / 2
    unit = ((WIDTH - _LABEL) / 2 - 34) / most
    body = [
        _text(middle - 6, 12, "◀ damages", "end", 'class="damage-text"'),
        _text(middle + 6, 12, "wins ▶", "start", 'class="win-text"'),
    ]
    for i, (kind, wins, damages, p) in enumerate(rows):
        y = 20 + i * _ROW
        tip = f"{kind}: {wins} wins, {damages} damages, p = {p:.3f} adjusted"
        body += [
            _text(0, y + 15, _clipped(kind, _LABEL), extra='class="strong"' if i == 0 else ""),
            _rect(middle - damages * unit, y + 3, damages * unit, _ROW - 8, "damage", tip),
            _rect(middle, y + 3, wins * unit, _ROW - 8, "win", tip),
            _text(middle - damages * unit - 4, y + 15, str(damages), "end"),
            _text(middle + wins * unit + 4, y + 15, f"{wins}{' *' if p < 0.05 else ''}"),
        ]
    height = 20 + len(rows) * _ROW + 4
    body.append(_line(middle, 18, middle, height - 4, "axis"))
    return _svg(height, body, title)


@dataclass(frozen=True, slots=True)
class Point:
    name: str
    x: float
    y: float
    low: float
    high: float
    """The interval of y."""
    kept: bool
    """In the Pareto set: drawn full, joined by steps."""
    style: str
    """CSS class of its colour."""


def scatter(points: Sequence[Point], x_name: str, y_name: str, *, front: bool = True) -> str:
    """Quality against a price: up and to the left is better; `front` joins those kept."""
    height, left, bottom = 270, 40, 232
    across = fit([p.x for p in points], left + 8, WIDTH - 18)
    up = Scale(max(0.0, min(p.low for p in points) - 0.05), min(1.0, max(p.high for p in points) + 0.05), bottom, 22)
    body = [_line(left, bottom, WIDTH, bottom, "axis")]
    for tick in up.ticks():
        body += [_line(left, up(tick), WIDTH, up(tick), "grid"), _text(left - 5, up(tick) + 4, f"{tick:.2g}", "end")]
    for tick in across.ticks():
        body.append(_text(across(tick), bottom + 15, short(tick), "middle"))
    body += [_text((left + WIDTH) / 2, height - 4, x_name, "middle"), _text(0, 11, f"↑ {y_name}")]
    kept = sorted((p for p in points if p.kept and front), key=lambda p: (p.x, p.y))
    path = "".join(f"H{across(p.x):.1f}V{up(p.y):.1f}" for p in kept[1:])
    if path:
        body.append(f'<path d="M{across(kept[0].x):.1f},{up(kept[0].y):.1f}{path}" class="front"/>')
    for point, label_y in zip(points, _apart([up(p.y) for p in points]), strict=True):
        x, y = across(point.x), up(point.y)
        end = x + 10 + len(point.name) * _CHAR > WIDTH
        tip = f"{point.name}: {y_name} {point.y:.3f} [{point.low:.2f}, {point.high:.2f}], {x_name} {point.x:,.1f}"
        style = f"{point.style} {'full' if point.kept else 'hollow'}"
        body += [
            _line(x, up(point.low), x, up(point.high), f"{point.style} error"),
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{style}"><title>{escape(tip)}</title></circle>',
            _text(x - 10 if end else x + 10, label_y + 4, _clipped(point.name, 190), "end" if end else "start"),
        ]
    return _svg(height, body, f"{y_name} against {x_name}")


def _apart(places: Sequence[float], least: float = 14) -> list[float]:
    """The same heights, moved down where two labels would overlap."""
    moved = list(places)
    last = -math.inf
    for i in sorted(range(len(places)), key=places.__getitem__):
        moved[i] = last = max(places[i], last + least)
    return moved


def boxes(rows: Sequence[tuple[str, str, Sequence[float]]], unit: str) -> str:
    """Per (name, CSS class, quantiles 5, 25, 50, 75, 95 %): whisker, box and median on one axis."""
    known = [row for row in rows if row[2]]
    if not known:
        return ""
    across = fit([value for _, _, values in known for value in values], _LABEL, WIDTH - 18)
    bottom = 6 + len(known) * (_ROW + 6)
    body = [_line(_LABEL, bottom, WIDTH, bottom, "axis")]
    for tick in across.ticks():
        body += [_line(across(tick), 4, across(tick), bottom, "grid")]
        body += [_text(across(tick), bottom + 15, short(tick), "middle")]
    body.append(_text(WIDTH, bottom + 30, unit, "end"))
    for i, (name, style, (p5, p25, p50, p75, p95)) in enumerate(known):
        y = 8 + i * (_ROW + 6)
        tip = f"{name}: median {p50:,.0f}, 5 to 95 %: {p5:,.0f} to {p95:,.0f} {unit}"
        body += [
            _text(0, y + 15, _clipped(name, _LABEL - 4)),
            _line(across(p5), y + 11, across(p95), y + 11, f"{style} error"),
            _rect(across(p25), y + 3, max(across(p75) - across(p25), 2), 16, f"{style} box", tip),
            _line(across(p50), y, across(p50), y + 22, "median"),
        ]
    return _svg(bottom + 34, body, unit)


def stacked(rows: Sequence[tuple[str, Mapping[str, float]]], unit: str) -> str:
    """Per (name, parts): one bar of its parts, in a fixed order of kinds, with the total at its end."""
    kinds = list(dict.fromkeys(kind for _, parts in rows for kind in parts))
    most = max([1e-9, *(sum(parts.values()) for _, parts in rows)])
    width = (WIDTH - _LABEL - 52) / most
    body: list[str] = []
    x: float = 0
    for kind in kinds:
        body += [_rect(x, 2, 10, 10, f"kind-{kinds.index(kind) % 6}"), _text(x + 14, 11, kind)]
        x += 26 + len(kind) * _CHAR
    for i, (name, parts) in enumerate(rows):
        y, at = 20 + i * (_ROW + 2), float(_LABEL)
        body.append(_text(0, y + 15, _clipped(name, _LABEL - 4)))
        for kind in kinds:
            length = parts.get(kind, 0) * width
            tip = f"{name}, {kind}: {parts.get(kind, 0):,.1f} {unit}"
            body.append(_rect(at, y + 3, length, _ROW - 8, f"kind-{kinds.index(kind) % 6}", tip))
            at += length
        body.append(_text(at + 5, y + 15, short(sum(parts.values()))))
    return _svg(20 + len(rows) * (_ROW + 2) + 4, body, unit)


def curves(series: Mapping[str, Sequence[tuple[float, float]]], x_name: str, y_name: str) -> str:
    """Per name, (x, y) in order of x; y from 0 to 1."""
    bottom, left = 212, 34
    points = [point for line in series.values() for point in line]
    across = Scale(min(x for x, _ in points), max(x for x, _ in points), left + 6, WIDTH - 12)
    up = Scale(0, 1, bottom, 22)
    body = [_line(left, bottom, WIDTH, bottom, "axis"), _text(0, 11, f"↑ {y_name}")]
    for tick in up.ticks():
        body += [_line(left, up(tick), WIDTH, up(tick), "grid"), _text(left - 5, up(tick) + 4, f"{tick:.2g}", "end")]
    body += [_text(across(tick), bottom + 15, short(tick), "middle") for tick in across.ticks()]
    at: float = left
    for i, (name, line) in enumerate(series.items()):
        path = "L".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line)
        body.append(f'<path d="M{path}" class="system-{i % 7} curve"><title>{escape(name)}</title></path>')
        body.append(_rect(at, bottom + 36, 10, 10, f"system-{i % 7} box"))
        body.append(_text(at + 14, bottom + 45, name))
        at += 30 + len(name) * _CHAR
    body.append(_text(WIDTH, bottom + 30, x_name, "end"))
    return _svg(bottom + 52, body, f"{y_name} against {x_name}")


def reliability(bins: Sequence[tuple[float, float, int]], title: str) -> str:
    """Per (predicted, observed, n): how often what is predicted comes true; on the diagonal is right, area is n."""
    bottom, left = 262, 34
    across, up = Scale(0, 1, left, WIDTH - 20), Scale(0, 1, bottom, 22)
    body = [_line(left, bottom, WIDTH - 20, bottom, "axis"), _line(across(0), up(0), across(1), up(1), "grid")]
    for tick in across.ticks():
        body += [
            _text(across(tick), bottom + 15, f"{tick:.1g}", "middle"),
            _text(left - 5, up(tick) + 4, f"{tick:.1g}", "end"),
        ]
    most = max([1, *(n for _, _, n in bins)])
    for predicted, observed, n in bins:
        tip = f"predicted {predicted:.2f}, observed {observed:.2f}, n = {n}"
        radius = 3 + 7 * math.sqrt(n / most)
        body.append(
            f'<circle cx="{across(predicted):.1f}" cy="{up(observed):.1f}" r="{radius:.1f}" class="full">'
            f"<title>{escape(tip)}</title></circle>"
        )
    body += [_text(WIDTH - 20, bottom + 30, "predicted", "end"), _text(0, 11, "↑ observed")]
    return _svg(bottom + 34, body, title)


def standalone(chart: str) -> str:
    """A chart as a file of its own, without the report's style sheet."""
    style = (
        "<style>text{font:11px sans-serif}.axis{stroke:#555}.grid{stroke:#bbb;stroke-dasharray:3}"
        ".full{fill:#2563a8;fill-opacity:.8}</style>"
    )
    head, _, rest = chart.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg">{style}{rest}'
