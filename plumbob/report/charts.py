"""Charts as inline SVG: drawn here, coloured by the page's style sheet, so they follow dark mode and print.

Every mark carries a `<title>`; colours are CSS classes, never alone: lines are labelled where they end, levels differ
in shape. Coordinates are rounded, so that equal data give equal bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from plumbob.report.canvas import (
    BOLD,
    LEVEL_SHAPES,
    SERIES_SHAPES,
    WIDTH,
    Axis,
    fit,
    marker,
    rounded,
    spread,
    svg,
    text,
    text_width,
    x_axis,
    y_axis,
)
from plumbob.scoring.leak_levels import Level

STYLES = 6  # series colours in the style sheet
DASHES = ("2 3", "7 4", "7 3 2 3", "12 4", "4 2", "1 5")


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


def line_chart(series: Sequence[Series], x: Axis, y: Axis, label: str) -> Markup:
    """Lines with interval bands; every line is named at its right end."""
    height, top, bottom, left = 310.0, 26.0, 262.0, 48.0
    right = WIDTH - min(175.0, max((text_width(s.name) * BOLD for s in series), default=0.0) + 20)
    parts = [y_axis(y, left, right, top, bottom), x_axis(x, left, right, bottom)]
    ordered = sorted(series, key=lambda s: not s.dashed)
    for one in ordered:
        places = [(x.place(p.x, left, right), y.place(p.y, bottom, top), p) for p in one.points]
        parts.append(_dashed(one, places) if one.dashed else _solid(one, places, y, bottom, top))
    ends = [(y.place(one.points[-1].y, bottom, top), one) for one in ordered if one.points]
    for (end, one), at in zip(ends, spread([end for end, _ in ends], 15, top, bottom + 10), strict=True):
        tone = "base" if one.dashed else f"s{one.style % STYLES}"
        parts.append(
            Markup('<path class="lead" d="M{} {}L{} {}"/>').format(
                rounded(right + 4), rounded(end), rounded(right + 13), rounded(at)
            )
            + text(right + 16, at + 4, fit(one.name, (WIDTH - right - 16) / BOLD), f"name {tone}", title=one.name)
        )
    return svg(height, label, parts)


def bar_chart(bars: Sequence[Bar], x: Axis, label: str, names: float = 145.0) -> Markup:
    """Horizontal bars with intervals, names on the left in at most so much room, and values on the right."""
    step, top = 23.0, 8.0
    bottom = top + step * len(bars)
    left = min(names, max((text_width(bar.name) for bar in bars), default=0.0) + 12)
    right = WIDTH - max((text_width(bar.text) for bar in bars), default=0.0) - 12
    parts = [x_axis(x, left, right, bottom, top)]
    zero = x.place(0, left, right)
    for i, bar in enumerate(bars):
        middle = top + step * (i + 0.5)
        parts.append(_bar(bar, x, zero, middle, left, right))
    parts.append(Markup('<path class="zero" d="M{0} {1}V{2}"/>').format(rounded(zero), rounded(top), rounded(bottom)))
    return svg(bottom + 44, label, parts)


def box_chart(boxes: Sequence[Box], guess: tuple[str, float], x: Axis, label: str) -> Markup:
    """Horizontal boxes with whiskers, names above them, values on the right, and a dashed line at what guessing reaches."""
    step, top, left = 42.0, 20.0, 8.0
    bottom = top + step * len(boxes)
    right = WIDTH - max((text_width(box.text) for box in boxes), default=0.0) - 12
    at = x.place(guess[1], left, right)
    dashed = Markup('<path class="line base" stroke-dasharray="{}" d="M{} {}V{}"><title>{}</title></path>')
    parts = [x_axis(x, left, right, bottom, top), text(min(at, right - 70), 11, guess[0], "name base")]
    parts.append(dashed.format(DASHES[0], rounded(at), rounded(top - 4), rounded(bottom), guess[0]))
    drawn = Markup(
        '<path class="err" d="M{0} {5}H{1}M{3} {5}H{4}M{0} {6}v8M{4} {6}v8"/><rect class="mark {10}" x="{1}" y="{7}" '
        'width="{8}" height="14"><title>{9}</title></rect><path class="err" d="M{2} {7}v14"/>'
    )
    for i, box in enumerate(boxes):
        middle, ends = top + step * (i + 0.66), [x.place(value, left, right) for value in box.quantiles]
        parts.append(text(left, middle - 12, fit(box.name, right - left), "name", title=box.name))
        heights = (rounded(middle), rounded(middle - 4), rounded(middle - 7), rounded(max(1.0, ends[3] - ends[1])))
        parts.append(drawn.format(*map(rounded, ends), *heights, box.title, f"s{i % STYLES}"))
        parts.append(marker("diamond", x.place(box.mean, left, right), middle, 3.5, f"mark s{i % STYLES}", box.title))
        parts.append(text(right + 8, middle + 4, box.text, "value"))
    return svg(bottom + 44, label, parts)


def scatter(dots: Sequence[Dot], x: Axis, y: Axis, label: str) -> Markup:
    """Dots whose shape and colour tell the level."""
    height, top, bottom, left, right = 270.0, 26.0, 224.0, 52.0, WIDTH - 14
    parts = [y_axis(y, left, right, top, bottom), x_axis(x, left, right, bottom)]
    for dot in dots:
        at = (x.place(dot.x, left, right), y.place(dot.y, bottom, top))
        parts.append(marker(LEVEL_SHAPES[dot.level], *at, 5, f"mark {dot.level.css}", dot.title))
    return svg(height, label, parts)


def spot_chart(spots: Sequence[Spot], guesses: Sequence[tuple[str, float]], x: Axis, y: Axis, label: str) -> Markup:
    """Spots with whiskers, named at the right edge, and dashed lines at what guessing reaches."""
    height, top, bottom, left = 330.0, 26.0, 282.0, 48.0
    named = [spot for spot in sorted(spots, key=lambda s: (not s.faded, s.chosen)) if spot.name]
    right = WIDTH - min(165.0, max((text_width(spot.name) * BOLD for spot in named), default=0.0) + 20)
    parts = [y_axis(y, left, right, top, bottom), x_axis(x, left, right, bottom)]
    for i, (name, value) in enumerate(guesses):
        at = y.place(value, bottom, top)
        line = Markup('<path class="line base" stroke-dasharray="{}" d="M{} {}H{}"/>')
        parts.append(line.format(DASHES[i % len(DASHES)], rounded(left), rounded(at), rounded(right)))
        parts.append(text(left + 4, at - 5, name, "name base"))
    places = {spot: (x.place(spot.x.y, left, right), y.place(spot.y.y, bottom, top)) for spot in spots}
    ends = spread([places[spot][1] for spot in named], 15, top, bottom)
    parts += [_lead(spot, *places[spot], at, right) for spot, at in zip(named, ends, strict=True)]
    for spot in sorted(spots, key=lambda s: (not s.faded, s.chosen)):
        parts.append(_spot(spot, *places[spot], x, y, (left, right, bottom, top)))
    return svg(height, label, parts)


def _solid(one: Series, places: Sequence[tuple[float, float, Point]], y: Axis, bottom: float, top: float) -> Markup:
    tone = f"s{one.style % STYLES}"
    lows = [f"{rounded(px)} {rounded(y.place(p.low, bottom, top))}" for px, _, p in places]
    highs = [f"{rounded(px)} {rounded(y.place(p.high, bottom, top))}" for px, _, p in places]
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
    drawn = whisker.format(
        spot.level.css, rounded(low), rounded(up), rounded(high), rounded(across), rounded(least), rounded(most)
    )
    if spot.chosen:
        drawn += Markup('<circle class="ring" cx="{}" cy="{}" r="9"/>').format(rounded(across), rounded(up))
    drawn += marker(spot.shape, across, up, 4.5, f"mark {spot.level.css}", spot.y.title)
    return Markup('<g class="faded">{}</g>').format(drawn) if spot.faded else drawn


def _lead(spot: Spot, across: float, up: float, at: float, right: float) -> Markup:
    """A name at the right edge and the line that leads to it."""
    path = Markup('<path class="lead" d="M{} {}L{} {}"/>').format(
        rounded(across), rounded(up), rounded(right + 13), rounded(at)
    )
    kind = " chosen" if spot.chosen else " faded" if spot.faded else ""
    return path + text(right + 16, at + 4, fit(spot.name, (WIDTH - right - 16) / BOLD), f"name{kind}", title=spot.name)


def _polyline(places: Sequence[tuple[float, float, Point]]) -> str:
    return "M" + "L".join(f"{rounded(px)} {rounded(py)}" for px, py, _ in places) if places else ""


def _bar(bar: Bar, x: Axis, zero: float, middle: float, left: float, right: float) -> Markup:
    end = x.place(bar.value, left, right)
    low, high = x.place(bar.low, left, right), x.place(bar.high, left, right)
    parts = [
        text(left - 8, middle + 4, fit(bar.name, left - 10), "name end", title=bar.name),
        Markup('<rect class="mark {}" x="{}" y="{}" width="{}" height="14"><title>{}</title></rect>').format(
            bar.tone, rounded(min(zero, end)), rounded(middle - 7), rounded(max(1.0, abs(end - zero))), bar.title
        ),
    ]
    if bar.high > bar.low:
        parts.append(
            Markup('<path class="err" d="M{0} {2}H{1}M{0} {3}v6M{1} {3}v6"/>').format(
                rounded(low), rounded(high), rounded(middle), rounded(middle - 3)
            )
        )
    if bar.value < x.low or bar.value > x.high:  # an arrow: it goes on beyond the chart
        way = 5 if bar.value > x.high else -5
        parts.append(
            Markup('<path class="beyond" d="M{} {}l{} 5l{} 5Z"/>').format(rounded(end), rounded(middle - 5), way, -way)
        )
    return Markup("").join([*parts, text(right + 8, middle + 4, bar.text, "value")])
