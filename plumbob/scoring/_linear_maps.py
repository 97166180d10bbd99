"""Hidden columns that are a linear map of own columns: least squares of the rank that the own columns have.

    y = a + X b,  X = Q diag(s) V'  (standardised, singular values near 0 left out),  residual e = y - mean(y) - Q Q' y

A row confirms the map if the others alone predict it, e / (1 - h) with its leverage h; a row with h = 1 is fitted by a
coefficient of its own. Rounding leaves half a step of y's grid, and a fit to rounded values errs by 0.29 sqrt(h) steps (one
standard error). Which columns take part, orthogonal matching pursuit says: the column that explains most of what is left, one
after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.correlation import standardised
from plumbob.federation import FloatArray, IntArray
from plumbob.scoring._chance import LIMIT, counted, fillings, is_fine, orders
from plumbob.scoring.metrics import EXACT_CELL

SMALL = 1e-9  # singular values below this share of the largest count as 0
ALONE = 1 - 1e-6  # leverage from which no other row says anything about a row
UNCONFIRMED = 0.05  # share of rows that may be so
FIT = 1.5  # of a step of y's grid and the root of a row's leverage: five standard errors of a fit to rounded values
NEARLY = 0.95  # share of the variance that a map explains at least, rounded or not
MOST = 12  # columns that are told from each other


@dataclass(frozen=True)
class LinearMap:
    """Which own columns take part, and whether y is their map or the nearest value on y's grid."""

    columns: tuple[int, ...]
    rounded: bool


def linear_maps(own: FloatArray, hidden: FloatArray, grids: FloatArray) -> dict[int, LinearMap]:
    """The hidden columns that are a linear map of own ones."""
    rows = len(own)
    scaled, centred = standardised(own), hidden - hidden.mean(axis=0)
    near = _near(scaled, centred)
    if own.shape[1] >= rows or not len(near):
        return {}
    outer, triangle = np.linalg.qr(scaled)
    inner, spread, _ = np.linalg.svd(triangle)
    rank = int((spread > SMALL * spread.max()).sum())
    basis = outer @ inner[:, :rank]
    leverage = 1 / rows + (basis**2).sum(axis=1)
    if (leverage > ALONE).mean() > UNCONFIRMED:
        return {}
    places, targets = basis.T @ scaled, basis.T @ centred[:, near]
    fine = is_fine(hidden.T, grids)
    found = {}
    for j, target in zip(near.tolist(), targets.T, strict=True):
        left = np.abs(centred[:, j] - basis @ target)
        limits = np.full(rows, EXACT_CELL)
        sure = left.max() <= EXACT_CELL and _beyond_chance(hidden[:, j], rank + 1, hidden.shape[1])
        rounded = not sure and bool(fine[j])
        if rounded:
            limits = grids[j] * (0.5 + FIT * np.sqrt(leverage))
            confirmed = (left > limits * (1 - leverage)).mean() <= UNCONFIRMED
            close = _close_beyond_chance(hidden[:, j], grids[j], rank + 1, hidden.shape[1])
            sure = bool((left <= limits).all()) and confirmed and close
        if sure:
            found[j] = LinearMap(_taking_part(scaled, places, centred[:, j], target, limits), rounded)
    return found


def _near(scaled: FloatArray, centred: FloatArray) -> IntArray:
    """Hidden columns of which a linear map explains nearly all: a quick look at products of columns."""
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = values > SMALL * max(float(values.max(initial=0.0)), SMALL)
    along = vectors[:, kept].T @ (scaled.T @ centred)
    told = (along**2 / values[kept][:, None]).sum(axis=0)
    return np.flatnonzero(told >= NEARLY * (centred**2).sum(axis=0))


def _beyond_chance(column: FloatArray, free: int, tries: int) -> bool:
    counts = counted(column)
    return bool(np.log(tries) + fillings(free, counts) - orders(counts) < LIMIT)


def _close_beyond_chance(column: FloatArray, grid: float, free: int, tries: int) -> bool:
    """The same of a map that comes within a step of the grid: no more than this share of the cells lies so close together."""
    ordered = np.sort(column)
    ends = np.searchsorted(ordered, ordered + 1.1 * grid, side="right")
    share = float((ends - np.arange(len(ordered))).max()) / len(ordered)
    return bool(np.log(tries) + (len(column) - free) * np.log(share) < LIMIT)


def _taking_part(
    scaled: FloatArray, places: FloatArray, centred: FloatArray, target: FloatArray, limits: FloatArray
) -> tuple[int, ...]:
    """The own columns in the map; all that vary where there are too many to tell."""
    chosen: list[int] = []
    left = target
    lengths = np.linalg.norm(places, axis=0)
    varied = lengths > 0
    while len(chosen) < min(MOST, int(varied.sum())):
        match = np.abs(left @ places) / np.where(varied, lengths, np.inf)
        match[chosen] = -1.0
        chosen.append(int(match.argmax()))
        weights = np.asarray(np.linalg.lstsq(places[:, chosen], target, rcond=None)[0], dtype=np.float64)
        left = target - places[:, chosen] @ weights
        if (np.abs(centred - scaled[:, chosen] @ weights) <= limits + EXACT_CELL).all():
            return tuple(sorted(i for i, w in zip(chosen, weights, strict=True) if abs(w) > limits.min()))
    return tuple(np.flatnonzero(varied).tolist())
