"""The frontier: what each defence costs in accuracy, time and bytes, and what still leaks under it.

One option per defence, one mark per option and threat. Errors, hits and leaks are those of the strongest attack, means
over the shares of unknown columns, with intervals over trials. Trials of different defences share rows, splits and seeds, so
two options are compared trial by trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

from plumbob.auditing.concluding.ceilings import attacked
from plumbob.auditing.concluding.inconclusive import inconclusive
from plumbob.auditing.concluding.summarise import Summary, group, label_gain, situation_of, summarise
from plumbob.auditing.running.finding import Finding
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.leak_levels import Level, worst

SMALL_LOSS = 0.01  # accuracy that may be lost where no option stops the leak
ROUNDING = 1e-9  # sums of equal numbers in another order
Reason = Literal["unneeded", "safe", "least", "nothing"]


@dataclass(frozen=True)
class Estimate:
    """A mean over trials and the half-width of its 95 % interval."""

    mean: float
    margin: float
    trials: Mapping[int, float]

    def less(self, other: Estimate) -> Estimate:
        """The difference, trial by trial."""
        shared = [trial for trial in self.trials if trial in other.trials]
        return estimate({trial: self.trials[trial] - other.trials[trial] for trial in shared})


@dataclass(frozen=True)
class Mark:
    """One defence under one threat: the strongest attack by each measure."""

    threat: str
    white_box: bool
    metric: str  # values or branches
    leak: Estimate  # mean over columns of the gain, no column below 0
    leak_attack: str
    error: Estimate
    error_attack: str
    error_baseline: float
    hits: Estimate  # attack accuracy, or the share of right branches
    hits_attack: str
    hits_baseline: float
    level: Level
    leaking: int  # columns
    columns: int
    attacks: tuple[str, ...]  # all that were tried
    pictures: bool = False  # whose columns are tiles, and whose attack accuracy nobody measured
    inconclusive: bool = False  # whether no attack covers it, so that no leak found means nothing


@dataclass(frozen=True)
class Option:
    """One defence: its accuracy, its marks, and what it adds to no defence."""

    defence: str
    accuracy: Estimate
    marks: tuple[Mark, ...]
    train_seconds: float
    predict_seconds: float
    bytes_sent: float
    dominated_by: str = ""
    trained: bool = True  # whether the model learnt anything, so that its accuracy says what the defence costs

    @property
    def worst(self) -> Mark:
        """The mark with the highest leak: no party can exclude the threat that does most harm."""
        return max(self.marks, key=lambda mark: (mark.leak.mean, mark.level.rank))

    @property
    def level(self) -> Level:
        return worst(mark.level for mark in self.marks)

    @property
    def attacks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(attack for mark in self.marks for attack in mark.attacks))

    @property
    def hidden(self) -> bool:
        """Whether no curious party knows the model."""
        return not any(mark.white_box for mark in self.marks)

    @property
    def safe(self) -> bool:
        """No attack under any threat found a column, or the label, above baseline."""
        return not self.level.leaks and not self.inconclusive

    @property
    def inconclusive(self) -> bool:
        """Whether there is a threat under which no attack covers it."""
        return any(mark.inconclusive for mark in self.marks)


@dataclass(frozen=True)
class Frontier:
    """All defences tried on one data set and protocol, and which of them to take."""

    data: str
    protocol: str
    options: tuple[Option, ...]
    recommended: str  # a defence, or empty
    reason: Reason
    if_known: str = ""  # the same among options that leave the model known, where the recommended one hides it
    if_known_reason: Reason = "nothing"

    @property
    def reference(self) -> Option | None:
        """No defence, which the others are compared with."""
        return self.option("none")

    @property
    def chosen(self) -> Option | None:
        return self.option(self.recommended)

    def option(self, defence: str) -> Option | None:
        return next((option for option in self.options if option.defence == defence), None)

    def lost(self, option: Option) -> Estimate | None:
        """Accuracy lost against no defence."""
        return None if self.reference is None else self.reference.accuracy.less(option.accuracy)


def frontiers(findings: Iterable[Finding], summaries: Iterable[Summary] | None = None) -> list[Frontier]:
    """One frontier for every data set and protocol on which at least two defences were tried."""
    found = attacked(findings)
    verdicts = group(summarise(found) if summaries is None else summaries, lambda s: situation_of(s.setting))
    made = []
    for (data, protocol), parts in group(found, lambda f: (f.data, f.protocol)).items():
        by_defence = group(parts, lambda f: f.defence)
        if len(by_defence) < 2:
            continue
        options = [
            _option(defence, trials, {f.threat: verdicts[situation_of(f)] for f in trials})
            for defence, trials in by_defence.items()
        ]
        made.append(frontier(data, protocol, options))
    return made


def frontier(data: str, protocol: str, options: Sequence[Option]) -> Frontier:
    """Options with the dominated ones marked, and the recommendation."""
    judged = tuple(replace(option, dominated_by=_dominating(option, options)) for option in options)
    made = Frontier(data, protocol, judged, *recommend(judged))
    known = [option for option in judged if not option.hidden]
    if made.chosen is None or not made.chosen.hidden or not known:
        return made
    if_known, reason = recommend(known)
    return replace(made, if_known=if_known, if_known_reason=reason)


def dominates(one: Option, other: Option) -> bool:
    """Whether one option is at least as accurate as the other and leaks no more, and is strictly better in one of the two.

    "At least" compares means. "Strictly" asks that the 95 % interval of the difference over shared trials leaves out 0; a
    single trial has no interval, and its difference counts as it is. Leaks are the worst over all threats. Whether the model
    can be hidden is not a matter of settings: an option that hides it and one that does not leave each other alone.
    """
    if one.hidden != other.hidden or one.inconclusive or other.inconclusive:
        return False
    accuracy = one.accuracy.less(other.accuracy)
    spared = other.worst.leak.less(one.worst.leak)
    no_worse = accuracy.mean >= -ROUNDING and spared.mean >= -ROUNDING
    return no_worse and any(gap.mean - gap.margin > ROUNDING for gap in (accuracy, spared))


def recommend(options: Sequence[Option]) -> tuple[str, Reason]:
    """The defence to take, and why.

    No defence, if nothing leaks without one. Else the most accurate option without a leak above baseline; of equals the
    one that leaks least. Else the one that leaks least among those that lose at most one point of accuracy, if that is
    less than without. Else nothing.
    """
    bare = next((option for option in options if option.defence == "none"), None)
    if bare is not None and bare.safe:
        return "none", "unneeded"
    safe = [option for option in options if option.safe]
    if safe:
        return min(safe, key=lambda o: (-round(o.accuracy.mean, 9), o.worst.leak.mean)).defence, "safe"
    cheap = cheapest(options)
    return ("", "nothing") if cheap is None else (cheap.defence, "least")


def cheapest(options: Sequence[Option]) -> Option | None:
    """The least leak for at most one point of accuracy, where that is less than without a defence."""
    best = max(options, key=lambda option: option.accuracy.mean)
    reference = next((option for option in options if option.defence == "none"), best)
    cheap = [
        o for o in options if reference.accuracy.less(o.accuracy).mean <= SMALL_LOSS + ROUNDING and not o.inconclusive
    ]
    if not cheap:
        return None
    least = min(cheap, key=lambda option: option.worst.leak.mean)
    spared = reference.worst.leak.less(least.worst.leak)
    return least if spared.mean > ROUNDING else None


def estimate(trials: Mapping[int, float]) -> Estimate:
    """Mean and margin of one number per trial; nothing in common is no difference."""
    if not trials:
        return Estimate(0.0, 0.0, {})
    return Estimate(*mean_and_margin(list(trials.values())), dict(trials))


def leak_of(findings: Sequence[Finding]) -> Estimate:
    """What one attack learnt, trial by trial: the mean over columns of the gain, no column below 0."""
    return _by_trial(findings, _leak)


def _dominating(option: Option, options: Sequence[Option]) -> str:
    """The defence that dominates this one, the one with the least leak if there are several."""
    better = [other for other in options if other is not option and dominates(other, option)]
    return min(better, key=lambda o: (o.worst.leak.mean, -o.accuracy.mean)).defence if better else ""


def _option(defence: str, findings: Sequence[Finding], verdicts: Mapping[str, Sequence[Summary]]) -> Option:
    marks = [_mark(parts, verdicts[threat]) for threat, parts in group(findings, lambda f: f.threat).items()]
    return Option(
        defence=defence,
        accuracy=_by_trial(findings, lambda f: f.model_accuracy or 0.0),
        marks=tuple(marks),
        train_seconds=median(finding.train_seconds for finding in findings),
        predict_seconds=median(finding.predict_seconds for finding in findings),
        bytes_sent=fmean(finding.bytes_sent for finding in findings),
        trained=all(finding.trained for finding in findings),
    )


def _mark(findings: Sequence[Finding], summaries: Sequence[Summary]) -> Mark:
    spoken = [f for f in findings if any(column.claims for column in f.score.columns)] or list(findings)
    metric = "values" if any(f.score.metric == "values" for f in spoken) else "branches"
    attacks = group(spoken, lambda f: f.attack)
    measured = {name: parts for name, parts in attacks.items() if parts[0].score.metric == metric}
    leaks = {name: leak_of(parts) for name, parts in attacks.items()}
    errors = {name: _by_trial(parts, lambda f: f.score.error) for name, parts in measured.items()}
    hits = {name: _by_trial(parts, _hits) for name, parts in measured.items()}
    leak_attack = max(leaks, key=lambda name: leaks[name].mean)
    error_attack = min(errors, key=lambda name: errors[name].mean)
    hits_attack = max(hits, key=lambda name: hits[name].mean)
    levels = group((verdict for summary in summaries for verdict in summary.verdicts), lambda verdict: verdict.column)
    return Mark(
        threat=findings[0].threat,
        white_box=findings[0].white_box,
        metric=metric,
        leak=leaks[leak_attack],
        leak_attack=leak_attack,
        error=errors[error_attack],
        error_attack=error_attack,
        error_baseline=_by_trial(measured[error_attack], lambda f: min(f.score.baselines.values())).mean,
        hits=hits[hits_attack],
        hits_attack=hits_attack,
        hits_baseline=fmean(_constant_hits(finding) for parts in measured.values() for finding in parts),
        level=worst([s.level for s in summaries] + [s.label.level for s in summaries if s.label]),
        leaking=sum(any(verdict.level.leaks for verdict in parts) for parts in levels.values()),
        columns=len(levels),
        attacks=tuple(dict.fromkeys(finding.attack for finding in findings)),
        pictures=all(finding.score.images is not None for finding in findings),
        inconclusive=inconclusive(summaries),
    )


def _by_trial(findings: Sequence[Finding], measure: Callable[[Finding], float]) -> Estimate:
    """A measure per trial, the mean over the shares of unknown columns."""
    trials = group(findings, lambda f: f.trial)
    return estimate({trial: fmean(map(measure, parts)) for trial, parts in trials.items()})


def _leak(finding: Finding) -> float:
    """How much of guessing's error is removed: the mean over columns, a column that is guessed worse counting as 0.

    Labels that were guessed by more than the most frequent class count like all columns together, if that is more.
    """
    return max(fmean(max(0.0, column.gain) for column in finding.score.columns), label_gain(finding))


def _hits(finding: Finding) -> float:
    accuracy = finding.score.attack_accuracy
    return 1 - finding.score.error if accuracy is None else accuracy


def _constant_hits(finding: Finding) -> float:
    accuracy = finding.score.constant_accuracy
    return 1 - min(finding.score.baselines.values()) if accuracy is None else accuracy
