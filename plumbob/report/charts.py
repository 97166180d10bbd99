"""Charts as inline SVG: drawn here, coloured by the page's style sheet, so they follow dark mode and print.

Every mark carries a `<title>`; colours are CSS classes, never alone: lines are labelled where they end, levels differ
in shape. Coordinates are rounded, so that equal data give equal bytes.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from plumbob.scoring.leak_levels import Level

WIDTH = 400.0
BOLD = 1.1  # bold text is wider
SIZE = 12.0  # of the text, in units of the view box
STYLES = 6  # series colours in the style sheet
DASHES = ("2 3", "7 4", "7 3 2 3", "12 4", "4 2", "1 5")
SERIES_SHAPES = ("circle", "square", "triangle", "diamond")  # of lines, which are named where they end
LEVEL_SHAPES = {
    Level.EXACT: "diamond",
    Level.EXACT_FOR_SOME: "jewel",
    Level.LEAK: "circle",
    Level.ORDER: "triangle",
    Level.UNDECIDED: "half",
    Level.NOT_TESTED: "box",
    Level.NONE: "ring",
    Level.HELD: "bars",
}
HOLLOW = {"ring": "circle", "box": "square"}  # shapes that are drawn as outlines of others


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float
    high: float
    title: str


@dataclass(frozen=True)
class Series:
    """A line with its interval; a dashed one is a baseline. `style` picks colour and marker, or the dash pattern."""

    name: str
    points: tuple[Point, ...]
    style: int
    dashed: bool = False


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    low: float
    high: float
    text: str
    title: str
    tone: str  # CSS class: a level, `s0`... or `base`


@dataclass(frozen=True)
class Box:
    """A distribution: its 5, 25, 50, 75 and 95 % quantiles, and its mean."""

    name: str
    quantiles: tuple[float, float, float, float, float]
    mean: float
    text: str
    title: str


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    title: str
    level: Level


@dataclass(frozen=True)
class Spot:
    """A mark with intervals both ways; named at the right edge where it has a name."""

    x: Point  # its `x` is not used: a value across with its interval
    y: Point
    shape: str
    level: Level
    name: str = ""
    faded: bool = False
    chosen: bool = False


@dataclass(frozen=True)
class Axis:
    """A scale with its ticks; values beyond its ends are drawn at the end."""

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False

    def place(self, value: float, start: float, end: float) -> float:
        value = min(max(value, self.low), self.high)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return start + part * (end - start)

    def ticks(self, number: int = 5) -> list[float]:
        if not self.log:
            return nice_ticks(self.low, self.high, number)
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = max(1, math.ceil((last - first) / number))
        return [10.0**power for power in range(first, last + 1, step)]

    def text(self, value: float) -> str:
        if self.percent:
            return f"{100 * value:.0f} %".replace("-", "−")
        return f"{value:.10g}".replace("-", "−") if value == 0 or abs(value) >= 1e-4 else f"{value:.0e}"


def nice_ticks(low: float, high: float, number: int = 5) -> list[float]:
    """Round values from low to high, about so many, in steps of 1, 2, 2.5 or 5 times a power of ten.

    >>> nice_ticks(0, 0.17)
    [0.0, 0.05, 0.1, 0.15]
    """
    if not high > low:
        return [low]
    raw = (high - low) / number
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def nice_top(value: float) -> float:
    """The first round number at or above a positive value; 1 for anything else."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return float(f"{next(m * power for m in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if m * power >= value):.12g}")


def text_width(text: str, size: float = SIZE) -> float:
    """A careful estimate: wide East Asian characters take a full em, capitals and the like two thirds."""
    return size * sum(_em(char) for char in text)


def fit(text: str, room: float, size: float = SIZE) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if text_width(text, size) <= room:
        return text
    kept, used = [], size  # an em for the ellipsis
    for char in text:
        used += size * _em(char)
        if used > room:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def line_chart(series: Sequence[Series], x: Axis, y: Axis, label: str) -> Markup:
    """Lines with interval bands; every line is named at its right end."""
    height, top, bottom, left = 310.0, 26.0, 262.0, 48.0
    right = WIDTH - min(175.0, max((text_width(s.name) * BOLD for s in series), default=0.0) + 20)
    parts = [_y_axis(y, left, right, top, bottom), _x_axis(x, left, right, bottom)]
    ordered = sorted(series, key=lambda s: not s.dashed)
    for one in ordered:
        places = [(x.place(p.x, left, right), y.place(p.y, bottom, top), p) for p in one.points]
        parts.append(_dashed(one, places) if one.dashed else _solid(one, places, y, bottom, top))
    ends = [(y.place(one.points[-1].y, bottom, top), one) for one in ordered if one.points]
    for (end, one), at in zip(ends, spread([end for end, _ in ends], 15, top, bottom + 10), strict=True):
        tone = "base" if one.dashed else f"s{one.style % STYLES}"
        parts.append(
            Markup('<path class="lead" d="M{} {}L{} {}"/>').format(_n(right + 4), _n(end), _n(right + 13), _n(at))
            + _text(right + 16, at + 4, fit(one.name, (WIDTH - right - 16) / BOLD), f"name {tone}", title=one.name)
        )
    return _svg(height, label, parts)


