"""From findings to verdicts: column by column, about individuals first, with intervals over trials.

A column leaks when an attack removes part of the best baseline's error (or orders the rows) beyond chance. Chance is
guarded against over all columns of a setting at once: the limits that decide are Bonferroni's at 1 %; the
intervals that are shown are the usual 95 % ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from plumbob.audit.finding import Finding
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.score import ColumnScore

FAMILY = 0.01  # chance that any column of a setting is called leaking when none does
LEAST_GAIN = 0.01  # a smaller gain is not worth a word
LEAST_RANK = 0.1  # nor is a smaller lead in rank correlation
ALL_EXACT = 0.99  # share of cells within 1e-6 of the range from which a column counts as recovered

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Verdict:
    """What one attack learns about one column."""

    column: str
    level: str  # exact, leak, order, none
    words: str
    gain: float
    margin: float  # half-width of the 95 % interval of the gain
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
    model_accuracy: float
    rows: int
    known_columns: int
    unknown_columns: int
    classes: int
    seconds: float
    verdicts: tuple[Verdict, ...]

    @property
    def level(self) -> str:
        """The worst level of any column."""
        return max((verdict.level for verdict in self.verdicts), key=LEVELS.index, default="none")


LEVELS = ("none", "order", "leak", "exact")


def summarise(findings: Iterable[Finding]) -> list[Summary]:
    """One summary per setting, in the order in which settings first occur."""
    groups = group(findings, lambda f: Setting(f.data, f.protocol, f.threat, f.attack, f.defence, round(f.unknown, 6)))
    return [_summary(setting, trials) for setting, trials in groups.items()]


def group(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by key, keys in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _summary(setting: Setting, trials: list[Finding]) -> Summary:
    scores = [trial.score for trial in trials]
    error, error_margin = mean_and_margin([score.error for score in scores])
    baselines = {name: mean_and_margin([s.baselines[name] for s in scores]) for name in scores[0].baselines}
    gain, gain_margin = mean_and_margin([score.gain for score in scores])
    columns = group((column for score in scores for column in score.columns), lambda column: column.name)
    verdicts = [judge_column(parts, scores[0].metric, scores[0].rows, len(columns)) for parts in columns.values()]
    accuracies = [score.attack_accuracy for score in scores if score.attack_accuracy is not None]
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
        attack_accuracy=fmean(accuracies) if accuracies else None,
        model_accuracy=fmean(trial.model_accuracy for trial in trials),
        rows=scores[0].rows,
        known_columns=trials[0].known_columns,
        unknown_columns=trials[0].unknown_columns,
        classes=trials[0].classes,
        seconds=fmean(trial.seconds for trial in trials),
        verdicts=tuple(sorted(verdicts, key=lambda v: (LEVELS.index(v.level), v.gain), reverse=True)),
    )


def judge_column(parts: list[ColumnScore], metric: str, rows: int, family: int) -> Verdict:
    """The verdict on one column from its scores over trials; `family` columns are judged together."""
    gains = [part.gain for part in parts]
    row_error = fmean(part.gain_error for part in parts)
    gain, margin = mean_and_margin(gains, row_error)
    strict = 1 - 2 * FAMILY / max(1, 2 * family)  # two questions per column: values and order
    gain_floor = gain - mean_and_margin(gains, row_error, strict)[1]
    lead, lead_margin = mean_and_margin(
        [abs(part.rank) - part.own_rank for part in parts], (2 / max(1, rows - 1)) ** 0.5, strict
    )
    level = "none"
    if any(part.claims for part in parts) and all(part.exact >= ALL_EXACT for part in parts if part.claims):
        level = "exact" if fmean(part.baseline_error for part in parts) > 1e-12 else "none"
    elif gain_floor > LEAST_GAIN:
        level = "leak"
    elif lead - lead_margin > LEAST_RANK:
        level = "order"
    rank = fmean(part.rank for part in parts)
    return Verdict(
        column=parts[0].name,
        level=level,
        words=in_words(level, metric, gain, margin, rank),
        gain=gain,
        margin=margin,
        r2=fmean(part.r2 for part in parts),
        rank=rank,
        error=fmean(part.error for part in parts),
        best_baseline=parts[0].best_baseline,
        baseline_error=fmean(part.baseline_error for part in parts),
        exact=fmean(part.exact for part in parts),
        within_1=fmean(part.within_1 for part in parts),
        within_5=fmean(part.within_5 for part in parts),
        within_10=fmean(part.within_10 for part in parts),
        own_correlation=fmean(part.own_correlation for part in parts),
        score_correlation=fmean(part.score_correlation for part in parts),
        trials=len(parts),
    )


def in_words(level: str, metric: str, gain: float, margin: float, rank: float) -> str:
    """A verdict as a person would say it."""
    if level == "exact":
        return "recovered exactly" if metric == "values" else "its side of every threshold is known"
    if level == "leak":
        return f"better than guessing by {100 * gain:.0f} ± {100 * margin:.0f} %"
    if level == "order":
        return f"the order of the rows is learnt (rank correlation {abs(rank):.2f}), the values are not"
    return "no leak above baseline"
