"""From summaries to standings: what is known of every column, and of the label, in one situation over all attacks.

A finding counts, whoever made it. That nothing was found counts only where an attack that addresses this kind of column was
run, none of the attacks leaves room for more than the limit, and the ceiling does not either. Headline, gate, exit code,
frontier and assessment all read standings, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from plumbob.attacks import attack_called
from plumbob.auditing.concluding.ceilings import Ceiling, ceilings_of
from plumbob.auditing.concluding.failures import Failure, failures
from plumbob.auditing.concluding.judging import LIMIT, Verdict
from plumbob.auditing.concluding.summarise import Situation, Summary, attacked, group, situation_of, summarise
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.concluding.verdict_words import none_words, not_tested_words, whole_percent
from plumbob.auditing.running.finding import Finding
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level, worst

NO_ATTACK = "no attack of this plan applies"


class Doubt(StrEnum):
    """Why a column is undecided, in which no attack found anything."""

    ATTACKS = "attacks leave room"
    NO_CEILING = "no attack found anything, and no ceiling was computed"
    NOT_COVERED = "no attack found anything, and the ceiling does not cover these messages"
    CEILING = "a better attack may exist"


@dataclass(frozen=True)
class Standing:
    """The worst that is known of one column in one situation."""

    situation: Situation
    attack: str  # the strongest; empty where none was run
    unknown: float
    metric: str
    rows: int
    verdict: Verdict  # of the strongest attack, with the level of all of them
    ceiling: Ceiling | None = None
    doubt: Doubt | None = None  # where it is undecided: why

    @property
    def level(self) -> Level:
        return self.verdict.level

    @property
    def words(self) -> str:
        return self.verdict.words

    @property
    def severity(self) -> tuple[int, float]:
        """How bad it is; of columns that no attack was run on, the ceiling tells."""
        return self.level.rank, self.exposed or self.verdict.gain

    @property
    def exposed(self) -> float:
        """Where no attack was run: what the messages add for learners with everybody else's complete rows."""
        if self.level is not Level.NOT_TESTED or self.ceiling is None:
            return 0.0
        return max(0.0, self.ceiling.gain)

    @property
    def beforehand(self) -> float:
        """The share of a column's variance that the curious side's best guess explains without any message."""
        verdict = self.verdict
        if self.metric != "values" or not self.attack or verdict.gain >= 1 - 1e-9 or verdict.r2 >= 1:
            return 0.0
        return min(1.0, max(0.0, 1 - (1 - verdict.r2) / (1 - verdict.gain)))


@dataclass(frozen=True)
class Judged:
    """All that is known of one situation that was asked for."""

    situation: Situation
    standings: tuple[Standing, ...]  # columns, worst first, then the label
    summaries: tuple[Summary, ...]
    gap: Gap | None = None  # where no attack was run

    @property
    def level(self) -> Level:
        """The worst of its columns and the label; not tested where there is none."""
        return level_of(self.standings)

    @property
    def counts(self) -> bool:
        """Whether it is part of the verdict: all that could tell the curious anything is."""
        return self.gap is None or self.gap.meaningful


@dataclass(frozen=True)
class Conclusion:
    """What an audit found in every situation that was asked for: the one place that headline, gate and assessment read."""

    situations: tuple[Judged, ...]
    summaries: tuple[Summary, ...] = ()
    limit: float = LIMIT
    failures: tuple[Failure, ...] = ()  # of attacks: their columns were not tested by them
    idle: tuple[tuple[str, str, str], ...] = ()  # data, protocol and defence that changed nothing, and is not judged

    @property
    def level(self) -> Level:
        """The worst of all situations."""
        return worst(judged.level for judged in self.situations if judged.counts)


def conclude(findings: Iterable[Finding], gaps: Sequence[Gap] = (), limit: float = LIMIT) -> Conclusion:
    """Findings judged, situation by situation; `gaps` are those that no attack was run in."""
    every = list(findings)
    summaries, ceilings = summarise(attacked(every), limit), ceilings_of(every)
    places = group(summaries, lambda s: situation_of(s.setting))
    for place, _ in ceilings:
        places.setdefault(place, [])
    missing = {(gap.protocol, gap.threat, gap.defence): gap for gap in gaps}
    judged = []
    for place, parts in places.items():
        gap = missing.pop((place.protocol, place.threat, place.defence), None)
        if gap is None and not parts:  # a ceiling is no test
            gap = Gap(place.protocol, place.threat, place.defence, NO_ATTACK)
        judged.append(Judged(place, tuple(_of_gap(place, parts, ceilings, limit, gap)), tuple(parts), gap))
    data = every[0].data if every else ""
    judged += [Judged(Situation(data, *place), (), (), gap) for place, gap in missing.items()]
    return Conclusion(tuple(judged), tuple(summaries), limit, tuple(failures(every)))


Ceilings = Mapping[tuple[Situation, str], Ceiling]


def _of_gap(
    place: Situation, parts: Sequence[Summary], ceilings: Ceilings, limit: float, gap: Gap | None
) -> list[Standing]:
    """The standings of a situation. One that another covers, or where nothing is sent, has none: nothing was tried there."""
    if gap is not None and not gap.meaningful:
        return []
    return standings(place, parts, ceilings, limit, NO_ATTACK if gap is None else gap.why)


