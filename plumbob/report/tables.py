"""Tables of the page that can be sorted: what each defence costs, every column, every setting."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from plumbob.auditing.concluding import judging as judge
from plumbob.auditing.concluding.defence_frontier import Frontier, Option
from plumbob.auditing.concluding.judging import Verdict
from plumbob.auditing.concluding.summarise import Summary
from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.report import answer as words
from plumbob.report import exposure, phrases, protection, risk
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.report.bars import bar
from plumbob.report.phrases import number, percent, plain
from plumbob.scoring.leak_levels import Level


@dataclass(frozen=True)
class Cell:
    """One cell of a sortable table: what is shown and what it is sorted by."""

    shown: str | Markup
    key: str | float
    kind: str = "text"  # text, name or number


@dataclass(frozen=True)
class Table:
    header: tuple[tuple[str, str, str], ...]  # label, kind, first direction when sorted
    rows: tuple[tuple[Cell, ...], ...]


def protection_table(choice: Frontier) -> Table:
    """What every defence leaves to learn, then what it costs; the recommended one first."""
    trees = choice.options[0].marks[0].metric == "branches"
    tiles = protection.pictures(choice)
    leaking, worst = ("Tiles leaking", "Worst tile") if tiles else ("Columns leaking", "Worst column")
    header = [("Defence", "name", "ascending")]
    header += [(name, "number", "descending") for name in (leaking, worst, "Leak")]
    header += [("Correct branches" if trees else "Error", "number", "descending" if trees else "ascending")]
    header += [(name, "number", "descending") for name in ("Accuracy", "Points lost")]
    header += [(name, "number", "ascending") for name in ("Training, s", "Prediction, s", "Bytes")]
    rank = {choice.recommended: 0, choice.if_known: 1}
    ordered = sorted(choice.options, key=lambda o: rank.get(o.defence, 3 if o.dominated_by else 2))
    return Table(tuple(header), tuple(_protection_cells(choice, option, trees) for option in ordered))


def _protection_cells(choice: Frontier, option: Option, trees: bool) -> tuple[Cell, ...]:
    worst, loss, extra = option.worst, choice.lost(option), protection.added(choice, option)
    name, said = phrases.short(option.defence), protection.status(choice, option)
    error = min((mark.error for mark in option.marks), key=lambda e: e.mean)
    hits = max((mark.hits for mark in option.marks), key=lambda h: h.mean)
    shows = (protection.seconds, protection.seconds, protection.size)
    costs = [_optional(value, show) for value, show in zip(extra or (None,) * 3, shows, strict=True)]
    by = f"{protection.box(worst)}, {phrases.label(worst.leak_attack)}"
    most = max(option.marks, key=lambda mark: (bool(mark.worst_column), mark.worst_gain.mean, mark.worst_gain.margin))
    chosen = Markup(' <b class="say">✓ {}</b>') if option is choice.chosen else Markup(' <small class="say">{}</small>')
    return (
        Cell(Markup("<bdi>{}</bdi>").format(name) + (chosen.format(said) if said else ""), name.casefold(), "name"),
        _counts(option),
        Cell(_said(*protection.worst_words(most)), most.worst_gain.mean, "number"),
        Cell(_said(protection.share(worst.leak), by), worst.leak.mean, "number"),
        Cell(protection.share(hits), hits.mean, "number") if trees else Cell(number(error.mean), error.mean, "number"),
        Cell(protection.share(option.accuracy, 1), option.accuracy.mean, "number"),
        _optional(None, str) if loss is None else Cell(protection.points(loss), loss.mean, "number"),
        *costs,
    )


def _counts(option: Option) -> Cell:
    """Columns by level, one below the other, so that they add up."""
    first, *others = protection.verdict(option).split(", ")
    return Cell(_said(first, *others), option.counts.leaking, "number")


def _said(first: str, *others: str) -> Markup:
    """A figure, and below it what belongs to it."""
    small = (Markup(' <small class="say">{}</small>').format(one) for one in others if one)
    return Markup("<span>{}</span>").format(first) + Markup("").join(small)


def settings_table(summaries: Sequence[Summary]) -> Table:
    fields = ("data", "protocol", "threat", "defence", "attack")
    varied = [f for f in fields if f == "attack" or len({getattr(s.setting, f) for s in summaries}) > 1]
    baselines = tuple(dict.fromkeys(name for s in summaries for name in s.baselines))
    header = [(field.capitalize(), "text", "ascending") for field in varied]
    header += [(label, "number", "ascending") for label in ("Unknown", "Trials", "Error")]
    header += [(phrases.baseline_words(name).capitalize(), "number", "ascending") for name in baselines]
    header += [(label, "number", "descending") for label in ("Gain", "R²", "Attack accuracy")]
    drawn = any(s.pictures for s in summaries)
    header += [
        (label, "number", "descending") for label in ("PSNR, dB", "SSIM", "Exact tiles", "Labels guessed") if drawn
    ]
    branching = any(s.branching for s in summaries)
    header += [("Right branches", "number", "descending")] if branching else []
    certified = any(s.certificate for s in summaries)
    header += [("Certificate", "text", "ascending")] if certified else []
    header += [(label, "number", "descending") for label in ("Bound (Eq 15)", "Model accuracy", "Seconds")]
    rows = []
    for s in summaries:
        cells = [Cell(phrases.label(getattr(s.setting, f)), getattr(s.setting, f)) for f in varied]
        cells += [_unknown_cell(s), Cell(f"{s.trials:,}", s.trials, "number"), _error(s)]
        cells += [_optional(s.baselines.get(name), number) for name in baselines]
        cells += [Cell(_gain(s), s.gain, "number"), _optional(None if s.metric in judge.SHARES else s.r2, number)]
        cells += [_optional(s.attack_accuracy, percent), *(_picture_cells(s) if drawn else ())]
        cells += [_optional(s.branching.get("right"), percent)] if branching else []
        cells += [Cell(phrases.plain(s.certificate) if s.certificate else "–", s.certificate)] if certified else []
        cells += [_optional(None if s.metric in judge.SHARES else s.bound, number)]
        cells += [_optional(s.model_accuracy, percent), _optional(s.seconds, number)]
        rows.append(tuple(cells))
    return Table(tuple(header), tuple(rows))


def _error(s: Summary) -> Cell:
    return _optional(None, number) if s.silent else _with_margin(s, s.error, s.error_margin)


def _picture_cells(s: Summary) -> list[Cell]:
    shown = s.pictures
    psnr, ssim, exact = (None,) * 3 if shown is None else (shown.psnr, shown.ssim, shown.exact)
    cells = [_optional(psnr, lambda value: f"{value:.1f}"), _optional(ssim, lambda value: f"{value:.3f}")]
    return [*cells, _optional(exact, percent), _optional(s.label_accuracy, percent)]


def _unknown_cell(s: Summary) -> Cell:
    of = s.known_columns + s.unknown_columns
    return Cell(f"{percent(s.setting.unknown)} ({s.unknown_columns} of {of})", s.setting.unknown, "number")


def _with_margin(s: Summary, value: float, margin: float) -> Cell:
    return Cell(phrases.with_margin(value, margin) if s.trials > 1 else number(value), value, "number")


def _gain(s: Summary) -> str:
    if s.gain < -1:
        return percent(s.gain)
    return f"{percent(s.gain)} ± {percent(s.gain_margin)}" if s.trials > 1 else percent(s.gain)


def _optional(value: float | None, show: Callable[[float], str]) -> Cell:
    return Cell("–", -1e300, "number") if value is None else Cell(show(value), value, "number")


def column_table(columns: Sequence[ColumnAnswer], found: Sequence[Answer]) -> Table:
    """Every column, and the label, with its bar."""
    sets = len({column.situation.data for column in columns}) > 1
    defences = len({column.situation.defence for column in columns}) > 1
    threats = len({answer.situation.threat for answer in found}) > 1
    protocols = len({answer.situation.protocol for answer in found}) > 1
    header = (
        (words.nouns(found).capitalize(), "name", "ascending"),
        ("Verdict", "text", "descending"),
        ("Gain", "gains", "descending"),
        *((("Within 1 / 5 / 10 %", "hits", "descending"),) if any(map(_hits, columns)) else ()),
        ("Strongest attack", "text", "ascending"),
    )
    rows = []
    for column in columns:
        of = [phrases.short(column.situation.data)] * sets + [
            phrases.defence_words(column.situation.defence)
        ] * defences
        by = [phrases.label(column.situation.protocol)] * protocols
        by += [f"{column.learner} ({phrases.short(column.situation.threat)})"] * threats
        rows.append(_column_cells(column, ", ".join(of), ", ".join(by), len(header) > 4))
    return Table(header, tuple(rows))


def column_caption(columns: Sequence[ColumnAnswer], noun: str) -> str:
    distinct = phrases.count(len({(c.situation.data, c.verdict.column) for c in columns if not c.is_label}), noun)
    label = " and the label" if any(column.is_label for column in columns) else ""
    defences = len({column.situation.defence for column in columns})
    return f"{distinct}{label}, worst first" if defences < 2 else f"{distinct}{label}, once per defence, worst first"


def _column_cells(column: ColumnAnswer, of: str, by: str, hits: bool) -> tuple[Cell, ...]:
    verdict, name, level = column.verdict, plain(column.verdict.column), column.level
    said = "; ".join(
        filter(
            None,
            (
                column.words.removeprefix(f"{level.value}: "),
                _times(column),
                risk.of_column(verdict, column.rows) if level.leaks else "",
                exposure.known_before(column),
                exposure.of_column(column),
            ),
        )
    )
    badge = Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span> <span class="say">{}</span>')
    under = Markup(' <small class="say"><bdi>{}</bdi></small>').format(of) if of else ""
    attack = phrases.label(column.attack) if column.attack else "none was run"
    beside = Markup(' <span class="say"><bdi>{}</bdi></span>').format(by) if by else ""
    return (
        Cell(Markup("<bdi>{}</bdi>").format(phrases.short(name)) + under, name.casefold(), "name"),
        Cell(
            badge.format(level.css, words.LEVEL_ICONS[level], column.badge, bound(said)),
            level.rank * 1e6 + max(-1e5, column.severity[1]),
        ),
        Cell(_gain_words(column) + bar(column), column.exposed or verdict.gain, "gains"),
        *((Cell(_hits(column) or "–", verdict.within_5, "hits"),) if hits else ()),
        Cell(Markup("<span>{}</span>{}").format(attack, beside), attack),
    )


def _times(column: ColumnAnswer) -> str:
    """In how many trials, where the verdict does not say it: a column may be hidden in few of them."""
    if not column.attack or "trials" in column.words or not column.verdict.trials:
        return ""
    trials = column.verdict.trials
    return (
        "hidden in one trial only"
        if trials == 1
        else f"all {trials} trials that hid it"
        if column.level.leaks
        else f"{trials} trials"
    )


def _gain_words(column: ColumnAnswer) -> Markup:
    """The gain with its interval; where nothing was found, what may have gone unseen."""
    verdict = column.verdict
    if column.level.leaks:
        shown, under = percent(verdict.gain), ""
        if column.level in (Level.ORDER, Level.EXACT_FOR_SOME):  # of others the verdict has it
            under = f"{percent(verdict.low)} to {percent(verdict.high)}"
    elif column.level is Level.HELD:
        shown, under = "nothing to learn", ""
    elif verdict.unseen is None:
        shown, under = "not tested", ""
    else:
        shown, under = f"below {whole_percent(verdict.unseen)} %", ""
        if column.level is not Level.NONE:
            shown = f"up to {whole_percent(verdict.unseen)} %"
    small = Markup(' <small class="say">{}</small>').format(under) if under else ""
    told = exposure.figures(column)
    ceiling = Markup(' <small class="say ceiling">{}</small>').format(bound(told)) if told else ""
    return Markup('<span class="num">{}</span>{}{}').format(shown, small, ceiling)


def _hits(column: ColumnAnswer) -> Markup:
    """Cells hit within 1, 5 and 10 % of the range, above what a fixed guess hits; empty where there is no such thing."""
    verdict = column.verdict
    if column.metric != "values" or column.is_label or verdict.two_values or column.level is Level.NOT_TESTED:
        return Markup("")
    told = [_shares(verdict, "within"), _shares(verdict, "fixed")]
    lines = [f"{told[0]} %", f"fixed guess {told[1]} %"] if told[1] else [f"{told[0]} %"]
    return Markup('<span class="num">{}</span>').format(lines[0]) + Markup("").join(
        Markup(' <small class="say">{}</small>').format(line) for line in lines[1:]
    )


def _shares(verdict: Verdict, kind: str) -> str:
    shares = [getattr(verdict, f"{kind}_{window}") for window in (1, 5, 10)]
    return "" if None in shares else " / ".join(f"{100 * share:.0f}" for share in shares)


def bound(text: str) -> str:
    """Numbers kept on one line with what belongs to them."""
    text = text.replace(" %", "\u00a0%").replace(" ± ", "\u00a0±\u00a0")
    return re.sub(r"(?<=\d) of (?=\d)", "\u00a0of\u00a0", text)
