"""Boosted trees in the clear: bins, gradients, the best split of a histogram, and the model they add up to.

A tree is grown on g = dl/ds and h = d2l/ds2 at the scores s so far. A split of a node into L and R is worth (weng2022, Eq 8)

    gain = 1/2 [ G_L^2 / (H_L + penalty) + G_R^2 / (H_R + penalty) - G^2 / (H + penalty) ] - gamma

with G and H the sums of g and h, and a leaf weighs -G / (H + penalty). Only sums per bin are needed for either, which is
why a party can find the splits of columns it never sees. Gradients are whole numbers here, g 2^precision rounded, so that
sums are exact and two ways to the same sum give the same tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.protocols.shared.trees import ABSENT

BoostingLoss = Literal["logistic", "squared"]
Binning = Literal["fate", "quantile"]
_HALF = 32  # bits of the lower half of a gradient: sums of halves stay below 2^53 and are exact as floats


def edges_of(column: FloatArray, bins: int, rule: Binning) -> FloatArray:
    """The upper ends of all bins but the last; a value equal to an end lies below it.

    "fate" cuts at observed values that are quantiles i / bins; equal ones merge, so a value that fills several bins gets one
    and rare values share theirs. "quantile" gives every distinct value a bin where there are at most `bins`, else cuts at
    interpolated quantiles.

    >>> column = np.array([0.0] + [1.0] * 50 + [2.0] * 49)
    >>> edges_of(column, 4, "fate").tolist(), edges_of(column, 4, "quantile").tolist()
    ([1.0], [0.0, 1.0])
    """
    places = np.arange(1, bins) / bins
    if rule == "fate":
        cuts = np.quantile(column, places, method="inverted_cdf")
    else:
        distinct = np.unique(column)
        cuts = distinct if len(distinct) <= bins else np.quantile(column, places)
    ends = np.unique(cuts)
    return np.asarray(ends[ends < column.max()], dtype=np.float64)


@dataclass(frozen=True)
class Bins:
    """A party's columns in bins, counted from the lowest values."""

    edges: tuple[FloatArray, ...]
    places: IntArray  # rows x columns

    @classmethod
    def of(cls, values: FloatArray, bins: int, rule: Binning) -> Bins:
        edges = tuple(edges_of(column, bins, rule) for column in values.T)
        places = [np.searchsorted(ends, column, side="left") for ends, column in zip(edges, values.T, strict=True)]
        table = np.array(places, dtype=np.int64).reshape(len(edges), len(values)).T  # a party may hold the label alone
        return cls(edges, np.ascontiguousarray(table))

    @property
    def counts(self) -> IntArray:
        return np.array([len(ends) + 1 for ends in self.edges], dtype=np.int64)


