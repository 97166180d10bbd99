"""One bar per column: what could be imputed without a message, what attacks learnt, and what could be learnt at most.

Two lanes on one scale, the share of the column's variance that is explained (of branches, bins and the label: of the mistakes
of guessing):

    above   own columns alone, and with the messages: what learners with everybody else's complete rows reach
    below   the strongest attack with its 95 % interval; where nothing was found, a bracket up to what may have gone unseen

An attack's gain is relative to the best baseline, whose error is the share k of the variance: R^2 = 1 - (1 - gain) k.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from plumbob.auditing.concluding.ceilings import Ceiling
from plumbob.auditing.concluding.conclusion import Standing
from plumbob.auditing.concluding.judging import Verdict
from plumbob.report import canvas
from plumbob.report.phrases import percent

WIDTH, HEIGHT, EDGE = 240.0, 30.0, 4.0  # of the drawing; the scale ends at the edges
SHORT = 0.03  # bars below this length are hard to see
CAPTION = (
    "The bars go from 0 to 100 % of a column’s variance (of branches, bins and the label: of the mistakes of guessing). The "
    "number is the gain: the part of the best guess’s error that the strongest attack removes, with its 95 % interval."
)
LEGEND = (
    ("own", "explained by own columns alone, without any message"),
    (
        "told",
        "with the messages too: the ceiling, of learners that have everybody else’s complete rows; algebra may find more",
    ),
    ("floor", "by the strongest attack: the floor"),
    ("unseen", "no leak: a gain up to here may have gone unseen"),
    ("open", "undecided: a gain up to here is possible"),
)


@dataclass(frozen=True)
class Lanes:
    """A column on the bar's scale: shares from 0 to 1."""

    floor: float  # what the strongest attack explains
    low: float
    high: float
    unseen: tuple[float, float] | None = None  # the bracket of what may have been missed
    own: float | None = None
    full: float | None = None
    top: float | None = None  # upper end of the ceiling's interval, or the floor where algebra finds more


def lanes(one: Standing) -> Lanes:
    """Where everything of a column lies."""
    verdict, ceiling = one.verdict, one.ceiling
    kept = _baseline_share(verdict) if one.metric == "values" else 1.0

    def explained(gain: float) -> float:
        return _within(1 - (1 - gain) * kept)

    start = explained(0.0)
    found = one.level.leaks
    floor = explained(verdict.gain) if found else 0.0
    bracket = (start, explained(verdict.unseen)) if verdict.unseen is not None else None
    if one.attack == "":  # no attack was run: anything may be
        bracket = None
    return Lanes(
        floor=floor,
        low=explained(verdict.low) if found else 0.0,
        high=explained(verdict.high) if found else 0.0,
        unseen=bracket,
        own=None if ceiling is None else _within(ceiling.own),
        full=None if ceiling is None else _within(ceiling.full),
        top=None if ceiling is None else max(floor, _within(ceiling.own + ceiling.high)),
    )


def floor_above(one: Standing, ceiling: Ceiling) -> bool:
    """Whether an attack shows more than learners find at most: algebra may, and then what it found is what is possible."""
    return one.metric in ("values", "labels") and lanes(one).floor > _within(ceiling.own + ceiling.high)


def bar(one: Standing) -> Markup:
    """The two lanes as an image, with all of it in words for those who do not see it."""
    at = lanes(one)
    parts = [Markup('<path class="track" d="M{} 6V25M{} 6V25M{} 15.5H{}"/>').format(*map(_x, (0, 1, 0, 1)))]
    if at.own is not None and at.full is not None and at.top is not None:
        parts.append(_block("own", 0.0, at.own, 5.0, 7.0))
        parts.append(_block("told", at.own, at.full, 5.5, 6.0))
        if at.top > at.full:
            ends = (_x(at.full), _x(at.top))
            parts.append(Markup('<path class="reach" d="M{0} 8.5H{1}M{1} 5.5v6"/>').format(*ends))
    if one.level.leaks and at.floor < SHORT:  # something was learnt that the scale does not show
        place = EDGE + at.floor * (WIDTH - 2 * EDGE)
        parts.append(
            canvas.marker(canvas.LEVEL_SHAPES[one.level], place + 2, 22, 3.5, f"mark {one.level.css}", one.words)
        )
    elif at.floor > 0:
        parts.append(_block(f"floor {one.level.css}", 0.0, at.floor, 18.0, 8.0))
        if at.high > at.low:
            parts.append(
                Markup('<path class="err" d="M{0} 22H{1}M{0} 19v6M{1} 19v6"/>').format(_x(at.low), _x(at.high))
            )
    if at.unseen is not None:
        drawn = Markup('<path class="unseen {2}" d="M{0} 18v8M{0} 22H{1}M{1} 18v8"/>')
        parts.append(drawn.format(_x(at.unseen[0]), _x(at.unseen[1]), one.level.css))
    opening = Markup('<svg class="gain" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return opening.format(f"{WIDTH:g}", f"{HEIGHT:g}", in_words(one)) + Markup("").join(parts) + Markup("</svg>")


def legend() -> list[tuple[Markup, str]]:
    """A sample of every part, and what it stands for."""
    samples = {
        "own": _block("own", 0.0, 0.07, 4.0, 7.0),
        "told": _block("told", 0.0, 0.07, 4.0, 7.0) + Markup('<path class="reach" d="M20 7.5h10m0 -3.5v7"/>'),
        "floor": _block("floor leak", 0.0, 0.1, 3.5, 8.0)
        + Markup('<path class="err" d="M22 7.5h10m-10 -3v6m10 -6v6"/>'),
        "open": Markup('<path class="unseen undecided" d="M5 3.5v8m0 -4h24m0 -4v8"/>'),
        "unseen": Markup('<path class="unseen none" d="M5 3.5v8m0 -4h24m0 -4v8"/>'),
    }
    drawn = Markup('<svg class="sample" viewBox="0 0 36 15" aria-hidden="true">{}</svg>')
    return [(drawn.format(samples[name]), said) for name, said in LEGEND]


def in_words(one: Standing) -> str:
    """What the bar draws."""
    verdict, ceiling = one.verdict, one.ceiling
    parts = [one.words]
    if one.level.leaks:
        parts.append(f"gain {percent(verdict.gain)}, 95 % interval {percent(verdict.low)} to {percent(verdict.high)}")
    if ceiling is not None:
        parts.append(f"own columns explain {percent(ceiling.own)}, with the messages {percent(ceiling.full)}")
    return "; ".join(parts)


def _baseline_share(verdict: Verdict) -> float:
    """The best baseline's error as a share of the variance; all of it where the attack is exact and nothing tells."""
    if verdict.gain >= 1 - 1e-9:
        return 1.0
    return _within((1 - verdict.r2) / (1 - verdict.gain))


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))


def _block(name: str, start: float, end: float, top: float, height: float) -> Markup:
    if end <= start:
        return Markup("")
    left, right = EDGE + start * (WIDTH - 2 * EDGE), EDGE + end * (WIDTH - 2 * EDGE)
    return Markup('<rect class="{}" x="{}" y="{:g}" width="{}" height="{:g}"/>').format(
        name, f"{left:.1f}", top, f"{max(1.0, right - left):.1f}", height
    )


def _x(share: float) -> str:
    return f"{EDGE + share * (WIDTH - 2 * EDGE):.1f}"
