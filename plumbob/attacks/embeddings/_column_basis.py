"""Which sums of whole-number columns are the columns themselves (ours).

The span shows the lattice that the columns generate, not the columns: u + 3 v is whole as well. Two things tell them apart.
    training     inner products of rows (_training_products.py) make the columns x_j = u_j / K_j orthonormal functionals, so the
                 lattice has an orthogonal basis of lengths K_j, the steps in each range: LLL finds it, and lengths name it
    without it   columns repeat their values more than sums of them do: sums are taken while the entropy falls. Those of the
                 ranges that are known then count
A column's range also says where its zero is, where the constant 1 is not itself in the span (no bias, no full group of codes).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from plumbob.attacks.embeddings._training_products import Products
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.lazy_imports import flint

SAMPLED = 4_000  # rows on which functionals are fitted and entropies counted
SCALE = 2.0**40  # lengths are rounded at this scale before the reduction
LIKE = 0.02  # how far a length may be from the steps of a range, as a share
ASKEW = 0.2  # cosine of two columns in the metric of training from which they are none
SUMMED = 9  # vectors of no known range of which sums are tried
LONG = 1_000.0  # steps in a range from which lengths may be too inexact
SHORT = 0.02  # of it: ranges whose columns may be in it unseen
LOW = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # shares of the rows, those of its lowest values, that fits look at
FREQUENT = 0.02  # share of the rows that must have one value
FITS = 80
TELLING = 0.2  # of a step of a short column: errors of inner products from which it may be in a long one
SWEEPS = 40
COUNTED = 1_500  # rows on which entropies are counted
CONSTANT = 1e-3  # distance of the constant from the span below which it lies in it


@dataclass(frozen=True)
class Column:
    """One column: whole steps from one end of its range, and how many steps the range has."""

    steps: FloatArray
    reach: float  # steps in the range, as lengths or the data say
    upright: bool  # whether the direction is known too
    sure: bool  # whether training's inner products single it out, not its values alone
    near: bool = (
        False  # whether these may be too inexact to tell it from a sum of it with columns of far shorter ranges
    )


def by_products(whole: FloatArray, q: FloatArray, told: Products, ranges: IntArray) -> list[Column]:
    """The orthogonal basis of the lattice; q are the rows of the embeddings in the coordinates of the products.

    `ranges`: the steps in the ranges of the hidden columns, where these are known.
    """
    whole, functionals, offsets = _functionals(whole, q)
    root = _inverse_root(told.matrix)
    lengths = (root @ functionals).T
    turn = _reduced(lengths)
    lengths = turn.astype(np.float64) @ lengths
    columns = _times(whole, turn)
    columns = columns + np.rint(turn.astype(np.float64) @ offsets)
    varied = np.ptp(columns, axis=0) > 0
    columns, lengths = columns[:, varied], lengths[varied]
    if not len(lengths):
        return []
    unit = _unit(np.linalg.norm(lengths, axis=1), np.ptp(columns, axis=0), ranges)
    turn = _mended(lengths / unit, ranges)
    columns, lengths = _times(columns, turn), turn.astype(np.float64) @ lengths / unit
    reach = np.linalg.norm(lengths, axis=1)
    columns = columns * np.where(columns.max(axis=0) >= -columns.min(axis=0), 1.0, -1.0)
    columns, sharp = _sharpened(columns, reach)
    off = np.abs(lengths @ (root @ told.error @ root.T) @ lengths.T) / np.minimum.outer(reach, reach) ** 2
    near = (off.max(axis=0, initial=0.0) > TELLING) & ~sharp
    askew = np.abs(lengths @ lengths.T / np.outer(reach, reach) - np.eye(len(reach))).max(axis=0, initial=0.0)
    low, high = columns.min(axis=0), columns.max(axis=0)
    sure = (askew < ASKEW) & (low >= -LIKE * reach) & (high <= reach * (1 + LIKE) + 0.4)
    return [Column(columns[:, j], float(reach[j]), True, bool(sure[j]), bool(near[j])) for j in range(len(reach))]


def _sharpened(columns: FloatArray, reach: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Columns of long ranges, less what lengths are too inexact to tell of short ones in them: most of their lowest cells are one
    value, such as an amount of 0, so a sum of short columns that explains these cells is fitted by least absolute errors."""
    columns, sharp = columns.copy(), np.zeros(len(reach), dtype=bool)
    for j in np.flatnonzero(reach > LONG):
        table = np.column_stack([np.ones(len(columns)), columns[:, reach < reach[j] * SHORT]])
        order = np.argsort(np.abs(columns[:, j]), kind="stable")
        best = columns[:, j]
        for share in LOW:
            low = order[: int(share * len(columns))]
            if len(low) < 4 * table.shape[1]:
                continue
            left = columns[:, j] - table @ np.rint(_least_absolute(table[low], columns[low, j]))
            best = left if _most_frequent(left) > _most_frequent(best) else best
        if _most_frequent(best) > max(1.5 * _most_frequent(columns[:, j]), FREQUENT * len(best)):
            columns[:, j] = best
        sharp[j] = _most_frequent(columns[:, j]) > FREQUENT * len(best)
    return columns, sharp


