"""What one attack learns about one column or the label: a level that its trials support, with an interval and a limit.

A trial shows a leak when the attack removes part of the best baseline's error, orders the rows, or hits cells exactly, beyond
the chance of having drawn these rows. Chance is guarded against over all columns, trials and settings at once (Bonferroni).
Where nothing was shown, `unseen` is the largest gain that could have been missed, with 95 % confidence:

    unseen = max(gain + t s,  (|tie| + 1.96 s_tie)^2)

the second term because an attacker may scale a noisy guess back: the share of variance explained is then its correlation
squared. Of labels it is |tie| + 1.96 s_tie: whoever swaps the names of two classes turns all errors into hits. A limit up to
the tolerated one is `none`, a larger one `undecided`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from scipy.special import bdtrc, ndtri, stdtrit

from plumbob.auditing.concluding.verdict_words import (
    LEAST_EXACT,
    exact_words,
    label_words,
    leak_words,
    none_words,
    not_tested_words,
    order_words,
    some_words,
    undecided_words,
)
from plumbob.auditing.running.finding import Finding
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.evidence import LEAST_EFFECTIVE
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.leak_levels import Level, worst
from plumbob.scoring.score import FLAT, ColumnScore

FAMILY = 0.03  # chance that any column of an audit is called leaking in any trial when none does
TESTS = 3  # of each column in each trial: values, order, exact hits
LIMIT = 0.10  # gain that may go unseen where the plan says nothing else
FEW = 5  # trials below which an interval over trials says little
LEAST_GAIN = 0.01  # a smaller gain is not worth a word
LEAST_RANK = 0.1  # nor is a smaller rank correlation
LUCKY = 0.05  # share of exact hits by luck above which they are no evidence of recovery
ALL_EXACT = 0.99  # share of cells within 1e-6 of the range from which a column counts as recovered
SHARES = {"branches": "correct branches", "orders": "right bins"}  # metrics whose error is a share of wrong claims
LABEL_LIMIT = 2.0  # standard errors above the most frequent class from which one trial's guess of labels counts


@dataclass(frozen=True)
class Verdict:
    """What one attack learns about one column."""

    column: str
    level: Level
    words: str
    gain: float = 0.0  # mean over the trials in which it leaks, or over all if it leaks in none
    low: float = 0.0  # 95 % interval of the gain
    high: float = 0.0
    leaking: int = 0  # trials in which it leaks
    r2: float = 0.0
    rank: float = 0.0
    error: float = 0.0
    best_baseline: str = ""
    baseline_error: float = 0.0
    exact: float = 0.0
    within_1: float = 0.0
    within_5: float = 0.0
    within_10: float = 0.0
    own_correlation: float = 0.0
    score_correlation: float = 0.0
    trials: int = 0
    two_values: bool = False  # whether guess or column has no more than two, so that there is no order to speak of
    rows_exact: float | None = None  # rows hit beyond the best baseline: exactly, within 1 %, and by chance
    rows_1: float | None = None
    rows_1_chance: float | None = None
    recovered: int = 0  # trials in which it is recovered exactly
    unseen: float | None = None  # where nothing was found: the largest gain that may have gone unseen (95 %)
    kind: str = ""  # of the column's values
    rows_exact_chance: float | None = None
    fixed_1: float | None = None  # share of cells that the best constant hits within 1, 5, 10 % of the range
    fixed_5: float | None = None
    fixed_10: float | None = None
    why: str = ""  # where it was not tested: why
    tie: float | None = None  # rank correlation of guess and truth beyond own columns, the mean over trials

    @property
    def margin(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class _Trial:
    """What one trial shows of a column."""

    level: Level
    gain: float
    low: float
    high: float
    unseen: float
    row_error: float


def judge_column(
    parts: list[ColumnScore], metric: str, rows: int, family: int, *, why_not: str = "", limit: float = LIMIT
) -> Verdict:
    """The verdict on one column from its scores over trials; `family` columns are judged together.

    `why_not` says why finding nothing would mean nothing: the attack does not address such columns, or it failed.
    """
    open_ = [part for part in parts if not part.held]
    if not open_:
        return _held(parts[0].name, parts[0].held, len(parts))
    parts = open_  # where columns are dealt anew, some trials give the curious parties what others hide
    chance = FAMILY / (TESTS * max(1, family) * len(parts))
    trials = [_trial(part, metric, chance, rows, limit) for part in parts]
    level = _together(trials, why_not)
    chosen = _shown(trials, level)
    shown = [parts[i] for i in chosen]
    gain, low, high = _interval([trials[i] for i in chosen])
    unseen = max((t.unseen for t in trials if t.level is not Level.NOT_TESTED), default=1.0)
    rank, tie = fmean(abs(part.rank) for part in shown), _mean([part.tie for part in shown])
    two_values = all(part.two_values for part in parts)
    leaking = sum(trial.level.leaks for trial in trials)
    some = "" if len(chosen) == len(parts) else f" in {len(chosen)} of {len(parts)} trials"
    exact, chance_exact = _mean([p.rows_exact for p in shown]), _mean([p.rows_exact_chance for p in shown])
    told = {
        Level.EXACT: lambda: exact_words(metric) + some,
        Level.EXACT_FOR_SOME: lambda: some_words(exact or 0.0, chance_exact or 0.0, rows) + some,
        Level.LEAK: lambda: leak_words(gain, low, high) + some,
        Level.ORDER: lambda: order_words((gain, low, high), rank, two_values, some, tie),
        Level.UNDECIDED: lambda: undecided_words(unseen),
        Level.NONE: lambda: none_words(unseen),
        Level.NOT_TESTED: lambda: not_tested_words(why_not),
    }
    return Verdict(
        column=parts[0].name,
        level=level,
        words=told[level](),
        gain=gain,
        low=low,
        high=high,
        leaking=leaking,
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
        recovered=sum(trial.level is Level.EXACT for trial in trials),
        rows_exact=exact,
        rows_1=_mean([part.rows_1 for part in shown]),
        rows_1_chance=_mean([part.rows_1_chance for part in shown]),
        unseen=unseen if level in (Level.NONE, Level.UNDECIDED) else None,
        kind=parts[0].kind,
        rows_exact_chance=chance_exact,
        fixed_1=_mean([part.fixed_1 for part in shown]),
        fixed_5=_mean([part.fixed_5 for part in shown]),
        fixed_10=_mean([part.fixed_10 for part in shown]),
        why=why_not if level is Level.NOT_TESTED else "",
        tie=tie,
    )


def _held(column: str, held: str, trials: int) -> Verdict:
    """Of a column that is a function of the curious parties' own: no message is needed for it."""
    return Verdict(column, Level.HELD, f"held already: {held}", trials=trials, why=held)


