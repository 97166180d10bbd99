"""What charts are made of: scales, text, marks and axes, as SVG.

Every mark carries a `<title>`; levels differ in shape, not in colour alone. Coordinates are rounded, so that equal data give
equal bytes.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from plumbob.scoring.leak_levels import Level

WIDTH = 400.0
TICK_GAP = 4.0  # between the numbers of an axis
BOLD = 1.1  # bold text is wider
SIZE = 12.0  # of the text, in units of the view box
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


def marker(shape: str, x: float, y: float, r: float, classes: str, title: str) -> Markup:
    """One shape around a point, with its tooltip."""
    paths = {
        "circle": f"M{rounded(x - r)} {rounded(y)}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0Z",
        "square": f"M{rounded(x - r)} {rounded(y - r)}h{2 * r}v{2 * r}h{-2 * r}Z",
        "triangle": f"M{rounded(x)} {rounded(y - 1.2 * r)}l{rounded(1.2 * r)} {rounded(2.1 * r)}h{rounded(-2.4 * r)}Z",
        "upended": f"M{rounded(x)} {rounded(y + 1.2 * r)}l{rounded(-1.2 * r)} {rounded(-2.1 * r)}h{rounded(2.4 * r)}Z",
        "tick": f"M{rounded(x - 1)} {rounded(y - 1.4 * r)}h2v{rounded(2.8 * r)}h-2Z",
        "bars": "".join(
            f"M{rounded(x - r)} {rounded(y + at * r)}h{2 * r}v{rounded(0.45 * r)}h{-2 * r}Z"
            for at in (-0.95, -0.2, 0.55)
        ),
        "diamond": _diamond(x, y, 1.35 * r),
        "jewel": "".join(_diamond(x, y, part * r) for part in (1.5, 1.05, 0.6)),
        "half": f"M{rounded(x - r)} {rounded(y)}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0Z"
        f"M{rounded(x)} {rounded(y - 0.7 * r)}a{rounded(0.7 * r)} {rounded(0.7 * r)} 0 0 1 0 {rounded(1.4 * r)}Z",
    }
    hollow = " hollow" if shape in HOLLOW else ""
    d = paths[HOLLOW.get(shape, shape)]
    drawn = Markup('<path class="{}{}" fill-rule="evenodd" d="{}"><title>{}</title></path>')
    return drawn.format(classes, hollow, d, title)


def _diamond(x: float, y: float, r: float) -> str:
    side = rounded(r)
    return f"M{rounded(x)} {rounded(y - r)}l{side} {side}l-{side} {side}l-{side} -{side}Z"


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


def x_axis(x: Axis, left: float, right: float, bottom: float, top: float | None = None) -> Markup:
    parts, free = [], -math.inf
    for tick in x.ticks(5):
        at, half = x.place(tick, left, right), text_width(x.text(tick)) / 2
        if top is not None:
            parts.append(
                Markup('<path class="grid" d="M{} {}V{}"/>').format(rounded(at), rounded(top), rounded(bottom))
            )
        if at - half > free:  # a narrow scale names some of its ticks only
            parts.append(text(at, bottom + 17, x.text(tick), "tick middle"))
            free = at + half + TICK_GAP
    parts.append(text((left + right) / 2, bottom + 37, x.label, "axis middle"))
    return Markup("").join(parts)


def y_axis(y: Axis, left: float, right: float, top: float, bottom: float) -> Markup:
    parts = []
    for tick in y.ticks():
        at = y.place(tick, bottom, top)
        kind = "grid" if tick else "zero"
        parts.append(
            Markup('<path class="{}" d="M{} {}H{}"/>').format(kind, rounded(left), rounded(at), rounded(right))
        )
        parts.append(text(left - 6, at + 4, y.text(tick), "tick end"))
    parts.append(text(0, 12, y.label, "axis"))
    return Markup("").join(parts)


def text(x: float, y: float, text: str, classes: str, title: str = "") -> Markup:
    tip = Markup("<title>{}</title>").format(title) if title and title != text else ""
    return Markup('<text class="{}" x="{}" y="{}">{}{}</text>').format(classes, rounded(x), rounded(y), text, tip)


def svg(height: float, label: str, parts: Sequence[Markup]) -> Markup:
    opening = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return opening.format(rounded(WIDTH), rounded(height), escape(label)) + Markup("").join(parts) + Markup("</svg>")


def rounded(value: float) -> str:
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _em(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    return 0.36 if char in "iljtfI.,:;|' " else 0.95 if char in "mwMW@%" else 0.7 if char.isupper() else 0.61
