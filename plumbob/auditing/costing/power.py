"""How small a leak an audit will be able to rule out, before it is run: its detection limit, and the rows that a limit needs.

Where nothing leaks, a trial of an attack leaves room for (|z| + 1.96)^2 / (n - k - 2) of the variance: n rows, k own columns
that are controlled for, z the chance in this sample (`concluding/judging.py`). The limit of a column is that of its worst of m
trials, so |z| is the median of the largest of m normal draws. Ceilings of nothing lie below it. Rank correlations with a column
of few values cannot reach 1: the limit is divided by the square of what the median column allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.running.expand import attack_cases, units
from plumbob.auditing.running.open_data import Source
from plumbob.federation import FloatArray, halves
from plumbob.scoring.evidence import MOST_CONTROLS, reach

WANTED = (0.05, 0.10)  # limits of which the estimate says how many rows they need
LOOKED_AT = 2_000  # rows, for what the columns' values allow
LEAST = 0.05


@dataclass(frozen=True)
class Power:
    """What an audit can rule out where nothing leaks."""

    rows: int  # that are attacked
    own: int  # columns of the curious parties, at most
    trials: int  # of all attacks on one column together
    limit: float  # the smallest gain that it will be able to rule out, about
    needed: tuple[tuple[float, int], ...]  # limits, and how many attacked rows each takes


def limit_of(rows: int, own: int, trials: int, most: float = 1.0) -> float:
    """The detection limit to expect.

    >>> round(limit_of(285, 21, 6), 3), round(limit_of(2000, 14, 6), 4)
    (0.048, 0.0064)
    """
    freedom = rows - min(own, rows // MOST_CONTROLS) - 2
    return min(1.0, _chance(trials) / most**2 / freedom) if freedom > 0 else 1.0


def rows_for(limit: float, own: int, trials: int, most: float = 1.0) -> int:
    """How many rows have to be attacked for it.

    >>> rows = rows_for(0.05, 21, 6)
    >>> limit_of(rows, 21, 6) <= 0.05 < limit_of(rows - 2, 21, 6)
    True
    """
    freedom = math.ceil(_chance(trials) / most**2 / limit)
    few = math.ceil(
        (freedom + 2) * MOST_CONTROLS / (MOST_CONTROLS - 1)
    )  # where own columns are more than a third of the rows
    return min(freedom + own + 2, few)


def _chance(trials: int) -> float:
    """(|z| + 1.96)^2 for the largest |z| of so many draws, in the median."""
    largest = float(ndtri((1 + 0.5 ** (1 / max(1, trials))) / 2))
    return (largest + 1.96) ** 2


def power(plan: Plan, source: Source) -> Power | None:
    """Of a filled plan on its data: at the share of unknown columns and in the situation that is tried hardest."""
    places = [
        ((case.unknown, case.threat.name, case.defence.title, unit.protocol.title), unit)
        for unit in units(plan)
        for case in attack_cases(plan, unit)
    ]
    if not places:
        return None
    trials = max(len(parts) for parts in group(places, lambda one: one[0]).values())
    rows, columns = _attacked(plan, source), source.values.shape[1]
    own = _own(plan, source, columns)
    most = _most(source.values)
    needed = tuple((limit, rows_for(limit, own, trials, most)) for limit in WANTED)
    return Power(rows, own, trials, limit_of(rows, own, trials, most), needed)


def _most(values: FloatArray) -> float:
    """The largest rank correlation that any guess of the median column can have."""
    some = values[:: max(1, len(values) // LOOKED_AT)]
    line = np.arange(len(some), dtype=np.float64)
    return max(LEAST, float(np.median([reach(line, column) for column in some.T]))) if some.size else 1.0


def _attacked(plan: Plan, source: Source) -> int:
    """Rows that are attacked: the predicted ones, or those of training; the fewest of all protocols."""
    if source.recorded is not None:
        return len(source.values)
    train, others = halves(source.label, np.random.default_rng(0), plan.train_share)
    phases = {part.protocol().phase for part in plan.protocols}
    there = [len(train)] * ("training" in phases) + [len(others)] * ("prediction" in phases)
    return min(*there, plan.rows or len(train) + len(others))


def _own(plan: Plan, source: Source, columns: int) -> int:
    """Columns that the active party knows, at most."""
    if source.federation is not None:
        return len(source.federation[source.federation.active].columns)
    return columns - max(1, round(min(plan.unknown or (0.0,)) * columns))
