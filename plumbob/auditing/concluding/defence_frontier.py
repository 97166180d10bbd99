"""The frontier: what each defence costs in accuracy, time and bytes, and what still leaks under it.

One option per defence, one mark per option and threat. Errors, hits and leaks are those of the strongest attack, means
over the shares of unknown columns, with intervals over trials. Trials of different defences share rows, splits and seeds, so
two options are compared trial by trial. An option is safe only where every threat of the plan was tested and nothing leaks
above the limit, by attacks and by the ceiling; a threat that was not tested is never in its favour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

from plumbob.attacks import attacks
from plumbob.auditing.concluding.conclusion import Conclusion, Judged, Standing, conclude
from plumbob.auditing.concluding.counted import Counted, counted
from plumbob.auditing.concluding.judging import label_gain
from plumbob.auditing.concluding.summarise import attacked, group, situation_of
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.running.finding import Finding
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.leak_levels import Level, worst
from plumbob.scoring.score import LABELS
from plumbob.threats import THREATS
from plumbob.transcript import COORDINATOR

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
    unseen: float = 0.0  # the largest gain that may have gone unseen in a column or the label
    ceiling: float | None = None  # what learners with everybody else's rows gain, the mean over columns
    unknown: int = 0  # columns, and the label, that are undecided or not tested
    worst_gain: Estimate = Estimate(
        0.0, 0.0, {}
    )  # in the column that leaks most; of none, the margin is what may be unseen
    worst_column: str = ""
    undecided: int = 0  # columns
    untested: int = 0
    clear: int = 0  # columns without a leak above the limit

    @property
    def reach(self) -> float:
        """What is learnt or could be: by the strongest attack or by the ceiling, the mean over columns."""
        return max(self.leak.mean, self.ceiling or 0.0)


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
    auc: Estimate | None = None  # of the released scores
    calibration: Estimate | None = None
    gaps: tuple[Gap, ...] = ()  # threats of the plan that no attack was run under
    whole: bool = (
        True  # whether every column, and the label, that was judged under any defence was judged under this one
    )
    over_threats: Counted | None = None  # its columns, each at its worst over all threats that were tested
    trained: bool = True  # whether the model learnt anything, so that its accuracy says what the defence costs

    @property
    def worst(self) -> Mark:
        """The mark with the highest leak: no party can exclude the threat that does most harm."""
        return max(self.marks, key=lambda mark: (mark.leak.mean, mark.level.rank))

    @property
    def counts(self) -> Counted:
        """How many columns leak, and what is known of the others; of a single threat, its own counts."""
        most = max(self.marks, key=lambda mark: mark.leaking)
        held = most.columns - most.leaking - most.undecided - most.untested - most.clear
        return self.over_threats or Counted(most.leaking, most.undecided, most.untested, most.clear, held)

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
        """Every threat of the plan was tested, and nothing above the limit was found or is possible."""
        return self.level is Level.NONE and not self.gaps and self.whole

    @property
    def unknown(self) -> bool:
        """Whether there is something that is not known of it."""
        return bool(self.gaps) or not self.whole or any(mark.unknown for mark in self.marks)

    @property
    def reach(self) -> float:
        """What is learnt or could be, against the threat that does most harm."""
        return max(mark.reach for mark in self.marks)

    @property
    def unseen(self) -> float:
        return max(mark.unseen for mark in self.marks)


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
    untested: tuple[str, ...] = ()  # threats that Plumbob knows for such protocols and that the plan does not name

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


def frontiers(findings: Iterable[Finding], conclusion: Conclusion | None = None) -> list[Frontier]:
    """One frontier for every data set and protocol on which at least two defences were tried."""
    every = list(findings)
    conclusion = conclude(every) if conclusion is None else conclusion
    found = attacked(every)
    judged = {one.situation: one for one in conclusion.situations}
    made = []
    for (data, protocol), parts in group(found, lambda f: (f.data, f.protocol)).items():
        by_defence = group(parts, lambda f: f.defence)
        if len(by_defence) < 2:
            continue
        options = [
            _option(
                defence,
                trials,
                {f.threat: judged[situation_of(f)] for f in trials},
                _gaps(conclusion, protocol, defence),
            )
            for defence, trials in by_defence.items()
        ]
        options = [replace(option, whole=_whole(conclusion, data, protocol, option.defence)) for option in options]
        made.append(replace(frontier(data, protocol, options), untested=_untested(protocol, parts, conclusion)))
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
    if one.hidden != other.hidden or one.gaps or other.gaps or one.reach > other.reach + ROUNDING:
        return False
    accuracy = one.accuracy.less(other.accuracy)
    spared = other.worst.leak.less(one.worst.leak)
    no_worse = accuracy.mean >= -ROUNDING and spared.mean >= -ROUNDING
    return no_worse and any(gap.mean - gap.margin > ROUNDING for gap in (accuracy, spared))


def recommend(options: Sequence[Option]) -> tuple[str, Reason]:
    """The defence to take, and why.

    No defence, if without one every threat was tested and nothing leaks above the limit. Else the most accurate option of
    which that is true; of equals the one that leaks least. Else, of those tested against every threat that lose at most one
    point of accuracy, the one under which least is learnt or could be, if that is less than without. Else nothing.
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
    cheap = [o for o in options if reference.accuracy.less(o.accuracy).mean <= SMALL_LOSS + ROUNDING and not o.gaps]
    if not cheap:
        return None
    least = min(cheap, key=lambda option: (option.reach, option.worst.leak.mean))
    return least if reference.reach - least.reach > ROUNDING else None


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


