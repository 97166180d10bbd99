"""From sums over batches to single rows: jin2021's Steps I and II as linear algebra.

Step I   Every gradient that arrives is g_t = (1/K) sum of z_n over the rows n of batch t, so with the indicator matrix S (rounds
         x rows) the rows' own gradients solve S Z = K G, whatever the parameter. jin2021 runs SGD on this for the bias alone.
Step II  The bias of a fully connected layer has z_n = v_n, the gradient at its outputs; its weights have v_n h_n'. One batch
         alone gives sum v_n h_n' = V' H: least squares in H, for K <= d2 rows with independent v_n (Theorem 2 asks for
         N <= d2; see docs/attacks/gradient_peeling.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from plumbob.attacks.gradients._worker_uploads import UPLOAD_RANK_SHARE, Gradients, Uploads
from plumbob.federation import BoolArray, FloatArray, IntArray

DEAD = 1e-5  # share of the largest value below which a unit after ReLU counts as dead
NUMBERS_ASKED_AT_ONCE = 2_000_000  # numbers of rows' own gradients up to which these are asked at once
MOST_NUMBERS_OF_A_LAYER = 60_000_000  # numbers that the rows' own gradients of one layer may take
CELLS_SOLVED_TOGETHER = 8_192  # cells solved at once
# How much more noise a row's estimate may have in a batch than alone: rows nearly alike are not told apart
LOUDER = 1e3
QUIET = 10.0  # the same where there are other ways to tell, and from which no better batch is looked for
SEPARATE = 1e-6  # how far a row's own weight in its estimate may be from 1


@dataclass(frozen=True)
class Separation:
    """The pseudo-inverse of the batches of some rounds, and which rows it tells apart from all others."""

    rounds: IntArray
    inverse: FloatArray  # rows x rounds, the batch sizes included
    determined: BoolArray  # per row: whether its gradient is determined

    @classmethod
    def of(cls, uploads: Uploads, rounds: IntArray) -> Separation:
        """Of the batches of these rounds; the shortest solution where they are too few."""
        inverse, own = uploads.apart(rounds)
        return cls(rounds, inverse * uploads.sizes[rounds], own > 1 - SEPARATE)

    def rows(self, gradients: Gradients) -> FloatArray:
        """Z: one row's own gradient per row, rows x cells. Of many cells in the precision in which they came."""
        total = len(gradients.cells)
        if total > CELLS_SOLVED_TOGETHER and gradients.values.dtype == np.float32:
            return self.inverse.astype(np.float32) @ gradients.values
        found = np.empty((len(self.inverse), total))
        for start in range(0, total, CELLS_SOLVED_TOGETHER):
            part = slice(start, start + CELLS_SOLVED_TOGETHER)
            found[:, part] = self.inverse @ gradients.values[:, part].astype(np.float64)
        return found


@dataclass(frozen=True)
class Inputs:
    """What rows put into a layer, with the rows for which it is determined."""

    values: FloatArray
    found: BoolArray  # per row: whether its input is determined


def layer_inputs(
    uploads: Uploads, weights: Gradients, above: FloatArray, separated: BoolArray, louder: float = LOUDER
) -> Inputs:
    """H from a fully connected layer's weight gradients (d2 x d1 cells) and V = `above`, the rows' gradients at its outputs.

    Batch by batch, until every row was in one in which its v_n is distinct; a row that stands in several is taken from the one
    in which it is the most so. One with v_n = 0 (all its units dead) tells nothing.
    """
    total, d2 = above.shape
    scale = float(np.abs(above).max(initial=0.0)) or 1.0
    alive = np.abs(above).max(axis=1, initial=0.0) > UPLOAD_RANK_SHARE * scale
    strength = ((above / scale) ** 2).sum(axis=1)
    noise = np.full(total, np.inf)  # by row: squared, in its best batch, in units of what it would be alone
    chosen = np.full(total, -1)  # and which batch that is
    solutions: dict[int, tuple[IntArray, FloatArray]] = {}
    for position, round in enumerate(weights.rounds.tolist()):
        batch = np.unique(uploads.batches[round])
        known = batch[alive[batch]]
        if len(known) == 0 or not separated[batch].all():
            continue
        matrix = above[known] / scale
        inverse = linalg.pinv(matrix.T, rtol=UPLOAD_RANK_SHARE)  # known rows x d2
        own = np.einsum("nk,nk->n", inverse, matrix)
        louder_here = (inverse**2).sum(axis=1) * strength[known]
        better = (own > 1 - SEPARATE) & (louder_here < np.minimum(noise[known], louder**2))
        noise[known[better]], chosen[known[better]] = louder_here[better], position
        if better.any():
            solutions[position] = known, inverse
        if (noise < QUIET**2)[separated & alive].all():
            break
    values = np.zeros((total, len(weights.cells) // d2))
    for position in np.unique(chosen[chosen >= 0]).tolist():
        known, inverse = solutions[position]
        mine = chosen[known] == position
        gradient = weights.lines[position].reshape(d2, -1).astype(np.float64)
        size = uploads.sizes[weights.rounds[position]]
        values[known[mine]] = inverse[mine] @ gradient * (size / scale)
    return Inputs(values, chosen >= 0)


def row_inputs(weights: FloatArray, above: FloatArray, separated: BoolArray) -> Inputs:
    """H from the rows' own weight gradients v_n h_n' (rows x d2 d1): the one h_n that fits best; any batch size will do."""
    norm = (above**2).sum(axis=1)
    found = separated & (norm > (UPLOAD_RANK_SHARE * float(np.abs(above).max(initial=0.0))) ** 2)
    products = weights.reshape(len(above), above.shape[1], -1)
    values = np.einsum("nk,nkd->nd", above, products) / np.where(found, norm, 1.0)[:, None]
    return Inputs(np.where(found[:, None], values, 0.0), found)