def gradients(loss: BoostingLoss, label: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """First and second derivative of the loss by the score, row by row."""
    if loss == "squared":
        return scores - label, np.ones_like(label)
    chance = 1 / (1 + np.exp(-scores))
    return chance - label, chance * (1 - chance)


def whole_numbers(numbers: FloatArray, precision: int) -> IntArray:
    """round(2^precision x)."""
    return np.rint(np.ldexp(numbers, precision)).astype(np.int64)


def bin_sums(values: IntArray, places: IntArray, count: int) -> list[int]:
    """Exact sums of 64-bit integers in each bin."""
    high, low = values >> _HALF, values & (2**_HALF - 1)
    sums = [np.bincount(places, weights=part, minlength=count).tolist() for part in (high, low)]
    return [(int(a) << _HALF) + int(b) for a, b in zip(*sums, strict=True)]


@dataclass(frozen=True)
class Histogram:
    """Sums of g and h in every bin of some columns, one column after the other."""

    counts: IntArray
    first: Sequence[int]
    second: Sequence[int]


@dataclass(frozen=True)
class Split:
    """The best place to cut a node: bins up to `bin` of a column go left."""

    gain: float
    column: int
    bin: int


@dataclass(frozen=True)
class Worth:
    """How splits and leaves are valued; whole numbers are units of 2^-precision."""

    penalty: float
    gamma: float
    precision: int

    def split(self, histogram: Histogram, allowed: BoolArray | None = None) -> Split | None:
        """The first split of the highest gain above zero, if any has one; only after bins that are `allowed`."""
        best: Split | None = None
        start = 0
        for column, count in enumerate(histogram.counts.tolist()):
            first, second = (self._running(sums[start : start + count]) for sums in (histogram.first, histogram.second))
            start += count
            if count < 2:
                continue
            gains = self._gains(first, second)
            if allowed is not None:
                gains = np.where(allowed[start - count : start - 1], gains, -np.inf)
            place = int(np.argmax(gains))
            if gains[place] > (best.gain if best else 0.0):
                best = Split(float(gains[place]), column, place)
        return best

    def leaf(self, first: int, second: int) -> float:
        scale = 1 << self.precision
        return -(first / scale) / max(second / scale + self.penalty, 1e-16)

    def _running(self, sums: Sequence[int]) -> FloatArray:
        total, running = 0, []
        for one in sums:
            total += one
            running.append(total / (1 << self.precision))
        return np.array(running)

    def _gains(self, first: FloatArray, second: FloatArray) -> FloatArray:
        left_g, left_h = first[:-1], second[:-1]
        right_g, right_h = first[-1] - left_g, second[-1] - left_h
        both = (left_h > 0) & (right_h > 0)  # rows on either side

        def worth(g: FloatArray, h: FloatArray) -> FloatArray:
            return g**2 / np.maximum(h + self.penalty, 1e-16)

        parent = worth(first[-1:], second[-1:])
        gains = 0.5 * (worth(left_g, left_h) + worth(right_g, right_h) - parent) - self.gamma
        return np.where(both, gains, -np.inf)


@dataclass(frozen=True)
class HistogramModel:
    """Trees as full binary trees, node i with children 2i+1 and 2i+2. Bins and thresholds are known to the owners only."""

    feature: IntArray  # trees x nodes; position in the joint model, LEAF or ABSENT
    bin: IntArray
    threshold: FloatArray
    weight: FloatArray  # of leaves, shrunk
    start: float
    loss: BoostingLoss

    def arrays(self) -> dict[str, Array]:
        return {
            "feature": self.feature,
            "bin": self.bin,
            "threshold": self.threshold,
            "weight": self.weight,
            "start": np.array([self.start]),
        }

    def margins(self, values: FloatArray) -> FloatArray:
        """The sum of the trees' weights."""
        total, everyone = np.full(len(values), self.start), np.arange(len(values))
        for feature, threshold, weight in zip(self.feature, self.threshold, self.weight, strict=True):
            place = np.zeros(len(values), dtype=np.int64)
            for _ in range(len(feature).bit_length() - 1):
                inner = feature[place] >= 0
                right = values[everyone, np.maximum(feature[place], 0)] > threshold[place]
                place = np.where(inner, 2 * place + 1 + right, place)
            total += weight[place]
        return total

    def scores(self, values: FloatArray) -> FloatArray:
        """Chances of the two classes, or one column of predicted numbers."""
        margins = self.margins(values)
        if self.loss == "squared":
            return margins[:, None]
        chance = 1 / (1 + np.exp(-margins))
        return np.stack([1 - chance, chance], axis=1)


def empty(trees: int, depth: int, start: float, loss: BoostingLoss) -> HistogramModel:
    """Room for trees: all nodes absent."""
    shape = trees, 2 ** (depth + 1) - 1
    return HistogramModel(
        np.full(shape, ABSENT), np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape), start, loss
    )


def target(loss: BoostingLoss, label: IntArray, classes: int) -> FloatArray:
    """The label as the number that a score shall come to; for squared loss class c is the number c."""
    if loss == "logistic" and classes != 2:
        raise BadInput(
            f"secure boost: logistic loss needs a label of two classes, got {classes}; "
            "merge classes, or use loss='squared' for an ordered label"
        )
    return label.astype(np.float64)