def _untested(protocol: str, findings: Sequence[Finding], conclusion: Conclusion) -> tuple[str, ...]:
    """Threats that attacks of Plumbob fit on such a protocol and so many parties, and that nobody asked about."""
    parties = {party for finding in findings for party in finding.bytes_by_party} - {COORDINATOR}
    alone = len(parties) < 3  # with one passive party there is nobody to collude with
    asked = {one.situation.threat for one in conclusion.situations if one.situation.protocol == protocol}
    name = protocol.partition(" (")[0]
    tried = [THREATS[one] for one in asked if one in THREATS]
    fits = [t for t in THREATS.values() if any(a.why_not(name, t) is None for a in attacks().values())]
    fits = [t for t in fits if not (alone and t.colluding_all_but is not None)]
    return tuple(t.name for t in fits if t.name not in asked and not any(t.within(other) for other in tried))


def _gaps(conclusion: Conclusion, protocol: str, defence: str) -> tuple[Gap, ...]:
    """Threats of the plan that no attack was run under, where they could have learnt something."""
    gaps = [one.gap for one in conclusion.situations if one.gap is not None and one.gap.meaningful]
    return tuple(gap for gap in gaps if (gap.protocol, gap.defence) == (protocol, defence))


def _whole(conclusion: Conclusion, data: str, protocol: str, defence: str) -> bool:
    """Whether every target of a protocol was judged under a defence, and no situation of it was left without an attack."""
    here = [
        j for j in conclusion.situations if j.counts and (j.situation.data, j.situation.protocol) == (data, protocol)
    ]
    under = [judged for judged in here if judged.situation.defence == defence]
    targets, told = ({one.verdict.column for judged in some for one in judged.standings} for some in (here, under))
    return targets <= told and all(judged.summaries for judged in under)


def _option(defence: str, findings: Sequence[Finding], judged: Mapping[str, Judged], gaps: tuple[Gap, ...]) -> Option:
    marks = [_mark(parts, judged[threat]) for threat, parts in group(findings, lambda f: f.threat).items()]
    ranked = [finding for finding in findings if finding.auc is not None]
    meant = [finding for finding in findings if finding.calibration is not None]
    return Option(
        defence=defence,
        accuracy=_by_trial(findings, lambda f: f.model_accuracy or 0.0),
        marks=tuple(marks),
        train_seconds=median(finding.train_seconds for finding in findings),
        predict_seconds=median(finding.predict_seconds for finding in findings),
        bytes_sent=fmean(finding.bytes_sent for finding in findings),
        trained=all(finding.trained for finding in findings),
        auc=_by_trial(ranked, lambda f: f.auc or 0.0) if ranked else None,
        calibration=_by_trial(meant, lambda f: f.calibration or 0.0) if meant else None,
        gaps=gaps,
        over_threats=counted(one for situation in judged.values() for one in situation.standings),
    )