def bar_chart(bars: Sequence[Bar], x: Axis, label: str) -> Markup:
    """Horizontal bars with intervals, names on the left and values on the right."""
    step, top = 23.0, 8.0
    bottom = top + step * len(bars)
    left = min(145.0, max((text_width(bar.name) for bar in bars), default=0.0) + 12)
    right = WIDTH - max((text_width(bar.text) for bar in bars), default=0.0) - 12
    parts = [_x_axis(x, left, right, bottom, top)]
    zero = x.place(0, left, right)
    for i, bar in enumerate(bars):
        middle = top + step * (i + 0.5)
        parts.append(_bar(bar, x, zero, middle, left, right))
    parts.append(Markup('<path class="zero" d="M{0} {1}V{2}"/>').format(_n(zero), _n(top), _n(bottom)))
    return _svg(bottom + 44, label, parts)


def box_chart(boxes: Sequence[Box], guess: tuple[str, float], x: Axis, label: str) -> Markup:
    """Horizontal boxes with whiskers, names above them, values on the right, and a dashed line at what guessing reaches."""
    step, top, left = 42.0, 20.0, 8.0
    bottom = top + step * len(boxes)
    right = WIDTH - max((text_width(box.text) for box in boxes), default=0.0) - 12
    at = x.place(guess[1], left, right)
    dashed = Markup('<path class="line base" stroke-dasharray="{}" d="M{} {}V{}"><title>{}</title></path>')
    parts = [_x_axis(x, left, right, bottom, top), _text(min(at, right - 70), 11, guess[0], "name base")]
    parts.append(dashed.format(DASHES[0], _n(at), _n(top - 4), _n(bottom), guess[0]))
    drawn = Markup(
        '<path class="err" d="M{0} {5}H{1}M{3} {5}H{4}M{0} {6}v8M{4} {6}v8"/><rect class="mark {10}" x="{1}" y="{7}" '
        'width="{8}" height="14"><title>{9}</title></rect><path class="err" d="M{2} {7}v14"/>'
    )
    for i, box in enumerate(boxes):
        middle, ends = top + step * (i + 0.66), [x.place(value, left, right) for value in box.quantiles]
        parts.append(_text(left, middle - 12, fit(box.name, right - left), "name", title=box.name))
        heights = (_n(middle), _n(middle - 4), _n(middle - 7), _n(max(1.0, ends[3] - ends[1])))
        parts.append(drawn.format(*map(_n, ends), *heights, box.title, f"s{i % STYLES}"))
        parts.append(marker("diamond", x.place(box.mean, left, right), middle, 3.5, f"mark s{i % STYLES}", box.title))
        parts.append(_text(right + 8, middle + 4, box.text, "value"))
    return _svg(bottom + 44, label, parts)


def scatter(dots: Sequence[Dot], x: Axis, y: Axis, label: str) -> Markup:
    """Dots whose shape and colour tell the level."""
    height, top, bottom, left, right = 270.0, 26.0, 224.0, 52.0, WIDTH - 14
    parts = [_y_axis(y, left, right, top, bottom), _x_axis(x, left, right, bottom)]
    for dot in dots:
        at = (x.place(dot.x, left, right), y.place(dot.y, bottom, top))
        parts.append(marker(LEVEL_SHAPES[dot.level], *at, 5, f"mark {dot.level.css}", dot.title))
    return _svg(height, label, parts)


