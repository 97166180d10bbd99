"""Posterior means from weighed rows of cells: what was found of a row, or drawn of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from plumbob.attacks._common.release_likelihood import Meaning
from plumbob.attacks.scores._grid_lines import RowLogits
from plumbob.attacks.scores._grid_prior import GridPrior
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import torch

NEARLY_CERTAIN = 0.9  # of a value, from which a cell is put on it
FITS = 1e-24  # squared distance up to which scores fit a release


@dataclass(frozen=True)
class Weighed:
    """Rows of hidden cells that are possible for rows of the view, with the logarithms of their weights."""

    row: IntArray
    cells: FloatArray
    log: FloatArray

    @classmethod
    def none(cls, columns: int) -> Weighed:
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, columns)), np.zeros(0))

    def of(self, rows: IntArray) -> Weighed:
        """Those of some rows."""
        kept = np.isin(self.row, rows)
        return Weighed(self.row[kept], self.cells[kept], self.log[kept])

    def __or__(self, other: Weighed) -> Weighed:
        pairs = zip((self.row, self.cells, self.log), (other.row, other.cells, other.log), strict=True)
        return Weighed(*(np.concatenate(pair) for pair in pairs))

    def shares(self) -> FloatArray:
        """Weights that add up to 1 for each row."""
        top = np.full(int(self.row.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(top, self.row, self.log)
        share = np.exp(self.log - top[self.row])
        return np.asarray(share / np.bincount(self.row, share, len(top))[self.row])

    def means(self) -> tuple[IntArray, FloatArray]:
        """The rows that have any, and the mean of each; a cell whose value is nearly certain is put on it."""
        usable = np.isfinite(self.log)
        kept = Weighed(self.row[usable], self.cells[usable], self.log[usable])
        rows, place = np.unique(kept.row, return_inverse=True)
        share, found = kept.shares(), np.zeros((len(rows), kept.cells.shape[1]))
        for j, cells in enumerate(kept.cells.T):
            found[:, j] = np.bincount(place, share * cells, len(rows))
            put_on_certain(found[:, j], place, cells, share)
        return rows, found

    def moved(self, expected: FloatArray) -> FloatArray:
        """What is expected of the rows, moved as the weights move the mean of their draws, of which each row has as many."""
        count, share = len(self.row) // max(1, len(expected)), self.shares()
        if not count:
            return expected
        place, found = np.repeat(np.arange(len(expected)), count), expected.copy()
        for j, cells in enumerate(self.cells.T):
            mean = np.bincount(place, share * cells) - np.bincount(place, cells) / count
            found[:, j] = np.clip(expected[:, j] + mean, 0.0, 1.0)
            put_on_certain(found[:, j], place, cells, share)
        return found


def put_on_certain(found: FloatArray, place: IntArray, cells: FloatArray, share: FloatArray) -> None:
    """Puts rows on a cell's value, in place, where its weight is nearly all of the row's."""
    order = np.lexsort((cells, place))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (np.diff(place[order]) != 0) | (np.abs(np.diff(cells[order])) > 1e-12)
    certain = order[fresh][np.bincount(np.cumsum(fresh) - 1, share[order]) >= NEARLY_CERTAIN]
    found[place[certain]] = cells[certain]


def drawn(
    prior: GridPrior,
    logits: RowLogits,
    own: FloatArray,
    released: FloatArray,
    known: Meaning,
    rows: IntArray,
    count: int,
    rng: np.random.Generator,
) -> Weighed:
    """Draws from the prior, weighed by how well their scores fit a coarse release."""
    if not len(rows):
        return Weighed.none(len(prior.order))
    cells = prior.drawn(own[rows], count, rng).reshape(len(rows) * count, -1)
    row = np.repeat(rows, count)
    scores = softmax(logits(row, cells), axis=1)
    off = known.misfit(torch.from_numpy(scores), torch.from_numpy(released[row])).numpy()
    if not known.hard:
        return Weighed(row, cells, -0.5 * off / known.width**2)
    each = off.reshape(len(rows), count)
    least = each.min(axis=1, keepdims=True)
    fitting = np.where(each <= FITS, 0.0, -np.inf)
    log = np.where(least <= FITS, fitting, -0.5 * each / np.maximum(least, FITS))
    return Weighed(row, cells, log.ravel())