def standings(
    place: Situation, summaries: Sequence[Summary], ceilings: Ceilings, limit: float = LIMIT, why: str = NO_ATTACK
) -> list[Standing]:
    """Every column of a situation and then the label, where it is a target; columns worst first."""
    columns = [Standing(place, *_who(s), s.metric, s.rows, verdict) for s in summaries for verdict in s.verdicts]
    labels = [Standing(place, *_who(s), "labels", s.rows, s.label) for s in summaries if s.label is not None]
    missing = _weaker_only(summaries)
    found = [
        combined(parts, ceilings.get((place, name)), missing, limit)
        for name, parts in group([*columns, *labels], lambda one: one.verdict.column).items()
    ]
    there = {one.verdict.column for one in found}
    found += [
        _unattacked(place, ceiling, why)
        for (at, name), ceiling in ceilings.items()
        if at == place and name not in there
    ]
    return sorted(found, key=lambda one: (one.verdict.column != LABEL, *one.severity), reverse=True)


def _who(summary: Summary) -> tuple[str, float]:
    return summary.setting.attack, summary.setting.unknown


def _weaker_only(summaries: Sequence[Summary]) -> bool:
    """Whether no attack that plans run by default covers the situation: then null results of weaker rivals do not count."""
    return any(_by_default(s.setting.attack) for s in summaries if s.untried) and not any(
        _by_default(s.setting.attack) for s in summaries if not s.untried
    )


def _by_default(attack: str) -> bool:
    known = attack_called(attack)
    return known is None or known.by_default


def combined(cases: Sequence[Standing], ceiling: Ceiling | None, weaker_only: bool, limit: float) -> Standing:
    """One column over all attacks and shares of unknown columns."""
    strongest = max(cases, key=lambda one: one.severity)
    if strongest.level.leaks:
        return replace(strongest, ceiling=ceiling)
    if any(one.level is Level.HELD for one in cases) and all(
        one.level in (Level.HELD, Level.NOT_TESTED) for one in cases
    ):
        return next(one for one in cases if one.level is Level.HELD)
    cases = [one for one in cases if one.level is not Level.HELD]
    tested = [] if weaker_only else [one for one in cases if one.level is not Level.NOT_TESTED]
    if not tested:
        reasons = dict.fromkeys(one.verdict.why for one in cases if one.verdict.why)
        untested = max(cases, key=lambda one: one.verdict.gain)
        words = not_tested_words("; ".join(reasons))
        return replace(
            untested,
            verdict=replace(untested.verdict, level=Level.NOT_TESTED, words=words, unseen=None),
            ceiling=ceiling,
        )
    shown = max(tested, key=lambda one: (one.verdict.gain, one.verdict.unseen or 0.0))
    attacked = max(one.verdict.unseen or 0.0 for one in tested)
    doubt, unseen, words = _nothing_found(attacked, ceiling, limit)
    level = Level.NONE if doubt is None else Level.UNDECIDED
    verdict = replace(shown.verdict, level=level, words=words, unseen=unseen)
    return replace(shown, verdict=verdict, ceiling=ceiling, doubt=doubt)


def _nothing_found(attacked: float, ceiling: Ceiling | None, limit: float) -> tuple[Doubt | None, float, str]:
    """Where no attack found anything: what leaves it undecided, what may have gone unseen, and both in words."""
    if attacked > limit:
        return Doubt.ATTACKS, attacked, f"undecided: {Doubt.ATTACKS} for {_up_to(attacked)}"
    if ceiling is None:
        return Doubt.NO_CEILING, 1.0, f"undecided: {Doubt.NO_CEILING}"
    if not ceiling.covers:
        return Doubt.NOT_COVERED, 1.0, f"undecided: {Doubt.NOT_COVERED}"
    if ceiling.possible > limit:
        return Doubt.CEILING, ceiling.possible, f"undecided: {_up_to(ceiling.possible)} is possible for a better attack"
    unseen = max(attacked, ceiling.possible)
    return None, unseen, none_words(unseen)


def _up_to(share: float) -> str:
    return "any gain" if share >= 1 else f"a gain of up to {whole_percent(share)} %"


def _unattacked(place: Situation, ceiling: Ceiling, why: str) -> Standing:
    """A column that no attack was run on."""
    verdict = Verdict(ceiling.column, Level.NOT_TESTED, not_tested_words(why), why=why)
    metric = "labels" if ceiling.column == LABEL else "values"
    return Standing(place, "", ceiling.unknown, metric, ceiling.rows, verdict, ceiling)


def worst_per_column(found: Iterable[Standing]) -> list[Standing]:
    """Every column, and the label, of every data set at its worst over the situations given."""
    told = group(found, lambda one: (one.situation.data, one.verdict.column))
    return [max(parts, key=lambda one: one.severity) for parts in told.values()]


def level_of(found: Iterable[Standing]) -> Level:
    """The worst of some standings; of none of them, not tested."""
    return worst(one.level for one in found)