def _mark(findings: Sequence[Finding], judged: Judged) -> Mark:
    spoken = [f for f in findings if any(column.claims for column in f.score.columns)] or list(findings)
    told = {f.score.metric for f in spoken}
    metric = next((one for one in ("values", "branches", "orders", LABELS) if one in told), "branches")
    attacks = group(spoken, lambda f: f.attack)
    measured = {name: parts for name, parts in attacks.items() if parts[0].score.metric == metric}
    leaks = {name: leak_of(parts) for name, parts in attacks.items()}
    errors = {name: _by_trial(parts, lambda f: f.score.error) for name, parts in measured.items()}
    hits = {name: _by_trial(parts, _hits) for name, parts in measured.items()}
    leak_attack = max(leaks, key=lambda name: leaks[name].mean)
    error_attack = min(errors, key=lambda name: errors[name].mean)
    hits_attack = max(hits, key=lambda name: hits[name].mean)
    columns = [one for one in judged.standings if one.verdict.column != LABEL]
    found = [one.verdict for one in columns if one.level.leaks]
    ceilings = [max(0.0, one.ceiling.gain) for one in columns if one.ceiling is not None]
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
        level=judged.level,
        leaking=sum(one.level.leaks for one in columns),
        columns=len(columns),
        attacks=tuple(dict.fromkeys(finding.attack for finding in findings)),
        pictures=all(finding.score.images is not None for finding in findings),
        unseen=max((one.verdict.unseen or 0.0 for one in judged.standings), default=0.0),
        ceiling=fmean(ceilings) if ceilings else None,
        unknown=sum(not one.level.known for one in judged.standings),
        worst_gain=_worst_gain(columns),
        worst_column=max(found, key=lambda verdict: verdict.gain).column if found else "",
        undecided=sum(one.level is Level.UNDECIDED for one in columns),
        untested=sum(one.level is Level.NOT_TESTED for one in columns),
        clear=sum(one.level is Level.NONE for one in columns),
    )


def _worst_gain(columns: Sequence[Standing]) -> Estimate:
    """The gain in the worst column, which means over columns hide, with its interval."""
    worst = max((one.verdict for one in columns if one.level.leaks), key=lambda v: v.gain, default=None)
    if worst is None:
        return Estimate(0.0, max((one.verdict.unseen or 0.0 for one in columns), default=0.0), {})
    return Estimate(max(0.0, worst.gain), worst.margin, {})


def _by_trial(findings: Sequence[Finding], measure: Callable[[Finding], float]) -> Estimate:
    """A measure per trial, the mean over the shares of unknown columns."""
    trials = group(findings, lambda f: f.trial)
    return estimate({trial: fmean(map(measure, parts)) for trial, parts in trials.items()})


def _leak(finding: Finding) -> float:
    """How much of guessing's error is removed: the mean over columns, a column that is guessed worse counting as 0.

    Labels that were guessed by more than the most frequent class count like all columns together, if that is more.
    """
    gains = [max(0.0, column.gain) for column in finding.score.columns]  # none where the label alone is hidden
    return max(fmean(gains) if gains else 0.0, label_gain(finding))


def _hits(finding: Finding) -> float:
    accuracy = finding.score.attack_accuracy
    return 1 - finding.score.error if accuracy is None else accuracy


def _constant_hits(finding: Finding) -> float:
    accuracy = finding.score.constant_accuracy
    return 1 - min(finding.score.baselines.values()) if accuracy is None else accuracy
