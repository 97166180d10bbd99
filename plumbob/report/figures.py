"""Which charts a report shows: three questions, one small multiple per situation, each with its numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from plumbob.auditing.concluding.judging import SHARES
from plumbob.auditing.concluding.summarise import Summary, group
from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.report import canvas, charts, exposure, tally
from plumbob.report.answer import LEVEL_WORDS, Answer, ColumnAnswer
from plumbob.report.canvas import Axis
from plumbob.report.charts import Bar, Dot, Point, Series
from plumbob.report.phrases import baseline_words, count, label, number, percent, short
from plumbob.scoring.leak_levels import Level
from plumbob.scoring.metrics import rank_correlation

SHOWN_BARS = 30
FAR = 5.0  # an error this many times the worst baseline asks for a logarithmic scale
NOT_DRAWN = (Level.NOT_TESTED, Level.HELD)  # no gain was measured
LOWEST_GAIN = -0.25  # charts end here: how much worse than guessing an attack is matters to nobody


@dataclass(frozen=True)
class Figure:
    """One small multiple: drawings, a caption, and the same numbers for those who cannot see them."""

    heading: str
    caption: str
    drawings: tuple[Markup, ...]
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def attack_styles(summaries: Sequence[Summary]) -> dict[str, int]:
    """One colour and marker per attack, the same all over the page."""
    return {name: i for i, name in enumerate(dict.fromkeys(summary.setting.attack for summary in summaries))}


def error_figures(found: Sequence[Answer], styles: dict[str, int]) -> list[Figure]:
    """How does the error grow when more columns are unknown? Bars where only one share was tried."""
    figures = []
    for answer in found:
        for metric, summaries in group(answer.summaries, lambda s: s.metric).items():
            several = len({summary.setting.unknown for summary in summaries}) > 1
            draw = _error_lines if several else _error_bars
            figures.append(draw(where_words(answer, found), metric, summaries, styles))
    return figures


def column_figures(found: Sequence[Answer]) -> list[Figure]:
    """Which columns leak? The worst ones of every situation."""
    figures = []
    for answer in found:
        shown = answer.columns[:SHOWN_BARS]
        drawn = [c for c in shown if c.level not in NOT_DRAWN]
        if not drawn:
            continue  # an empty chart would look like one without leaks
        heading = where_words(answer, found)
        low = 0.0 if all(c.verdict.low >= 0 for c in drawn if c.level.leaks) else LOWEST_GAIN
        party = _common_party([short(c.verdict.column) for c in shown])
        axis = Axis("gain over the best baseline", low, 1.0, percent=True)
        bars = [_column_bar(column, party) for column in shown]
        drawing = charts.bar_chart(bars, axis, f"Gain per {answer.noun}: {heading}", names=170.0)
        caption = f"{count(answer.leaking, answer.noun)} of {len(answer.columns):,} {'leaks' if answer.leaking == 1 else 'leak'}"
        rest = (tally.unknown_words(answer.columns, None), tally.clear_words(answer.columns))
        caption += "".join(f"; {part}" for part in rest if part) + "."
        known = exposure.known_before_all(answer.columns, answer.noun)
        caption += f" {known}" if known else ""
        if party:
            caption += f" All are columns of {party.removesuffix('.')}."
        if len(shown) < len(answer.columns):
            caption += (
                f" The worst {len(shown)} of {len(answer.columns):,} {answer.noun}s are drawn; the table has all."
            )
        figures.append(Figure(heading, caption, (drawing,)))
    return figures


def undrawn(found: Sequence[Answer]) -> list[str]:
    """Situations without a chart, since nothing was tested there."""
    return [
        where_words(answer, found)
        for answer in found
        if not any(column.level not in NOT_DRAWN for column in answer.columns)
    ]


def correlation_figures(found: Sequence[Answer]) -> list[Figure]:
    """Do correlated columns leak more? Gain against the mean correlations of luo2021's Eq 16 and 17."""
    figures = []
    for answer in found:
        columns = [column for column in answer.columns if column.level not in NOT_DRAWN]
        if len(columns) < 2 or answer.noun == "tile":  # the mean over pixels would say nothing
            continue
        heading = where_words(answer, found)
        own = [column.verdict.own_correlation for column in columns]
        scores = [column.verdict.score_correlation for column in columns]
        drawings = tuple(
            _correlation(columns, values, name, heading)
            for values, name in (
                (own, "mean correlation with own columns (Eq 16)"),
                (scores, "mean correlation with the scores (Eq 17)"),
            )
        )
        gains = [column.verdict.gain for column in columns]
        missing = len(answer.columns) - len(columns)
        untested = f" {missing} more were not tested or are held already." if missing else ""
        caption = f"{count(len(gains), 'column')}, each at its strongest attack.{untested}"
        if len(gains) >= 5:
            caption += f" Rank correlation with the gain: {_rank(own, gains)} for the mean over own columns,"
            caption += f" {_rank(scores, gains)} for that over scores."
        rows = tuple(
            (short(c.verdict.column), f"{a:.2f}", f"{b:.2f}", percent(c.verdict.gain))
            for c, a, b in zip(columns, own, scores, strict=True)
        )
        figures.append(
            Figure(heading, caption, drawings, ("column", "mean over own columns", "mean over scores", "gain"), rows)
        )
    return figures