def spot_chart(spots: Sequence[Spot], guesses: Sequence[tuple[str, float]], x: Axis, y: Axis, label: str) -> Markup:
    """Spots with whiskers, named at the right edge, and dashed lines at what guessing reaches."""
    height, top, bottom, left = 330.0, 26.0, 282.0, 48.0
    named = [spot for spot in sorted(spots, key=lambda s: (not s.faded, s.chosen)) if spot.name]
    right = WIDTH - min(165.0, max((text_width(spot.name) * BOLD for spot in named), default=0.0) + 20)
    parts = [_y_axis(y, left, right, top, bottom), _x_axis(x, left, right, bottom)]
    for i, (name, value) in enumerate(guesses):
        at = y.place(value, bottom, top)
        line = Markup('<path class="line base" stroke-dasharray="{}" d="M{} {}H{}"/>')
        parts.append(line.format(DASHES[i % len(DASHES)], _n(left), _n(at), _n(right)))
        parts.append(_text(left + 4, at - 5, name, "name base"))
    places = {spot: (x.place(spot.x.y, left, right), y.place(spot.y.y, bottom, top)) for spot in spots}
    ends = spread([places[spot][1] for spot in named], 15, top, bottom)
    parts += [_lead(spot, *places[spot], at, right) for spot, at in zip(named, ends, strict=True)]
    for spot in sorted(spots, key=lambda s: (not s.faded, s.chosen)):
        parts.append(_spot(spot, *places[spot], x, y, (left, right, bottom, top)))
    return _svg(height, label, parts)


def marker(shape: str, x: float, y: float, r: float, classes: str, title: str) -> Markup:
    """One shape around a point, with its tooltip."""
    paths = {
        "circle": f"M{_n(x - r)} {_n(y)}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0Z",
        "square": f"M{_n(x - r)} {_n(y - r)}h{2 * r}v{2 * r}h{-2 * r}Z",
        "triangle": f"M{_n(x)} {_n(y - 1.2 * r)}l{_n(1.2 * r)} {_n(2.1 * r)}h{_n(-2.4 * r)}Z",
        "upended": f"M{_n(x)} {_n(y + 1.2 * r)}l{_n(-1.2 * r)} {_n(-2.1 * r)}h{_n(2.4 * r)}Z",
        "tick": f"M{_n(x - 1)} {_n(y - 1.4 * r)}h2v{_n(2.8 * r)}h-2Z",
        "bars": "".join(
            f"M{_n(x - r)} {_n(y + at * r)}h{2 * r}v{_n(0.45 * r)}h{-2 * r}Z" for at in (-0.95, -0.2, 0.55)
        ),
        "diamond": _diamond(x, y, 1.35 * r),
        "jewel": "".join(_diamond(x, y, part * r) for part in (1.5, 1.05, 0.6)),
        "half": f"M{_n(x - r)} {_n(y)}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0Z"
        f"M{_n(x)} {_n(y - 0.7 * r)}a{_n(0.7 * r)} {_n(0.7 * r)} 0 0 1 0 {_n(1.4 * r)}Z",
    }
    hollow = " hollow" if shape in HOLLOW else ""
    d = paths[HOLLOW.get(shape, shape)]
    drawn = Markup('<path class="{}{}" fill-rule="evenodd" d="{}"><title>{}</title></path>')
    return drawn.format(classes, hollow, d, title)


def _diamond(x: float, y: float, r: float) -> str:
    side = _n(r)
    return f"M{_n(x)} {_n(y - r)}l{side} {side}l-{side} {side}l-{side} -{side}Z"


