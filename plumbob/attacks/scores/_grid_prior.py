"""What is expected of hidden columns whose values lie on a grid: a probability for every value, given a row's other cells.

    p(k | own, earlier hidden cells)  ~  marginal(k) N(k; m, s^2) / N(k; mean, variance)
The marginal is that of the complete rows at hand: their values, a smooth part around them and a little of everything. The two
normals tilt it to what a regression on the row's other cells expects. Without complete rows the hidden columns are taken for
further draws of the known ones. Of a column with very many values some are looked at: those seen before, and evenly spaced ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plumbob.attacks.scores.posterior_mean import without_scores
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.threats import View

SUPPORT = 2048  # values of a column that are looked at, beside those seen before
SEEN, SMOOTH = 0.57, 0.43  # parts of the marginal: values seen, and what lies around them
DOUBT = 3.0  # complete rows that the even part counts as
FEWEST = 3  # complete rows from which a marginal is learnt
NARROWEST = 1e-4  # of a regression's error, in units of the range
EXPANDED = 4_000_000  # cells of a beam that are compared at once


@dataclass(frozen=True)
class Tilt:
    """N(x; m, s^2) / N(x; mean, variance), m = mean + slope (others - their mean)."""

    slope: FloatArray  # of the row's known cells, then of the earlier hidden ones
    centre: FloatArray  # their means
    mean: float
    variance: float
    left: float  # s^2

    def log(self, values: FloatArray, expected: FloatArray) -> FloatArray:
        return (values - self.mean) ** 2 / (2 * self.variance) - (values - expected) ** 2 / (2 * self.left)


@dataclass(frozen=True)
class GridPrior:
    """Hidden columns in the order in which they are guessed, the last one given all others."""

    order: IntArray
    values: tuple[FloatArray, ...]  # by place in the order: what is looked at of the column
    logs: tuple[FloatArray, ...]  # the logarithms of their marginal
    tilts: tuple[Tilt | None, ...]

    def bits(self) -> float:
        """Of all columns but the last, at most."""
        return float(sum(-(np.exp(log) * log).sum() / np.exp(log).sum() for log in self.logs[:-1]) / np.log(2.0))

    def lines(self) -> int:
        """How many combinations of values there are of all columns but the last, as far as that can matter."""
        return math.prod(len(values) for values in self.values[:-1])

    def likeliest(self, own: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
        """The likeliest values of all columns but the last, by a beam: rows x count x columns, and their logarithms.

        The last column's cells are zero.
        """
        size = len(self.order)
        cells, logs = np.zeros((len(own), 1, size)), np.zeros((len(own), 1))
        for place in range(size - 1):
            values = self.values[place]
            width = min(count, logs.shape[1] * len(values))
            made = np.zeros((len(own), width, size)), np.zeros((len(own), width))
            together = max(1, EXPANDED // (logs.shape[1] * len(values)))
            for begin in range(0, len(own), together):
                rows = slice(begin, begin + together)
                longer = logs[rows, :, None] + self.conditional(place, own[rows, None], cells[rows])
                flat = longer.reshape(len(longer), -1)
                kept = np.argpartition(-flat, width - 1, axis=1)[:, :width]
                parent, value = np.divmod(kept, len(values))
                made[0][rows] = np.take_along_axis(cells[rows], parent[:, :, None], axis=1)
                made[0][rows, :, self.order[place]] = values[value]
                made[1][rows] = np.take_along_axis(flat, kept, axis=1)
            cells, logs = made
        best = np.argsort(-logs, axis=1)
        return np.take_along_axis(cells, best[:, :, None], axis=1), np.take_along_axis(logs, best, axis=1)

    def conditional(self, place: int, own: FloatArray, cells: FloatArray) -> FloatArray:
        """Log probabilities of a column's values (a last axis), given own cells and those of earlier columns."""
        values, logs = self.values[place], self.logs[place]
        tilted = np.broadcast_to(logs, (*cells.shape[:-1], len(values)))
        tilt = self.tilts[place]
        if tilt is not None:
            tilted = tilted + tilt.log(values, self._expected(place, own, cells)[..., None])
        top = tilted.max(axis=-1, keepdims=True)
        return np.asarray(tilted - top - np.log(np.exp(tilted - top).sum(axis=-1, keepdims=True)))

    def of_last(self, own: FloatArray, cells: FloatArray) -> FloatArray:
        """Log density of the last column's cells, up to a constant for each row."""
        place = len(self.order) - 1
        values, logs, tilt = self.values[place], self.logs[place], self.tilts[place]
        here = cells[:, self.order[place]]
        found = np.interp(here, values, logs)
        if tilt is not None:
            found = found + tilt.log(here, self._expected(place, own, cells))
        return np.asarray(found)

    def drawn(self, own: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Rows x count x columns, drawn column by column."""
        cells = np.zeros((len(own), count, len(self.order)))
        together = max(1, EXPANDED // (count * max(map(len, self.values))))
        for begin in range(0, len(own), together):
            rows = slice(begin, begin + together)
            for place, column in enumerate(self.order):
                share = np.exp(self.conditional(place, own[rows, None], cells[rows]))
                share = np.cumsum(share, axis=-1)
                picked = (share < rng.random((*share.shape[:-1], 1)) * share[..., -1:]).sum(axis=-1)
                cells[rows, :, column] = self.values[place][picked]
        return cells

    def _expected(self, place: int, own: FloatArray, cells: FloatArray) -> FloatArray:
        tilt = self.tilts[place]
        assert tilt is not None
        known = own.shape[-1]
        from_own = (own - tilt.centre[:known]) @ tilt.slope[:known]
        earlier = cells[..., self.order[:place]] - tilt.centre[known:]
        return np.asarray(np.clip(tilt.mean + from_own + earlier @ tilt.slope[known:], 0.0, 1.0))


def grid_prior(view: View, steps: FloatArray, order: IntArray, known: FloatArray, hidden: FloatArray) -> GridPrior:
    """The prior from complete rows (in unit ranges), or from the known columns where there are too few."""
    if len(hidden) < FEWEST:
        return _from_own(view, steps, order)
    table = np.hstack([known, hidden[:, order]])
    fitted = sklearn.covariance.LedoitWolf().fit(table)
    mean, covariance = fitted.location_, fitted.covariance_
    values, logs, tilts = [], [], []
    for place, column in enumerate(order):
        looked_at = _support(steps[column], hidden[:, column])
        values.append(looked_at)
        logs.append(_marginal(looked_at, hidden[:, column], steps[column]))
        tilts.append(_tilt(mean, covariance, known.shape[1] + place))
    return GridPrior(order, tuple(values), tuple(logs), tuple(tilts))


def _from_own(view: View, steps: FloatArray, order: IntArray) -> GridPrior:
    """Hidden columns as further draws of the known ones: a wide normal around what their means suggest."""
    centre = float(without_scores(view).mean())
    spread = float(view.own.std(axis=0).mean()) if view.own.shape[1] else 0.3
    width = max(spread, 0.15)
    values = [_support(steps[column], np.zeros(0)) for column in order]
    shapes = [np.logaddexp(-0.5 * ((x - centre) / width) ** 2, np.log(0.1)) for x in values]
    logs = [shape - np.log(np.exp(shape).sum()) for shape in shapes]
    return GridPrior(order, tuple(values), tuple(logs), (None,) * len(order))


def _support(step: float, seen: FloatArray) -> FloatArray:
    count = round(1.0 / step) + 1 if step > 0 else SUPPORT + 1
    if count <= 2 * SUPPORT:
        return np.asarray(np.arange(count) * (step if step > 0 else 1.0 / SUPPORT))
    even = np.rint(np.linspace(0, count - 1, SUPPORT))
    atoms = np.unique(np.rint(np.clip(seen, 0.0, 1.0) / step))
    if len(atoms) > SUPPORT:
        atoms = atoms[np.linspace(0, len(atoms) - 1, SUPPORT).astype(int)]
    return np.asarray(np.union1d(even, atoms) * step)


def _marginal(values: FloatArray, seen: FloatArray, step: float) -> FloatArray:
    place = np.abs(values[:, None] - seen).argmin(axis=0)
    counted = np.bincount(place, minlength=len(values)) / len(seen)
    width = max(1.06 * float(seen.std()) * len(seen) ** -0.2, step, NARROWEST)
    smooth = np.exp(-0.5 * ((values[:, None] - values[place]) / width) ** 2).mean(axis=1)
    even = DOUBT / (DOUBT + len(seen))
    return np.asarray(np.log((1.0 - even) * (SEEN * counted + SMOOTH * smooth / smooth.sum()) + even / len(values)))


def _tilt(mean: FloatArray, covariance: FloatArray, place: int) -> Tilt:
    slope = np.linalg.solve(covariance[:place, :place] + 1e-9 * np.eye(place), covariance[:place, place])
    variance = max(float(covariance[place, place]), NARROWEST**2)
    left = float(np.clip(variance - slope @ covariance[:place, place], max(NARROWEST**2, 0.01 * variance), variance))
    return Tilt(np.asarray(slope), mean[:place], float(mean[place]), variance, left)
