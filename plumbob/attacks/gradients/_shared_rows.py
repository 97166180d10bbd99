"""Rows that stand in several batches (ours): found where the batches' spans meet, whatever the parameters did between them.

Where a network begins with its fully connected layer, round t sends up [dW | db] = sum of v_n [x_n | 1] over its batch. v_n
changes with the parameters, x_n does not: [x_n | 1] lies in the row space R_t of every round that n is in. Where the spaces of
n's rounds have one direction in common, that is n's, and its last cell gives its length.
    min over |c| = 1 of  sum over n's rounds t of |x - P_t x|^2,  x = B c,  B a basis of one of these rounds
An eigenvector of a matrix as large as a batch. Rounds in which n left no gradient are found by their residual and left out.
It needs fewer rows in a batch than there are columns and units; else R_t is everything, and nothing meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbob.attacks.gradients._row_gradients import Inputs
from plumbob.federation import FloatArray, IntArray

# Columns are in [0, 1]: so far they are moved, and the cell of the bias is made as large as theirs
MIDDLE, ONE = 0.5, 0.25
ROUNDING_TIMES_TO_COUNT = 30.0  # times its rounding that a singular value must be to count
LENGTH_ROUNDING = 1e-7  # rounding of lengths here, which are roots of small differences
ROW_ROUNDING_TIMES = 10.0  # times its rounding that a row may be off in a round
SURE_OF_A_ROW = 1e-2  # a row whose rounding is above this share of its length is not claimed
APART = 30.0  # times what a row may be off that any other direction must be
REWEIGHING_TURNS, NARROWER = 12, 0.25  # of reweighing rounds by how far they are off, from all alike to those that fit
FIRST_ROUNDS_TRIED = 6  # rounds that are tried as the first
SPARE_EQUATIONS = 4  # equations more than unknowns
CROSSED = 150  # rounds of which every pair is looked at
OUTSIDE = 0.01  # how far out of [0, 1] a cell may be


@dataclass(frozen=True)
class RoundSpan:
    """One round's row space: an orthonormal basis (rank x cells), and how far rounding may turn each direction of it."""

    batch: IntArray
    basis: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, batch: IntArray, weights: FloatArray, bias: FloatArray | None = None) -> RoundSpan | None:
        """Of a layer's gradients (units x columns, and units); nothing where the space is everything, or empty."""
        whole = weights.astype(np.float64)
        if bias is not None:
            whole = np.column_stack([whole - MIDDLE * bias[:, None], ONE * bias.astype(np.float64)])
        if not np.abs(whole).max(initial=0.0) > 0:
            return None
        _, sizes, right = np.linalg.svd(whole, full_matrices=False)
        rounding = float(np.finfo(weights.dtype).eps) * np.sqrt(len(batch))
        rank = int((sizes > ROUNDING_TIMES_TO_COUNT * rounding * sizes[0]).sum())
        if rank >= whole.shape[1]:
            return None
        return cls(np.unique(batch), right[:rank], rounding * sizes[0] / sizes[:rank])


def crossings(matrices: FloatArray) -> FloatArray:
    """Directions that the row spaces of two rounds have in common and no other: someone's who is in both (rounds x units x
    columns). Nobody need say who is in a batch; rows that two pairs of rounds have in common come out twice.
    """
    unknown = np.zeros(1, dtype=np.int64)
    spans = [span for matrix in matrices[:CROSSED] if (span := RoundSpan.of(unknown, matrix)) is not None]
    found = []
    for i, one in enumerate(spans):
        for other in spans[:i]:
            if len(one.basis) + len(other.basis) + SPARE_EQUATIONS > one.basis.shape[1]:
                continue
            left, cosines, right = np.linalg.svd(one.basis @ other.basis.T)
            off = np.sqrt(np.maximum(1 - cosines[:2] ** 2, 0.0))
            turned = np.linalg.norm(left[:, 0] * one.noise), np.linalg.norm(right[0] * other.noise)
            allowed = LENGTH_ROUNDING + ROW_ROUNDING_TIMES * float(sum(turned))
            if allowed < SURE_OF_A_ROW and off[0] < allowed and (len(off) == 1 or off[1] > APART * allowed):
                found.append(left[:, 0] @ one.basis + right[0] @ other.basis)
    directions = np.array(found).reshape(-1, matrices.shape[2])
    directions *= np.sign(directions.sum(axis=1, keepdims=True))
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))


def met(spans: Sequence[RoundSpan], rows: int, columns: int) -> Inputs:
    """The rows that spans determine."""
    values, noise = np.full((rows, columns), MIDDLE), np.full(rows, np.inf)
    for row in range(rows):
        own = [span for span in spans if row in span.batch]
        for base in sorted(own, key=lambda span: (len(span.batch) - len(span.basis), span.noise[-1]))[
            :FIRST_ROUNDS_TRIED
        ]:
            found = _common(row, base, [span for span in own if span is not base])
            if found is not None and found[1] < noise[row]:
                values[row], noise[row] = found
    return Inputs(values, np.isfinite(noise))


def _common(row: int, base: RoundSpan, others: list[RoundSpan]) -> tuple[FloatArray, float] | None:
    """The row's columns and how far off they may be, if its rounds have one direction in common and no other row."""
    rank, cells = base.basis.shape
    shared = [base.basis @ span.basis.T for span in others]
    missing = np.array([np.eye(rank) - part @ part.T for part in shared]).reshape(-1, rank, rank)
    weight, inside = np.ones(len(others)), np.ones(len(others), dtype=bool)
    for turn in range(REWEIGHING_TURNS):
        direction = np.linalg.eigh(np.einsum("t,tab->ab", weight, missing))[1][:, 0]
        off = np.sqrt(np.maximum(np.einsum("a,tab,b->t", direction, missing, direction), 0.0))
        turned = [np.linalg.norm((direction @ part) * span.noise) for part, span in zip(shared, others, strict=True)]
        allowed = LENGTH_ROUNDING + ROW_ROUNDING_TIMES * (np.linalg.norm(direction * base.noise) + np.array(turned))
        weight, inside = 1 / np.maximum(off, np.maximum(allowed, NARROWER**turn)) ** 2, off < allowed
    fitting = [span for span, fits in zip(others, inside, strict=True) if fits]
    if set(base.batch).intersection(*(span.batch for span in fitting)) != {row}:
        return None  # who else is in all of them could be meant
    equations, unknown = sum(cells - len(span.basis) for span in fitting), rank - 1
    if unknown and equations < unknown + SPARE_EQUATIONS:
        return None
    sizes = np.sqrt(np.maximum(np.linalg.eigvalsh(missing[inside].sum(axis=0)), 0.0))
    worst = float(np.max(allowed[inside], initial=ROW_ROUNDING_TIMES * float(np.linalg.norm(direction * base.noise))))
    if worst > SURE_OF_A_ROW or (unknown and sizes[1] < APART * worst):
        return None
    x = direction @ base.basis
    x = np.mean([x, *(span.basis.T @ (span.basis @ x) for span in fitting)], axis=0)
    if abs(x[-1]) < worst:
        return None
    found = MIDDLE + ONE * x[:-1] / x[-1]
    return (found, worst) if found.min() > -OUTSIDE and found.max() < 1 + OUTSIDE else None
