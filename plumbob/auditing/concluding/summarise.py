"""From findings to verdicts: column by column, about individuals first, with intervals over trials.

A column leaks in a trial when the attack removes part of the best baseline's error, or orders the rows, beyond the chance
of having drawn these rows. Chance is guarded against over all columns, trials and settings of an audit at once: the
limits that decide are Bonferroni's at 1 %. What is shown are 95 % intervals over trials and rows, or, for fewer than
five trials, the spread that was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean
from typing import TypeVar

from scipy.special import bdtrc, ndtri

from plumbob.auditing.concluding.ceilings import attacked
from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.running.finding import Finding
from plumbob.scoring.images import ImageScore
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.leak_levels import Level, worst
from plumbob.scoring.score import ColumnScore

FAMILY = 0.01  # chance that any column of an audit is called leaking in any trial when none does
FEW = 5  # trials below which an interval over trials says little
LEAST_GAIN = 0.01  # a smaller gain is not worth a word
LEAST_RANK = 0.1  # nor is a smaller lead in rank correlation
ALL_EXACT = 0.99  # share of cells within 1e-6 of the range from which a column counts as recovered
SHARES = {"branches": "correct branches", "orders": "right bins"}  # metrics whose error is a share of wrong claims
UNPROVEN = "fails the stricter test that covers all columns, trials and settings at once"
NOT_KNOWN = "not known"  # of a column in which an attack with limits found nothing
LABEL = "the label"  # as reports name it among columns
LABEL_LIMIT = 2.0  # standard errors above the most frequent class from which one trial's guess of labels counts

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Verdict:
    """What one attack learns about one column."""

    column: str
    level: Level
    words: str
    gain: float  # mean over the trials in which it leaks, or over all if it leaks in none
    margin: float  # half-width of the 95 % interval of the gain
    leaking: int  # trials in which it leaks
    r2: float
    rank: float
    error: float
    best_baseline: str
    baseline_error: float
    exact: float
    within_1: float
    within_5: float
    within_10: float
    own_correlation: float
    score_correlation: float
    trials: int
    two_values: bool = False  # whether guess or column has no more than two, so that there is no order to speak of
    rows_exact: float | None = None  # rows hit beyond the best baseline: exactly, within 1 %, and by chance
    rows_1: float | None = None
    rows_1_chance: float | None = None
    recovered: int = 0  # trials in which it is recovered exactly


@dataclass(frozen=True)
class Situation:
    """What a report answers and a gate checks: everything of a setting but the attack and the share of unknown columns."""

    data: str
    protocol: str
    threat: str
    defence: str


def situation_of(part: Setting | Finding) -> Situation:
    return Situation(part.data, part.protocol, part.threat, part.defence)


@dataclass(frozen=True)
class Setting:
    """What a group of trials has in common."""

    data: str
    protocol: str
    threat: str
    attack: str
    defence: str
    unknown: float


@dataclass(frozen=True)
class Pictures:
    """How good recovered pictures are, the mean over trials."""

    psnr: float
    psnr_of_mean_mse: float
    constant_psnr: float
    ssim: float
    exact: float

    @property
    def words(self) -> str:
        return f"{self.psnr:.1f} dB (share exact {100 * self.exact:.0f} %)"


@dataclass(frozen=True)
class Summary:
    """All trials of one setting: the mean error with its interval, and a verdict per column, worst first."""

    setting: Setting
    metric: str
    trials: int
    error: float
    error_margin: float
    baselines: dict[str, float]
    baseline_margins: dict[str, float]
    gain: float
    gain_margin: float
    r2: float
    bound: float
    sharp_bound: float
    attack_accuracy: float | None
    model_accuracy: float | None
    rows: int
    known_columns: int
    unknown_columns: int
    classes: int
    seconds: float
    verdicts: tuple[Verdict, ...]
    claims: int = 1  # cells or branches that the guesses spoke of; an attack that found nothing to read speaks of none
    pictures: Pictures | None = None
    label_accuracy: float | None = None  # share of rows whose class the curious guessed
    label_baseline: float | None = None
    label: Verdict | None = None  # on the label, where the curious guessed it
    certificate: str = ""
    untried: Untried | None = None  # what the attack does not handle in some trial: not known, where it finds nothing
    rows_at_risk: dict[str, float] = field(default_factory=dict)  # means over trials

    @property
    def level(self) -> Level:
        """The worst level of any column."""
        return worst(verdict.level for verdict in self.verdicts)


def summarise(findings: Iterable[Finding]) -> list[Summary]:
    """One summary per setting, in the order in which settings first occur."""
    groups = group(
        attacked(findings), lambda f: Setting(f.data, f.protocol, f.threat, f.attack, f.defence, round(f.unknown, 6))
    )
    return [_summary(setting, trials, len(groups)) for setting, trials in groups.items()]


def group(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by key, keys in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _untried(trials: Sequence[Finding]) -> Untried | None:
    """What an attack does not handle. One trial is enough: each is another split that could be the real one."""
    reasons = [trial.score.untried for trial in trials if trial.score.untried]
    if not reasons:
        return None
    some = "" if len(reasons) == len(trials) else f", in {len(reasons)} of {len(trials)} trials"
    return Untried(trials[0].attack, f"{reasons[0]}{some}")


def _summary(setting: Setting, trials: list[Finding], settings: int) -> Summary:
    limit = _untried(trials)
    labelled = [t for t in trials if t.score.label_accuracy is not None and t.score.label_baseline is not None]
    spoken = [trial for trial in trials if any(column.claims for column in trial.score.columns)]
    trials = spoken or trials  # a tree that asks for no unknown column says nothing, right or wrong
    scores = [trial.score for trial in trials]
    error, error_margin = mean_and_margin([score.error for score in scores])
    baselines = {name: mean_and_margin([s.baselines[name] for s in scores]) for name in scores[0].baselines}
    gain, gain_margin = mean_and_margin([score.gain for score in scores])
    columns = group((column for score in scores for column in score.columns), lambda column: column.name)
    verdicts = [
        judge_column(parts, scores[0].metric, min(s.rows for s in scores), settings * len(columns))
        for parts in columns.values()
    ]
    verdicts = [replace(v, words=NOT_KNOWN) if limit and not v.level.leaks else v for v in verdicts]
    return Summary(
        setting=setting,
        metric=scores[0].metric,
        trials=len(trials),
        error=error,
        error_margin=error_margin,
        baselines={name: mean for name, (mean, _) in baselines.items()},
        baseline_margins={name: margin for name, (_, margin) in baselines.items()},
        gain=gain,
        gain_margin=gain_margin,
        r2=fmean(score.r2 for score in scores),
        bound=fmean(score.bound for score in scores),
        sharp_bound=fmean(score.sharp_bound for score in scores),
        attack_accuracy=_mean([score.attack_accuracy for score in scores]),
        model_accuracy=_mean([trial.model_accuracy for trial in trials]),
        rows=scores[0].rows,
        known_columns=trials[0].known_columns,
        unknown_columns=trials[0].unknown_columns,
        classes=trials[0].classes,
        seconds=fmean(trial.seconds for trial in trials),
        verdicts=tuple(sorted(verdicts, key=lambda v: (v.level.rank, v.gain), reverse=True)),
        claims=sum(column.claims for score in scores for column in score.columns),
        pictures=_pictures([score.images for score in scores if score.images is not None]),
        label_accuracy=_mean([trial.score.label_accuracy for trial in labelled]),
        label_baseline=_mean([trial.score.label_baseline for trial in labelled]),
        label=judge_label(labelled, settings) if labelled else None,
        certificate=_certificate([trial.certificate for trial in trials]),
        untried=limit,
        rows_at_risk=_means([score.rows_at_risk for score in scores]),
    )


def _means(counts: list[dict[str, float]]) -> dict[str, float]:
    """Counts of rows, the mean over trials; nothing where a trial of an older version did not count."""
    shared = [name for name in counts[0] if all(name in one for one in counts)]
    return {name: fmean(one[name] for one in counts) for name in shared}


def _certificate(told: list[str]) -> str:
    """What attacks said of their finds; of trials that differ the first, which says so."""
    return told[0] if len(set(told)) == 1 else f"{told[0]} (the first of {len(told)} trials)"


def _pictures(images: list[ImageScore]) -> Pictures | None:
    if not images:
        return None
    return Pictures(**{f.name: fmean(getattr(image, f.name) for image in images) for f in fields(Pictures)})


def _mean(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return fmean(told) if told else None


def judge_column(parts: list[ColumnScore], metric: str, rows: int, family: int) -> Verdict:
    """The verdict on one column from its scores over trials; `family` columns are judged together."""
    tests = 2 * max(1, family) * len(parts)  # values and order, every column, every trial
    levels = [_level(part, metric, FAMILY / tests, rows) for part in parts]
    level = worst(levels)  # one trial is enough: each is another split that could be the real one
    leaking = [part for part, found in zip(parts, levels, strict=True) if found.leaks]
    exact = levels.count(Level.EXACT)
    shown = leaking or parts
    gain, margin = interval([part.gain for part in shown], fmean(part.gain_error for part in shown))
    rank = fmean(abs(part.rank) for part in shown)
    two_values = all(part.two_values for part in parts)
    return Verdict(
        column=parts[0].name,
        level=level,
        words=in_words(level, metric, gain, margin, rank, exact or len(leaking), len(parts), two_values),
        gain=gain,
        margin=margin,
        leaking=len(leaking),
        r2=fmean(part.r2 for part in shown),
        rank=rank,
        error=fmean(part.error for part in shown),
        best_baseline=parts[0].best_baseline,
        baseline_error=fmean(part.baseline_error for part in shown),
        exact=fmean(part.exact for part in shown),
        within_1=fmean(part.within_1 for part in shown),
        within_5=fmean(part.within_5 for part in shown),
        within_10=fmean(part.within_10 for part in shown),
        own_correlation=fmean(part.own_correlation for part in shown),
        score_correlation=fmean(part.score_correlation for part in shown),
        trials=len(parts),
        two_values=two_values,
        recovered=exact,
        rows_exact=_mean([part.rows_exact for part in shown]),
        rows_1=_mean([part.rows_1 for part in shown]),
        rows_1_chance=_mean([part.rows_1_chance for part in shown]),
    )


def judge_label(trials: Sequence[Finding], settings: int) -> Verdict:
    """The verdict on the label, by the rule of columns: its baseline is to name the most frequent class always."""
    limit = float(-ndtri(FAMILY / (max(1, settings) * len(trials))))
    levels = [_label_level(trial, limit) for trial in trials]
    level = worst(levels)
    shown = [trial for trial, found in zip(trials, levels, strict=True) if found.leaks] or list(trials)
    told = [(trial.score.label_accuracy or 0.0, trial.score.label_baseline or 0.0) for trial in shown]
    right, usual = fmean(share for share, _ in told), fmean(share for _, share in told)
    rows = min(trial.score.rows for trial in shown)
    row_error = fmean(math.sqrt(r * (1 - r) / max(1, rows)) / (1 - u) if u < 1 else 0.0 for r, u in told)
    gain, margin = interval([(r - u) / (1 - u) if u < 1 else 0.0 for r, u in told], row_error)
    exact = levels.count(Level.EXACT)
    return Verdict(
        column=LABEL,
        level=level,
        words=label_words(level, right, usual, exact or len(shown), len(trials)),
        gain=gain,
        margin=margin,
        leaking=len(shown) if level.leaks else 0,
        r2=0.0,
        rank=0.0,
        error=1 - right,
        best_baseline="most_frequent_class",
        baseline_error=1 - usual,
        exact=right,
        within_1=right,
        within_5=right,
        within_10=right,
        own_correlation=0.0,
        score_correlation=0.0,
        trials=len(trials),
        two_values=True,
        recovered=exact,
    )


def label_gain(finding: Finding) -> float:
    """The share of the wrong labels of guessing the most frequent class that the attack gets right; 0 within chance."""
    told, usual = finding.score.label_accuracy, finding.score.label_baseline
    if told is None or usual is None or usual >= 1:
        return 0.0
    return (told - usual) / (1 - usual) if told > usual + LABEL_LIMIT * _label_error(finding) else 0.0


def label_words(level: Level, right: float, usual: float, leaking: int, trials: int) -> str:
    """What is known of the label, in words.

    >>> label_words(Level.LEAK, 0.91, 0.5, 3, 3)
    '91 % of the labels guessed, where the most frequent class alone gets 50 %'
    """
    if not level.leaks:
        return "no leak above baseline"
    some = "" if leaking == trials else f" in {leaking} of {trials} trials"
    said = "every label is known" if right == 1 else f"{min(99, round(100 * right))} % of the labels guessed"
    return f"{said}{some}, where the most frequent class alone gets {100 * usual:.0f} %"


def _label_level(finding: Finding, limit: float) -> Level:
    """What one trial shows of the label. As with columns: what is recovered needs no further test, the rest does."""
    gained = label_gain(finding)
    if gained and (finding.score.label_accuracy or 0.0) >= ALL_EXACT and gained > 0.9:
        return Level.EXACT
    ahead = (finding.score.label_accuracy or 0.0) - (finding.score.label_baseline or 0.0)
    return Level.LEAK if gained > LEAST_GAIN and ahead > limit * _label_error(finding) else Level.NONE


def _label_error(finding: Finding) -> float:
    """The standard error of naming the most frequent class."""
    usual = finding.score.label_baseline or 0.0
    return math.sqrt(usual * (1 - usual) / max(1, finding.score.rows))


def interval(values: Sequence[float], row_error: float) -> tuple[float, float]:
    """A mean over trials and its margin: a 95 % interval, or the spread seen where trials are few."""
    mean, margin = mean_and_margin(values, row_error)
    if 1 < len(values) < FEW:
        margin = max(abs(value - mean) for value in values) + 1.96 * row_error
    return mean, margin


def recovered(part: ColumnScore) -> bool:
    """Whether one trial gives a column away exactly; a rare value is not recovered by never naming it."""
    return bool(part.claims) and part.exact >= ALL_EXACT and part.gain > 0.9


def luck(part: ColumnScore, metric: str) -> float:
    """The chance that guessing branches or bins makes as few mistakes in so many claims.

    An attack that is careful claims few, and one claim that is right by luck has no standard error. Values are claimed for all
    rows, so that `gain_error` is enough there.
    """
    if metric not in SHARES:
        return 0.0
    return float(bdtrc(round((1 - part.error) * part.claims) - 1, part.claims, 1 - part.baseline_error))


def _level(part: ColumnScore, metric: str, chance: float, rows: int) -> Level:
    """What one trial shows of a column, beyond what happens with this chance."""
    if not part.claims or part.baseline_error <= 1e-12:
        return Level.NONE  # nothing was said of it, or there was nothing to learn
    limit = float(-ndtri(chance))
    if luck(part, metric) <= chance:
        if recovered(part):
            return Level.EXACT
        if part.gain - limit * part.gain_error > LEAST_GAIN:
            return Level.LEAK
    rank_error = math.sqrt(2 / max(1, rows - 1))  # of the difference of two rank correlations
    return Level.ORDER if abs(part.rank) - part.own_rank - limit * rank_error > LEAST_RANK else Level.NONE


def in_words(
    level: Level,
    metric: str,
    gain: float,
    margin: float,
    rank: float,
    leaking: int,
    trials: int,
    two_values: bool = False,
) -> str:
    """A verdict as a person would say it.

    >>> in_words(Level.LEAK, "values", 0.38, 0.05, 0.7, 5, 5)
    'better than guessing by 38 ± 5 %'
    >>> in_words(Level.LEAK, "values", 0.38, 0.05, 0.7, 2, 5)
    'better than guessing by 38 ± 5 % in 2 of 5 trials'
    >>> in_words(Level.EXACT, "values", 0.98, 0.02, 1.0, 9, 10)
    'recovered exactly in 9 of 10 trials'
    >>> in_words(Level.ORDER, "values", -0.1, 0.05, 0.7, 1, 1)
    'the order of the rows is learnt (rank correlation 0.70), the values are not'
    """
    some = "" if leaking in (0, trials) else f" in {leaking} of {trials} trials"
    if level is Level.EXACT:
        known = {"branches": "its side of every threshold is known", "orders": "the bin of every row is known"}
        return known.get(metric, "recovered exactly") + some
    if level is Level.LEAK:
        by = "more than 99 %" if gain > 0.99 else f"{100 * gain:.0f} ± {100 * margin:.0f} %"
        return f"better than guessing by {by}{some}"
    if level is Level.ORDER:
        what = "high values are told from low ones" if two_values else "the order of the rows is learnt"
        rest = "the values are not learnt" if two_values else "the values are not"
        if gain - margin > 0:
            rest = f"of the values there is a hint: a gain of {100 * gain:.0f} ± {100 * margin:.0f} % {UNPROVEN}"
        return f"{what} (rank correlation {rank:.2f}){some}, {rest}"
    return "no leak above baseline"