def _least_absolute(table: FloatArray, goal: FloatArray) -> FloatArray:
    """By least squares with weights, of ever smaller errors that count alike."""
    weights: FloatArray = np.ones(len(goal))
    found: FloatArray = np.zeros(table.shape[1])
    for turn in range(FITS):
        root = np.sqrt(weights)
        found = np.asarray(np.linalg.lstsq(table * root[:, None], goal * root, rcond=None)[0])
        off = np.abs(goal - table @ found)
        weights = 1 / np.maximum(off, max(0.3, float(np.median(off)) * 0.8**turn))
    return np.asarray(found)


def _most_frequent(values: FloatArray) -> int:
    return int(np.unique(values, return_counts=True)[1].max())


def fits(reach: FloatArray, ranges: IntArray) -> BoolArray:
    """Which lengths are those of known ranges, or of a range whose values are multiples of some steps."""
    known = np.unique(ranges[ranges > 0])
    near = (np.abs(reach[..., None] / known - 1) < LIKE).any(axis=-1)
    whole = np.maximum(1, np.rint(reach))
    parts = ((np.abs(reach - whole) < LIKE * whole) & (whole > 2))[..., None] & (known % whole[..., None] == 0)
    return np.asarray(near | parts.any(axis=-1))


def _unit(size: FloatArray, spread: FloatArray, ranges: IntArray) -> float:
    """The length of one whole range: that under which most columns have one of the known ranges and do not exceed it, else the
    largest under which none exceeds its own."""
    largest = float((size / spread).min())
    known = np.unique(ranges[ranges > 0])
    if not len(known):
        return largest
    offered = np.unique(np.append((size[:, None] / known).ravel(), largest))[::-1]
    reach = size / offered[:, None]
    off = np.abs(reach[..., None] / known - 1).min(axis=-1)
    good = (off < LIKE) & (reach * (1 + LIKE) > spread)
    return float(offered[int(np.argmax(good.sum(axis=1) - (off * good).sum(axis=1) / (LIKE * (1 + len(size)))))])


def _mended(lengths: FloatArray, ranges: IntArray) -> IntArray:
    """A transformation that puts sums in the place of vectors that are as long as no range: where columns go together, such as
    two that are even together, the halves of their sum and difference are whole as well, and orthogonal."""
    count = len(lengths)
    turn = np.eye(count, dtype=object)
    wrong = np.flatnonzero(~fits(np.linalg.norm(lengths, axis=1), ranges)) if (ranges > 0).any() else np.zeros(0, int)
    if not 2 <= len(wrong) <= SUMMED:
        return turn
    sums = np.array(list(product((-1, 0, 1), repeat=len(wrong))))
    sums = sums[np.abs(sums).sum(axis=1) > 1]
    sums = sums[sums[np.arange(len(sums)), (sums != 0).argmax(axis=1)] > 0]
    offered = sums @ lengths[wrong]
    size = np.linalg.norm(offered, axis=1)
    good = np.flatnonzero(fits(size, ranges))
    taken: list[int] = []
    for i in good[np.argsort(size[good], kind="stable")]:
        if all(abs(offered[i] @ offered[j]) < ASKEW * size[i] * size[j] for j in taken) and len(taken) < len(wrong):
            taken.append(int(i))
    if len(taken) < len(wrong):
        return turn
    for place, i in zip(wrong, taken, strict=True):
        turn[place] = 0
        turn[place, wrong] = sums[i]
    return turn