def where_words(answer: Answer, among: Sequence[Answer]) -> str:
    """Where, with its threat where the report knows several."""
    threats = {other.situation.threat for other in among}
    return answer.where + (f", seen by {short(answer.situation.threat)}" if len(threats) > 1 else "")


def _error_lines(heading: str, metric: str, summaries: list[Summary], styles: dict[str, int]) -> Figure:
    by_attack = group(summaries, lambda s: s.setting.attack)
    series = [
        Series(label(name), tuple(_attack_point(s) for s in sorted(parts, key=_share)), styles[name])
        for name, parts in by_attack.items()
    ]
    references = sorted(_references(summaries), key=_share)
    names = dict.fromkeys(name for s in references for name in s.baselines)
    for i, name in enumerate(names):
        points = tuple(_baseline_point(s, name) for s in references if name in s.baselines)
        series.append(Series(baseline_words(name), points, i, dashed=True))
    shares = [s.setting.unknown for s in references]
    x = Axis("share of columns that are unknown", min(shares), max(shares), percent=True)
    drawing = charts.line_chart(series, x, _error_axis(metric, series), f"{_metric_words(metric)} by share: {heading}")
    rows = tuple((one.name, percent(p.x), number(p.y), _margin(p)) for one in series for p in one.points)
    header = ("attack or baseline", "unknown", _metric_words(metric), "±")
    return Figure(heading, _error_caption(metric, references[-1], summaries), (drawing,), header, rows)


def _error_bars(heading: str, metric: str, summaries: list[Summary], styles: dict[str, int]) -> Figure:
    reference = _references(summaries)[0]
    tones = {name: f"s{style % charts.STYLES}" for name, style in styles.items()}
    points = [(label(s.setting.attack), _attack_point(s), tones[s.setting.attack]) for s in summaries]
    points += [(baseline_words(name), _baseline_point(reference, name), "base") for name in reference.baselines]
    bars = [Bar(name, p.y, p.low, p.high, number(p.y), p.title, tone) for name, p, tone in points]
    if metric in SHARES:
        axis = Axis(f"{_metric_words(metric)} (higher: more is learnt)", 0.0, 1.0, percent=True)
        bars = [Bar(b.name, b.value, b.low, b.high, percent(b.value), b.title, b.tone) for b in bars]
    else:
        worst = max(reference.baselines.values(), default=1.0)
        top = min(max(bar.high for bar in bars), 2 * worst)
        axis = Axis("mean squared error (lower: more is learnt)", 0.0, canvas.nice_top(top))
    drawing = charts.bar_chart(bars, axis, f"{_metric_words(metric)} of attacks and baselines: {heading}")
    rows = tuple((name, number(p.y), _margin(p)) for name, p, _ in points)
    header = ("attack or baseline", _metric_words(metric), "±")
    return Figure(heading, _error_caption(metric, reference, summaries), (drawing,), header, rows)


def _error_axis(metric: str, series: Sequence[Series]) -> Axis:
    if metric in SHARES:
        return Axis(f"{_metric_words(metric)} (higher: more is learnt)", 0.0, 1.0, percent=True)
    name = "mean squared error (lower: more is learnt)"
    top = max(p.high for one in series for p in one.points)
    worst = max((p.y for one in series if one.dashed for p in one.points), default=top)
    if top <= FAR * worst:
        return Axis(name, 0.0, canvas.nice_top(top))
    least = max(min(p.y for one in series for p in one.points), worst * 1e-3)
    return Axis(f"{name}, logarithmic", 10.0 ** np.floor(np.log10(least)), 10.0 ** np.ceil(np.log10(top)), log=True)


