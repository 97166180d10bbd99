"""Independent components of a table of rows (FastICA, Hyvärinen and Oja 2000), with those that every start finds.

W <- E[g(W y) y'] - diag(E[g'(W y)]) W,  made orthogonal after each turn,  g = tanh,  y white

Gaussian columns have no such directions, and starts then end anywhere: so a component counts if nearly all starts end at it, and
if it is farther from a Gaussian than the components of Gaussian tables of as many rows and columns.
"""

from __future__ import annotations

import numpy as np

from plumbob.federation import FloatArray

STARTS = 8
TURNS = 200
SETTLED = 1e-7
SAME = 0.98  # correlation of components that are the same
STABLE = 0.75  # share of the starts that must find one
SURROGATES = 3  # Gaussian tables that it is compared with
BEYOND = 1.5  # times the oddest component of these
ROWS = 5_000
GAUSSIAN, DEVIATION = 0.374567, 0.40  # mean and deviation of log cosh of a Gaussian value


def stable_components(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The components (n x count, of variance 1) that most starts end at."""
    white = _white(rows)
    count, rank = white.shape
    if rank < 1 or count < 10 * rank:
        return white[:, :0]
    some = white[rng.permutation(count)[:ROWS]]
    ends = [_separated(some, np.linalg.qr(rng.normal(size=(rank, rank)))[0]) for _ in range(STARTS)]
    first = ends[0]
    agreeing = np.mean([(np.abs(first @ other.T) > SAME).any(axis=1) for other in ends[1:]], axis=0)
    usual = np.max([_oddness(table @ _separated(table, np.eye(rank)).T) for table in _gaussian(some.shape, rng)])
    odd = _oddness(some @ first.T)
    return np.asarray((white @ first.T)[:, (agreeing >= STABLE) & (odd > BEYOND * usual)])


def _gaussian(shape: tuple[int, ...], rng: np.random.Generator) -> list[FloatArray]:
    return [_white(rng.normal(size=shape)) for _ in range(SURROGATES)]


def _oddness(columns: FloatArray) -> FloatArray:
    """How far from a Gaussian: the excess of the fourth moment, or of log cosh, in deviations of one direction's estimate."""
    root = np.sqrt(len(columns))
    fourth = np.abs(np.mean(columns**4, axis=0) - 3) / np.sqrt(24) * root
    smooth = np.abs(np.log(np.cosh(columns)).mean(axis=0) - GAUSSIAN) / DEVIATION * root
    return np.asarray(np.maximum(fourth, smooth))


def _white(rows: FloatArray) -> FloatArray:
    centred = rows - rows.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-9 * max(1e-300, float(sizes[0]))] * np.sqrt(len(rows)))


def _separated(white: FloatArray, turn: FloatArray) -> FloatArray:
    """The directions (one a row) at which turns end."""
    for _ in range(TURNS):
        values = np.tanh(white @ turn.T)
        moved = values.T @ white / len(white) - (1 - values**2).mean(axis=0)[:, None] * turn
        left, _, right = np.linalg.svd(moved)
        last, turn = turn, left @ right
        if np.abs(np.abs(np.sum(last * turn, axis=1)) - 1).max() < SETTLED:
            break
    return turn