def _functionals(whole: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The columns, of each the functional (r x count) of its values plus an offset, and that offset.

    If the constant is not in the span, only one offset makes a column a functional. Else the constant is one of the columns.
    """
    ones = np.ones((len(q), 1))
    solved = np.linalg.lstsq(q, np.hstack([ones, whole]), rcond=None)[0]
    constant, rest = solved[:, :1], solved[:, 1:]
    gap = ones[:, 0] - q @ constant[:, 0]
    if np.sqrt(np.mean(gap**2)) < CONSTANT:
        return np.hstack([ones, whole]), np.asarray(solved), np.zeros(1 + whole.shape[1])
    offsets = -(gap @ (whole - q @ rest)) / (gap @ gap)
    return whole, np.asarray(rest + constant * offsets), np.asarray(offsets)


def _inverse_root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors.T / np.sqrt(values)[:, None])


def _reduced(vectors: FloatArray) -> IntArray:
    """The transformation (count x count, of whole numbers) to a reduced basis of these vectors, one a row."""
    scale = SCALE / max(1e-300, float(np.linalg.norm(vectors, axis=1).max()))
    basis = [[int(value) for value in row] for row in np.rint(vectors * scale)]
    turn = flint.fmpz_mat(basis).lll(True)[1]
    return np.array([[int(value) for value in row] for row in turn.tolist()], dtype=object)


def _times(whole: FloatArray, turn: IntArray) -> FloatArray:
    """The columns of the new basis, exactly."""
    if max(abs(int(value)) for value in turn.ravel()) * float(np.abs(whole).max(initial=0.0)) < 2**40:
        return whole @ turn.T.astype(np.float64)
    return np.asarray((whole.astype(object) @ turn.T).astype(np.float64))


def by_values(whole: FloatArray, rng: np.random.Generator) -> list[Column]:
    """The columns of a reduced basis of the least entropies. Which end of the range is 0 is open."""
    centred = whole[rng.permutation(len(whole))[:SAMPLED]]
    upper = np.asarray(np.linalg.qr(centred - centred.mean(axis=0), mode="r"))
    columns = _times(whole, _reduced(upper.T))
    columns = _of_least_entropy(columns, rng)
    steps = columns - columns.min(axis=0)
    return [Column(one, float(one.max()), False, False) for one in steps.T]


def _of_least_entropy(columns: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Sums and differences of two in place of one of them, while its entropy falls."""
    columns = columns.copy()
    count = columns.shape[1]
    some = columns[rng.permutation(len(columns))[:COUNTED]]
    bits = _entropies(some)
    for _ in range(SWEEPS if count > 1 else 0):
        before = bits.sum()
        for i in np.argsort(-bits):
            others = np.delete(np.arange(count), i)
            offered = np.hstack([some[:, [i]] + some[:, others], some[:, [i]] - some[:, others]])
            told = _entropies(offered)
            best = int(told.argmin())
            if told[best] < bits[i] - 1e-9:
                sign = 1.0 if best < len(others) else -1.0
                other = others[best % len(others)]
                columns[:, i] += sign * columns[:, other]
                some[:, i] += sign * some[:, other]
                bits[i] = told[best]
        if bits.sum() > before - 1e-9:
            break
    return columns


def _entropies(columns: FloatArray) -> FloatArray:
    """In bits, of every column."""
    count = len(columns)
    ordered = np.sort(columns, axis=0)
    starts = np.vstack([np.ones((1, columns.shape[1]), dtype=bool), ordered[1:] != ordered[:-1]])
    found = np.empty(columns.shape[1])
    for j in range(columns.shape[1]):
        share = np.diff(np.append(np.flatnonzero(starts[:, j]), count)) / count
        found[j] = -float(share @ np.log2(share))
    return found
