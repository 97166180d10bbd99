"""Two classes: on which side of the direction that a batch's gradients share each row lies, accumulated over rounds.

    a[i, b] = s_b <g_i / |g_i|, p_b>      p_b: first right singular vector of the batch's unit gradients, s_b: its sign

The sign of p_b is a matter of chance. It is settled by the rows that came before (their sums so far vote), else by the previous
round's direction. What a row says in its first, second, ... round are columns of a table, and late ones repeat each other's
mistakes: in a trained network the direction may turn by more than a right angle for some rows. So the sum over rounds is not
what counts, but the linear discriminant of two groups with one covariance, taught by its own answers until these stay:

    y = [w z > t],   w = S^-1 (m_1 - m_0)

It is started from first rounds, from several, and from all; of these the two groups that lie furthest apart are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.labels._cut_gradients import Batch, joined
from plumbob.federation import FloatArray, IntArray

FEWEST = 32  # rows that a direction is taken from
COLUMNS = 32  # of the table: more rounds than that are averaged, neighbours together
SURE = 0.2  # share of the votes by which a sign is settled
ROUNDS = 30  # of self-teaching
RIDGE = 1e-6


@dataclass(frozen=True)
class Sides:
    """The side of every row, -1 where it never came, and how far the two are apart."""

    groups: IntArray
    margin: FloatArray  # of every row, positive on side 1
    apart: float  # in standard deviations


def two_sides(found: list[Batch], count: int) -> Sides:
    """Split the rows in two; which is which class nobody knows."""
    table = signed_table(joined(found, FEWEST), count)
    seen = table.any(axis=1)
    best = None
    for start in _starts(table[seen]):
        made = _taught(table[seen], start)
        if best is None or made[1] > best[1]:
            best = made
    groups, margin = np.full(count, -1), np.zeros(count)
    if best is not None:
        margin[seen] = best[0]
        groups[seen] = best[0] > 0
    return Sides(groups, margin, 0.0 if best is None else best[1])


def signed_table(found: list[Batch], count: int) -> FloatArray:
    """Signed projections: for every row those of its first round, its second and so on; 0 where there is none."""
    total, seen = np.zeros(count), np.zeros(count, dtype=np.int64)
    last: FloatArray | None = None
    parts: list[tuple[IntArray, IntArray, FloatArray]] = []
    for batch in found:
        units = batch.units
        direction = np.linalg.svd(units, full_matrices=False)[2][0]
        told = units @ direction
        sign = _sign(total[batch.rows], told, direction, last)
        told, last = sign * told, sign * direction
        parts.append((batch.rows, seen[batch.rows], told))
        np.add.at(seen, batch.rows, 1)
        np.add.at(total, batch.rows, told)
    most = max(1, int(seen.max(initial=0)))
    width = -(-most // COLUMNS)
    table = np.zeros((count, -(-most // width)))
    for rows, times, told in parts:
        np.add.at(table, (rows, times // width), told / width)
    return table


def _sign(before: FloatArray, told: FloatArray, direction: FloatArray, last: FloatArray | None) -> float:
    votes = before * told
    if abs(votes.sum()) > SURE * np.abs(votes).sum():
        return 1.0 if votes.sum() > 0 else -1.0
    same = last is None or last.shape != direction.shape or last @ direction >= 0
    return 1.0 if same else -1.0


def _starts(table: FloatArray) -> list[FloatArray]:
    """First rounds, the sum of ever more of them, and of all."""
    sums = table.cumsum(axis=1)
    last = table.shape[1] - 1
    return [sums[:, k] for k in sorted({0, min(1, last), min(3, last), last})] if table.size else []


def _taught(table: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
    """The discriminant's value of every row, and how many standard deviations the two groups are apart."""
    value, apart = start, 0.0
    for _ in range(ROUNDS):
        side = value > 0
        if min(side.sum(), (~side).sum()) < 2:
            return value, 0.0
        one, other = table[side], table[~side]
        first, second = one.mean(axis=0), other.mean(axis=0)
        spread = ((one - first).T @ (one - first) + (other - second).T @ (other - second)) / (len(table) - 2)
        spread += (RIDGE * np.trace(spread) / len(spread) + 1e-30) * np.eye(len(spread))
        weights = np.linalg.solve(spread, first - second)
        apart = float(np.sqrt(max(0.0, weights @ (first - second))))
        value = table @ weights - (first + second) @ weights / 2 + np.log(len(one) / len(other))
        if ((value > 0) == side).all():
            break
    return value, apart
