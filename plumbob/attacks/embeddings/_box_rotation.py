"""Columns from rows that are known up to a rotation, by their ranges (ours).

Rows Y = X R, R orthogonal and unknown, of columns from 0 to s: all rows of X lie in the box [0, s]^d, so R' turns Y into it:
    minimise  sum of max(0, -Y R')^2 + max(0, Y R' - s)^2   over rotations
by turning pairs of columns, from many starts. Where rows reach the box's sides in enough places no other rotation does. That is
what the certificate says: how many starts end inside the box, and that all of these end at the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.federation import FloatArray

ROWS = 400  # rows a fit looks at: those that stick out most count
STEPS = 400
STARTS = 12
AGREE = 0.999  # correlation of the columns of two ends that are the same
INSIDE = 2e-3  # root mean square outside of the box, as a share of its side, that counts as inside
NEAR = 0.5  # share of the starts inside the box that must agree


@dataclass(frozen=True)
class Unrotated:
    """Columns (n x count) from 0 to 1, and how sure the rotation is."""

    columns: FloatArray
    outside: float  # root mean square outside of the box
    agreeing: int  # starts that end at these columns
    starts: int


def unrotated(y: FloatArray, rng: np.random.Generator) -> Unrotated:
    """The columns of which these rows are a rotation; those that not all good starts agree on are left out."""
    rank = y.shape[1]
    scale = float(np.sqrt(np.mean(y**2)))
    y = y / max(scale, 1e-300)
    if rank == 1:
        one = y * (1.0 if y.sum() >= 0 else -1.0)
        return Unrotated(np.clip(one / max(1e-300, float(one.max())), 0.0, 1.0), 0.0, 1, 1)
    some = _outermost(y, rng)
    ends = [_descended(some, start) for start in _starts(rank, STARTS, rng)]
    outside = np.array([one[1] for one in ends])
    best = int(outside.argmin())
    turn = ends[best][0]
    columns = y @ turn
    side = float(columns.max())
    good = [one[0] for one in ends if one[1] <= max(2 * outside[best], INSIDE * side)]
    centred = y - y.mean(axis=0)
    agreeing = np.zeros(rank)
    for other in good:
        a, b = centred @ turn, centred @ other
        cosines = np.abs(a.T @ b) / np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
        agreeing += cosines.max(axis=1) > AGREE
    sure = (agreeing >= NEAR * len(good)) & (len(good) > 1) & (outside[best] <= INSIDE * side)
    shown = np.clip(columns[:, sure] / side, 0.0, 1.0)
    return Unrotated(shown, float(outside[best] / side), int(agreeing[sure].min()) if sure.any() else 0, STARTS)


def _outermost(y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows that lie outermost in random directions: nothing but these keeps a rotation from the box."""
    if len(y) <= ROWS:
        return y
    along = y @ rng.normal(size=(y.shape[1], ROWS))
    return np.asarray(y[np.unique(np.concatenate([along.argmax(axis=0), along.argmin(axis=0)]))])


def _starts(rank: int, count: int, rng: np.random.Generator) -> list[FloatArray]:
    return [np.linalg.qr(rng.normal(size=(rank, rank)))[0] for _ in range(count)]


def _descended(y: FloatArray, turn: FloatArray) -> tuple[FloatArray, float]:
    """The rotation at which descent along the group ends, and how far outside of the box rows are there.

    The side of the box is the largest value that is reached; every column is to reach it.
    """
    flip = np.where((y @ turn).sum(axis=0) >= 0, 1.0, -1.0)
    turn = turn * flip
    kept, rate, last = turn, 0.5, np.inf
    for _ in range(STEPS):
        x = y @ turn
        side = float(np.median(x.max(axis=0)))
        low, high = np.minimum(x, 0.0), np.maximum(x - side, 0.0)
        value = float(np.mean(low**2 + high**2))
        if value > last:
            rate *= 0.5
            turn, last = kept, np.inf
            if rate < 1e-6:
                break
            continue
        kept = turn
        if last - value < 1e-14:
            break
        last = value
        slope = turn.T @ (y.T @ (low + high)) / len(y)
        skew = slope - slope.T
        step = rate * skew
        turn = turn @ np.linalg.solve(np.eye(len(step)) + step / 2, np.eye(len(step)) - step / 2)
        rate = min(rate * 1.1, 50.0)
    x = y @ turn
    side = float(np.median(x.max(axis=0)))
    return turn, float(np.sqrt(np.mean(np.minimum(x, 0.0) ** 2 + np.maximum(x - side, 0.0) ** 2)))