def spread(places: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Places moved apart to at least `gap`, in the same order from top to bottom, within the two ends if they fit."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    floor = top
    for i in order:
        moved[i] = max(moved[i], floor)
        floor = moved[i] + gap
    ceiling = bottom
    for i in reversed(order):
        moved[i] = min(moved[i], ceiling)
        ceiling = moved[i] - gap
    return moved


def _solid(one: Series, places: Sequence[tuple[float, float, Point]], y: Axis, bottom: float, top: float) -> Markup:
    tone = f"s{one.style % STYLES}"
    lows = [f"{_n(px)} {_n(y.place(p.low, bottom, top))}" for px, _, p in places]
    highs = [f"{_n(px)} {_n(y.place(p.high, bottom, top))}" for px, _, p in places]
    parts = [Markup('<path class="band {}" d="M{}Z"/>').format(tone, "L".join(highs + lows[::-1]))]
    for low, high in zip(lows, highs, strict=True):
        parts.append(Markup('<path class="whisker {}" d="M{}L{}"/>').format(tone, low, high))
    parts.append(Markup('<path class="line {}" d="{}"/>').format(tone, _polyline(places)))
    shape = SERIES_SHAPES[one.style % len(SERIES_SHAPES)]
    parts += [marker(shape, px, py, 3.5, f"mark {tone}", p.title) for px, py, p in places]
    return Markup("").join(parts)


def _dashed(one: Series, places: Sequence[tuple[float, float, Point]]) -> Markup:
    line = Markup('<path class="mark line base" stroke-dasharray="{}" d="{}"><title>{}</title></path>')
    dots = [marker("circle", px, py, 2, "tip base", p.title) for px, py, p in places]
    return line.format(DASHES[one.style % len(DASHES)], _polyline(places), one.name) + Markup("").join(dots)


def _spot(spot: Spot, across: float, up: float, x: Axis, y: Axis, frame: tuple[float, float, float, float]) -> Markup:
    left, right, bottom, top = frame
    low, high = x.place(spot.x.low, left, right), x.place(spot.x.high, left, right)
    least, most = y.place(spot.y.low, bottom, top), y.place(spot.y.high, bottom, top)
    whisker = Markup('<path class="thin {}" d="M{} {}H{}M{} {}V{}"/>')
    drawn = whisker.format(spot.level.css, _n(low), _n(up), _n(high), _n(across), _n(least), _n(most))
    if spot.chosen:
        drawn += Markup('<circle class="ring" cx="{}" cy="{}" r="9"/>').format(_n(across), _n(up))
    drawn += marker(spot.shape, across, up, 4.5, f"mark {spot.level.css}", spot.y.title)
    return Markup('<g class="faded">{}</g>').format(drawn) if spot.faded else drawn


def _lead(spot: Spot, across: float, up: float, at: float, right: float) -> Markup:
    """A name at the right edge and the line that leads to it."""
    path = Markup('<path class="lead" d="M{} {}L{} {}"/>').format(_n(across), _n(up), _n(right + 13), _n(at))
    kind = " chosen" if spot.chosen else " faded" if spot.faded else ""
    return path + _text(right + 16, at + 4, fit(spot.name, (WIDTH - right - 16) / BOLD), f"name{kind}", title=spot.name)


def _polyline(places: Sequence[tuple[float, float, Point]]) -> str:
    return "M" + "L".join(f"{_n(px)} {_n(py)}" for px, py, _ in places) if places else ""


def _bar(bar: Bar, x: Axis, zero: float, middle: float, left: float, right: float) -> Markup:
    end = x.place(bar.value, left, right)
    low, high = x.place(bar.low, left, right), x.place(bar.high, left, right)
    parts = [
        _text(left - 8, middle + 4, fit(bar.name, left - 10), "name end", title=bar.name),
        Markup('<rect class="mark {}" x="{}" y="{}" width="{}" height="14"><title>{}</title></rect>').format(
            bar.tone, _n(min(zero, end)), _n(middle - 7), _n(max(1.0, abs(end - zero))), bar.title
        ),
    ]
    if bar.high > bar.low:
        parts.append(
            Markup('<path class="err" d="M{0} {2}H{1}M{0} {3}v6M{1} {3}v6"/>').format(
                _n(low), _n(high), _n(middle), _n(middle - 3)
            )
        )
    if bar.value < x.low or bar.value > x.high:  # an arrow: it goes on beyond the chart
        way = 5 if bar.value > x.high else -5
        parts.append(Markup('<path class="beyond" d="M{} {}l{} 5l{} 5Z"/>').format(_n(end), _n(middle - 5), way, -way))
    return Markup("").join([*parts, _text(right + 8, middle + 4, bar.text, "value")])


def _x_axis(x: Axis, left: float, right: float, bottom: float, top: float | None = None) -> Markup:
    parts = []
    for tick in x.ticks(5):
        at = x.place(tick, left, right)
        if top is not None:
            parts.append(Markup('<path class="grid" d="M{} {}V{}"/>').format(_n(at), _n(top), _n(bottom)))
        parts.append(_text(at, bottom + 17, x.text(tick), "tick middle"))
    parts.append(_text((left + right) / 2, bottom + 37, x.label, "axis middle"))
    return Markup("").join(parts)


def _y_axis(y: Axis, left: float, right: float, top: float, bottom: float) -> Markup:
    parts = []
    for tick in y.ticks():
        at = y.place(tick, bottom, top)
        kind = "grid" if tick else "zero"
        parts.append(Markup('<path class="{}" d="M{} {}H{}"/>').format(kind, _n(left), _n(at), _n(right)))
        parts.append(_text(left - 6, at + 4, y.text(tick), "tick end"))
    parts.append(_text(0, 12, y.label, "axis"))
    return Markup("").join(parts)


def _text(x: float, y: float, text: str, classes: str, title: str = "") -> Markup:
    tip = Markup("<title>{}</title>").format(title) if title and title != text else ""
    return Markup('<text class="{}" x="{}" y="{}">{}{}</text>').format(classes, _n(x), _n(y), text, tip)


def _svg(height: float, label: str, parts: Sequence[Markup]) -> Markup:
    opening = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return opening.format(_n(WIDTH), _n(height), escape(label)) + Markup("").join(parts) + Markup("</svg>")


def _n(value: float) -> str:
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _em(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    return 0.36 if char in "iljtfI.,:;|' " else 0.95 if char in "mwMW@%" else 0.7 if char.isupper() else 0.61