def _error_caption(metric: str, reference: Summary, summaries: list[Summary]) -> str:
    last = [s for s in summaries if s.setting.unknown == reference.setting.unknown]
    best = min(last, key=lambda s: (s.silent, s.error))
    baseline = min(reference.baselines, key=lambda name: reference.baselines[name], default="")
    if not baseline:
        return ""
    values = [_shown(metric, best.error), _shown(metric, reference.baselines[baseline])]
    texts = [percent(v) if metric in SHARES else number(v) for v in values]
    return (
        f"With {percent(reference.setting.unknown)} unknown: {label(best.setting.attack)} {texts[0]},"
        f" best baseline ({baseline_words(baseline)}) {texts[1]}."
    )


def _references(summaries: list[Summary]) -> list[Summary]:
    """The summary whose baselines are drawn, per share: the one with the most trials."""
    return [max(parts, key=lambda s: s.trials) for parts in group(summaries, _share).values()]


def _attack_point(s: Summary) -> Point:
    title = f"{label(s.setting.attack)}, {percent(s.setting.unknown)} unknown: "
    return _point(s, s.error, s.error_margin, title)


def _baseline_point(s: Summary, name: str) -> Point:
    title = f"{baseline_words(name)}, {percent(s.setting.unknown)} unknown: "
    return _point(s, s.baselines[name], s.baseline_margins[name], title)


def _point(s: Summary, error: float, margin: float, title: str) -> Point:
    value = _shown(s.metric, error)
    low, high = max(0.0, value - margin), value + margin
    words = f"{number(value)}" + (f" ± {number(margin)}" if s.trials > 1 else ", one trial")
    return Point(s.setting.unknown, value, low, min(1.0, high) if s.metric in SHARES else high, title + words)


def _shown(metric: str, error: float) -> float:
    return 1 - error if metric in SHARES else error


def _metric_words(metric: str) -> str:
    return SHARES.get(metric, "mean squared error")


def _margin(point: Point) -> str:
    return number(point.high - point.y) if point.high > point.low else "–"


def _share(summary: Summary) -> float:
    return summary.setting.unknown


def _common_party(names: Sequence[str]) -> str:
    """The party that all columns belong to, with its dot; empty where there are several, or one column only.

    >>> _common_party(["shop.age", "shop.income"]), _common_party(["shop.age", "bank.income"])
    ('shop.', '')
    """
    first = names[0].partition(".")[0] + "."
    return first if len(names) > 1 and all(name.startswith(first) and name != first for name in names) else ""


def _column_bar(column: ColumnAnswer, party: str = "") -> Bar:
    verdict, name = column.verdict, short(column.verdict.column).removeprefix(party)
    if column.level in NOT_DRAWN:
        return Bar(name, 0.0, 0.0, 0.0, LEVEL_WORDS[column.level], f"{name}: {column.words}", column.level.css)
    if not column.level.leaks:  # nothing was found: what is drawn is what may have gone unseen
        unseen = verdict.unseen or 0.0
        room = f"{'below' if column.level is Level.NONE else 'up to'} {whole_percent(unseen)} %"
        return Bar(name, 0.0, 0.0, unseen, room, f"{name}: {column.words}", column.level.css)
    gain = f"gain {percent(verdict.gain)}, {percent(verdict.low)} to {percent(verdict.high)}"
    title = f"{name}: {column.words} ({label(column.attack)}; {gain})"
    return Bar(name, verdict.gain, verdict.low, verdict.high, _gain_text(column), title, column.level.css)


def _gain_text(column: ColumnAnswer) -> str:
    """The gain where there is one; in a bar below guessing the level says all."""
    gain = column.verdict.gain
    if gain < 0 and column.level is not Level.LEAK:
        return LEVEL_WORDS[column.level]
    said = "" if column.level is Level.LEAK else f" {LEVEL_WORDS[column.level]}"
    return ("< −100 %" if gain < -1 else percent(gain)) + said


def _correlation(columns: Sequence[ColumnAnswer], values: Sequence[float], name: str, heading: str) -> Markup:
    low = 0.0 if all(column.verdict.gain >= 0 for column in columns) else LOWEST_GAIN
    x = Axis(name, 0.0, canvas.nice_top(max(values) if max(values) > 1e-9 else 1.0))
    y = Axis("gain over the best baseline", low, 1.0, percent=True)
    dots = [
        Dot(
            value,
            column.verdict.gain,
            f"{short(column.verdict.column)}: mean correlation {value:.2f}, gain {percent(column.verdict.gain)}",
            column.level,
        )
        for column, value in zip(columns, values, strict=True)
    ]
    return charts.scatter(dots, x, y, f"Gain against {name}: {heading}")


def _rank(values: Sequence[float], gains: Sequence[float]) -> str:
    rank = rank_correlation(np.asarray(values)[:, None], np.asarray(gains)[:, None])[0]
    return f"{rank:.2f}".replace("-", "−")
