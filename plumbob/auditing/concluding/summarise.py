"""From findings to summaries: all trials of one setting together, with a verdict on every column and on the label."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from statistics import fmean
from typing import TypeVar

from plumbob.attacks import attack_called
from plumbob.auditing.concluding.judging import LIMIT, SHARES, Verdict, judge_column, judge_label
from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.running.finding import Finding
from plumbob.kinds import COLUMNS
from plumbob.scoring.column_ceiling import CEILING
from plumbob.scoring.images import ImageScore
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.leak_levels import Level, worst
from plumbob.scoring.score import ColumnScore

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


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
    branching: dict[str, float] = field(default_factory=dict)  # of values guessed for trees: means over trials

    @property
    def level(self) -> Level:
        """The worst level of any column."""
        return worst(verdict.level for verdict in self.verdicts)

    @property
    def silent(self) -> bool:
        """Whether it claimed no branch and no bin: its error, the share of wrong claims, is no number then."""
        return self.metric in SHARES and not self.claims


def attacked(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of attacks: all but the ceilings."""
    return [finding for finding in findings if finding.score.metric != CEILING]


def summarise(findings: Iterable[Finding], limit: float = LIMIT) -> list[Summary]:
    """One summary per setting of an attack, in the order in which they first occur; `limit` is the gain that may go unseen."""
    groups = group(
        attacked(findings), lambda f: Setting(f.data, f.protocol, f.threat, f.attack, f.defence, round(f.unknown, 6))
    )
    return [_summary(setting, trials, len(groups), limit) for setting, trials in groups.items()]


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


def _unaware(trials: Sequence[Finding]) -> str:
    """What the attacker does not know of: a defence is judged by attackers who know it, and what others miss proves nothing."""
    defence = next((trial.unaware for trial in trials if trial.unaware), "")
    return f"this attacker does not know of {defence}" if defence else ""


def _why_not(part: ColumnScore, attack: str, weak: str) -> str:
    """Why finding nothing in a column would mean nothing; empty where it would mean something."""
    if weak:
        return weak
    known = attack_called(attack)
    addressed = COLUMNS if known is None else known.addresses
    if part.kind and part.kind not in addressed:
        return f"{attack.replace('_', ' ')} looks for {' and '.join(addressed)} columns only"
    return ""


def _summary(setting: Setting, trials: list[Finding], settings: int, limit: float) -> Summary:
    untried, weak = _untried(trials), _unaware(trials)
    weak = weak if untried is None else untried.why
    labelled = [t for t in trials if t.score.label_accuracy is not None and t.score.label_baseline is not None]
    spoken = [trial for trial in trials if any(column.claims for column in trial.score.columns)]
    trials = spoken or trials  # a tree that asks for no unknown column says nothing, right or wrong
    scores = [trial.score for trial in trials]
    error, error_margin = mean_and_margin([score.error for score in scores])
    baselines = {name: mean_and_margin([s.baselines[name] for s in scores]) for name in scores[0].baselines}
    gain, gain_margin = mean_and_margin([score.gain for score in scores])
    columns = group((column for score in scores for column in score.columns), lambda column: column.name)
    verdicts = [
        judge_column(
            parts,
            scores[0].metric,
            min(s.rows for s in scores),
            settings * len(columns),
            why_not=_why_not(parts[0], setting.attack, weak),
            limit=limit,
        )
        for parts in columns.values()
    ]
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
        label=judge_label(labelled, settings, why_not=weak, limit=limit) if labelled else None,
        certificate=_certificate([trial.certificate for trial in trials]),
        untried=untried,
        rows_at_risk=_means([score.rows_at_risk for score in scores]),
        branching=_means([score.branching for score in scores]),
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
