"""Before and after: every column without defence and with the recommended one, in one chart, and what remains."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from plumbob.auditing.concluding.defence_frontier import Frontier
from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.report import canvas
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.report.canvas import Axis
from plumbob.report.figures import LOWEST_GAIN, SHOWN_BARS, Figure
from plumbob.report.phrases import count, percent, sentence_list, short

READ = (
    "A vertical tick is the gain without defence, the mark is the gain with it; the line between is what the "
    "defence takes away. Each column at its worst over all threats and attacks."
)


def before_after(choice: Frontier, found: Sequence[Answer]) -> Figure | None:
    """The chart of one recommendation; None where nothing is recommended or nothing stands beside it."""
    if choice.reference is None or choice.chosen is None or choice.chosen is choice.reference:
        return None
    before, after = (_worst(choice, name, found) for name in ("none", choice.recommended))
    shared = sorted((name for name in before if name in after), key=lambda n: before[n].severity, reverse=True)
    if not shared:
        return None
    pairs = [(before[name], after[name]) for name in shared]
    shown = pairs[:SHOWN_BARS]
    lows = [one.verdict.gain for pair in shown for one in pair]
    axis = Axis("gain over the best baseline", 0.0 if min(lows) >= 0 else LOWEST_GAIN, 1.0, percent=True)
    defence = short(choice.recommended)
    drawing = _dumbbells(shown, axis, f"Gain per column without defence and with {defence}")
    rows = tuple((short(a.verdict.column), percent(a.verdict.gain), percent(b.verdict.gain), b.badge) for a, b in pairs)
    header = ("column", "without defence", f"with {defence}", "what remains")
    said = remains(pairs, defence, lost=len(before) - len(shared), label=_label(choice, found))
    return Figure(f"Before and after: {defence}", said, (drawing,), header, rows)


def remains(
    pairs: Sequence[tuple[ColumnAnswer, ColumnAnswer]],
    defence: str,
    *,
    lost: int = 0,
    label: ColumnAnswer | None = None,
) -> str:
    """What is still learnt, in one sentence: of columns (`lost` were not judged under the defence) and the label."""
    target = f" Of the label: {label.words}." if label is not None else ""
    return f"{_remains(pairs, defence, lost)}{target}"


def _remains(pairs: Sequence[tuple[ColumnAnswer, ColumnAnswer]], defence: str, lost: int) -> str:
    leaked = sum(before.level.leaks for before, _ in pairs)
    left = [after for _, after in pairs if after.level.leaks]
    said = f"Without defence {leaked} of {count(len(pairs), 'column')} leak, with {defence} {len(left)}."
    unknown = lost + sum(not after.level.known for _, after in pairs)
    if not left and unknown:
        return f"{said} What remains is not known: {unknown} of {lost + len(pairs)} are undecided or not tested."
    if not left:
        unseen = whole_percent(max(after.verdict.unseen or 0.0 for _, after in pairs))
        return f"{said} What remains: no leak above {unseen} % in any column."
    worst = sorted(left, key=lambda c: c.severity, reverse=True)[:3]
    named = sentence_list([f"{short(c.verdict.column)} ({c.badge}, {percent(c.verdict.gain)})" for c in worst])
    more = f" and {len(left) - len(worst)} more" if len(left) > len(worst) else ""
    return f"{said} What remains: {named}{more}."


def _label(choice: Frontier, found: Sequence[Answer]) -> ColumnAnswer | None:
    """What is known of the label under the recommended defence, at worst."""
    place = (choice.data, choice.protocol, choice.recommended)
    under = [a for a in found if (a.situation.data, a.situation.protocol, a.situation.defence) == place]
    return max((a.label for a in under if a.label is not None), key=lambda one: one.severity, default=None)


def _worst(choice: Frontier, defence: str, found: Sequence[Answer]) -> dict[str, ColumnAnswer]:
    """Every column at its worst under one defence."""
    worst: dict[str, ColumnAnswer] = {}
    for answer in found:
        place = answer.situation
        if (place.data, place.protocol, place.defence) != (choice.data, choice.protocol, defence):
            continue
        for column in answer.columns:
            kept = worst.get(column.verdict.column)
            if kept is None or column.severity > kept.severity:
                worst[column.verdict.column] = column
    return worst


def _dumbbells(pairs: Sequence[tuple[ColumnAnswer, ColumnAnswer]], x: Axis, title: str) -> Markup:
    """One line per column: a tick before, and after it a mark shaped by its level."""
    step, top = 23.0, 8.0
    bottom = top + step * len(pairs)
    names = [short(before.verdict.column) for before, _ in pairs]
    left = min(145.0, max(canvas.text_width(name) for name in names) + 14)
    texts = [f"{_points(before)} → {_points(after)}" for before, after in pairs]
    right = canvas.WIDTH - max(canvas.text_width(text) for text in texts) - 14
    parts = [canvas.x_axis(x, left, right, bottom, top)]
    for i, ((before, after), name, text) in enumerate(zip(pairs, names, texts, strict=True)):
        y = top + step * (i + 0.5)
        start, end = (x.place(one.verdict.gain, left, right) for one in (before, after))
        tip = f"{name}: {before.words} without defence; {after.words} with it"
        parts.append(canvas.text(left - 8, y + 4, canvas.fit(name, left - 10), "name end", title=name))
        parts.append(Markup('<path class="zero" d="M{:.1f} {:.1f}H{:.1f}"/>').format(start, y, end))
        parts.append(canvas.marker("tick", start, y, 4.5, f"mark {before.level.css}", tip))
        parts.append(canvas.marker(canvas.LEVEL_SHAPES[after.level], end, y, 4.5, f"mark {after.level.css}", tip))
        parts.append(canvas.text(right + 8, y + 4, text, "value"))
    return canvas.svg(bottom + 44, title, parts)


def _points(column: ColumnAnswer) -> str:
    return "< −100 %" if column.verdict.gain < -1 else percent(column.verdict.gain)
