"""Findings of attacks and of ceilings told apart, and ceilings over trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from plumbob.auditing.running.finding import Finding
from plumbob.scoring.column_ceiling import CEILING, ColumnCeiling
from plumbob.scoring.intervals import mean_and_margin

Z = 1.96


def attacked(findings: Iterable[Finding]) -> list[Finding]:
    """Those of attacks."""
    return [finding for finding in findings if finding.score.metric != CEILING]


def ceilings_of(findings: Iterable[Finding]) -> list[Finding]:
    """Those that say what could be learnt."""
    return [finding for finding in findings if finding.score.metric == CEILING]


def over_trials(parts: Sequence[ColumnCeiling]) -> ColumnCeiling:
    """The mean of one column's ceilings over trials, with the interval of the gain over trials and rows.

    What one trial's learners did not see they did not see; bits, open dimensions and proven hits are those of the trial that
    lets most be learnt.
    """
    gain, margin = mean_and_margin([part.gain for part in parts], fmean((part.high - part.gain) / Z for part in parts))
    _, below = mean_and_margin([part.gain for part in parts], fmean((part.gain - part.low) / Z for part in parts))
    own = fmean(part.own for part in parts)
    uncovered = tuple(dict.fromkeys(name for part in parts for name in part.uncovered))
    told = [part.learner for part in parts if part.learner]
    return replace(
        parts[0],
        own=own,
        full=fmean(part.full for part in parts),
        gain=gain,
        low=gain - below,
        high=min(1.0, gain + margin),
        learner=max(told, key=told.count) if told else "",
        rows=min(part.rows for part in parts),
        covers=all(part.covers for part in parts),
        uncovered=uncovered,
        bits=max((part.bits for part in parts if part.bits is not None), default=None),
        least=min((part.least for part in parts if part.least is not None), default=None),
        open_=min((part.open_ for part in parts if part.open_ is not None), default=None),
        proven=max((part.proven for part in parts if part.proven is not None), default=None),
    )