def _together(trials: Sequence[_Trial], why_not: str) -> Level:
    """The worst trial decides: each is another split that could be the real one."""
    level = worst(trial.level for trial in trials if trial.level is not Level.NOT_TESTED)
    return Level.NOT_TESTED if why_not and not level.leaks else level


def _shown(trials: Sequence[_Trial], level: Level) -> list[int]:
    """The trials that a verdict speaks of: those at its level or above; of no leak all that said something."""
    if level.leaks:
        return [i for i, trial in enumerate(trials) if trial.level.rank >= level.rank]
    told = [i for i, trial in enumerate(trials) if trial.level is not Level.NOT_TESTED]
    return told or list(range(len(trials)))


def _interval(trials: Sequence[_Trial]) -> tuple[float, float, float]:
    """The mean gain and its 95 % interval over trials and rows, never wider than what the single trials allow."""
    gains = [trial.gain for trial in trials]
    mean, margin = interval(gains, fmean(trial.row_error for trial in trials))
    low, high = max(mean - margin, min(t.low for t in trials)), min(mean + margin, max(t.high for t in trials))
    return mean, min(mean, low), max(mean, high)


def _trial(part: ColumnScore, metric: str, chance: float, rows: int, limit: float) -> _Trial:
    """What one trial shows of a column, beyond what happens with this chance."""
    freedom = max(1.0, (rows if part.effective is None else part.effective) - 1)
    reach = float(stdtrit(freedom, 0.975)) * part.gain_error
    low, high = part.gain - reach, min(1.0, part.gain + reach)
    unseen = _unseen(part, freedom)

    def at(level: Level, unseen: float = unseen) -> _Trial:
        return _Trial(level, part.gain, low, high, unseen, part.gain_error)

    if not part.claims:
        return at(Level.NOT_TESTED)  # nothing was said of it
    if part.baseline_error <= FLAT:
        return at(Level.NONE, 0.0)  # there was nothing to learn
    lucky = luck(part, metric) > chance
    if recovered(part) and not lucky:
        return at(Level.EXACT)
    if exact_for_some(part, chance):
        return at(Level.EXACT_FOR_SOME)
    surely = part.gain - float(stdtrit(freedom, 1 - chance)) * part.gain_error > LEAST_GAIN
    tied = part.tie is not None and abs(part.tie) > float(-ndtri(chance / 2)) * part.tie_error
    if not lucky and (surely or (tied and part.gain > LEAST_GAIN and low > 0)):
        return at(Level.LEAK)
    if _orders(part, tied, float(-ndtri(chance)), rows):
        return at(Level.ORDER)
    return at(Level.NONE if unseen <= limit else Level.UNDECIDED)


def _unseen(part: ColumnScore, freedom: float) -> float:
    """The largest gain that such a score leaves possible, with 95 % confidence."""
    if freedom + 1 < LEAST_EFFECTIVE:
        return 1.0
    room = part.gain + float(stdtrit(freedom, 0.95)) * part.gain_error
    if part.tie is not None:
        room = max(room, (abs(part.tie) + 1.96 * part.tie_error) ** 2)
    elif part.gain < 0:
        return 1.0  # worse than guessing, and nobody knows what the guess would be worth if it were scaled back
    return float(min(1.0, max(0.0, room)))


def _orders(part: ColumnScore, tied: bool, limit: float, rows: int) -> bool:
    """Whether the order of the rows is learnt, beyond what own columns tell."""
    if part.tie is not None:
        return tied and abs(part.tie) > LEAST_RANK
    rank_error = math.sqrt(2 / max(1, rows - 1))  # of the difference of two rank correlations
    return abs(part.rank) - part.own_rank - limit * rank_error > LEAST_RANK


def recovered(part: ColumnScore) -> bool:
    """Whether one trial gives a column away exactly; a rare value is not recovered by never naming it."""
    return bool(part.claims) and part.exact >= ALL_EXACT and part.gain > 0.9


def exact_for_some(part: ColumnScore, chance: float) -> bool:
    """Whether more people are hit exactly than luck explains: a binomial test on the rows that guessing misses."""
    if part.rows_exact is None or part.rows_exact_chance is None or not part.rows_missed:
        return False
    luck_share = min(1.0, (part.rows_exact_chance + 0.2) / part.rows_missed)
    if part.rows_exact < LEAST_EXACT or luck_share > LUCKY:
        return False
    return float(bdtrc(part.rows_exact - 1, part.rows_missed, luck_share)) <= chance


def luck(part: ColumnScore, metric: str) -> float:
    """The chance that guessing branches or bins makes as few mistakes in so many claims.

    An attack that is careful claims few, and one claim that is right by luck has no standard error. Values are claimed for all
    rows, so that `gain_error` is enough there.
    """
    if metric not in SHARES:
        return 0.0
    return float(bdtrc(round((1 - part.error) * part.claims) - 1, part.claims, 1 - part.baseline_error))


def judge_label(trials: Sequence[Finding], settings: int, *, why_not: str = "", limit: float = LIMIT) -> Verdict:
    """The verdict on the label, by the rule of columns: its baseline is to name the most frequent class always."""
    if all(trial.score.label_held for trial in trials):
        return replace(_held(LABEL, trials[0].score.label_held, len(trials)), kind="label")
    stern = float(-ndtri(FAMILY / (TESTS * max(1, settings) * len(trials))))
    judged = [_label_trial(trial, stern, limit) for trial in trials]
    level = _together(judged, why_not)
    chosen = _shown(judged, level)
    shown = [trials[i] for i in chosen]
    told = [(trial.score.label_accuracy or 0.0, trial.score.label_baseline or 0.0) for trial in shown]
    right, usual = fmean(share for share, _ in told), fmean(share for _, share in told)
    gain, low, high = _interval([judged[i] for i in chosen])
    unseen = max(trial.unseen for trial in judged)
    words = {Level.UNDECIDED: undecided_words(unseen), Level.NONE: none_words(unseen)}
    words[Level.NOT_TESTED] = not_tested_words(why_not)
    unnamed = all(trial.score.label_unnamed for trial in shown)
    return Verdict(
        column=LABEL,
        level=level,
        words=words.get(level) or label_words(right, usual, len(chosen), len(trials), unnamed),
        gain=gain,
        low=low,
        high=high,
        leaking=len(shown) if level.leaks else 0,
        error=1 - right,
        best_baseline="most_frequent_class",
        baseline_error=1 - usual,
        exact=right,
        within_1=right,
        within_5=right,
        within_10=right,
        trials=len(trials),
        two_values=True,
        recovered=sum(trial.level is Level.EXACT for trial in judged),
        unseen=unseen if level in (Level.NONE, Level.UNDECIDED) else None,
        kind="label",
        why=why_not if level is Level.NOT_TESTED else "",
    )


def _label_trial(finding: Finding, stern: float, limit: float) -> _Trial:
    """What one trial shows of the label. As with columns: what is recovered needs no further test, the rest does."""
    right, usual = finding.score.label_accuracy or 0.0, finding.score.label_baseline or 0.0
    rows = max(1, finding.score.rows)
    gained = label_gain(finding)
    gain = (right - usual) / (1 - usual) if usual < 1 else 0.0
    row_error = math.sqrt(right * (1 - right) / rows) / (1 - usual) if usual < 1 else 0.0
    unseen = gain + 1.645 * row_error
    if finding.score.label_tie is not None:
        unseen = max(unseen, finding.score.label_tie + 1.96 / math.sqrt(rows))  # names of classes may be swapped
    unseen = min(1.0, max(0.0, unseen))
    level = Level.NONE if unseen <= limit else Level.UNDECIDED
    if gained and right >= ALL_EXACT and gained > 0.9:
        level = Level.EXACT
    elif gained > LEAST_GAIN and right - usual > stern * _label_error(finding) and gain - 1.96 * row_error > 0:
        level = Level.LEAK
    return _Trial(level, gain, gain - 1.96 * row_error, min(1.0, gain + 1.96 * row_error), unseen, row_error)


def label_gain(finding: Finding) -> float:
    """The share of the wrong labels of guessing the most frequent class that the attack gets right; 0 within chance."""
    told, usual = finding.score.label_accuracy, finding.score.label_baseline
    if told is None or usual is None or usual >= 1:
        return 0.0
    return (told - usual) / (1 - usual) if told > usual + LABEL_LIMIT * _label_error(finding) else 0.0


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


def _mean(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return fmean(told) if told else None
