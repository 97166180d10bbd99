"""Logistic regression with a linear approximation of the sigmoid, in integers: what encryption can compute.

With y = -1 or 1 the loss ln(1 + exp(-y z)) is ln 2 - y z / 2 + z^2 / 8 up to third order, so that a row's slope is
    d = z / 4 - y / 2,                   z = theta x,            g = mean of d x over the batch.
In fixed point, T = 2^f theta and X = 2^f x, both rounded once, everything else is exact:
    D = T X - 2^(2f+1) y = 2^(2f+2) d,   G = sum of D X = 2^(3f+2) n g,   T' = T - round(rate (G / (4 n 2^(2f)) + penalty T)).
The rounding is deterministic, so whoever knows the gradients knows all weights to the last bit.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray

BigIntegers = NDArray[Any]  # Python integers of any size


@dataclass(frozen=True)
class Rule:
    """What all parties agree on before the first round: how weights follow from gradients."""

    learning_rate: float
    decay: float
    penalty: float
    fraction_bits: int

    def array(self) -> FloatArray:
        return np.array(astuple(self), dtype=np.float64)

    @classmethod
    def read(cls, array: Array) -> Rule:
        rate, decay, penalty, bits = (float(value) for value in array)
        return cls(rate, decay, penalty, int(bits))

    def rate(self, epoch: int) -> float:
        return self.learning_rate / (1.0 + self.decay * epoch)

    def encode(self, values: FloatArray) -> BigIntegers:
        """round(2^f x), ties to even; exact for all values whose integer a float can hold."""
        scaled = np.rint(np.ldexp(values, self.fraction_bits))
        if np.abs(scaled).max(initial=0.0) >= 2.0**62:
            raise BadInput(
                f"fixed point of {self.fraction_bits} bits: a column reaches {np.abs(values).max():g}; scale it to 0..1"
            )
        whole: BigIntegers = scaled.astype(np.int64).astype(object)
        return whole

    def decode(self, integers: BigIntegers, factors: int = 1) -> FloatArray:
        scale = 1 << (factors * self.fraction_bits)
        flat = [int(value) / scale for value in integers.ravel()]
        return np.array(flat, dtype=np.float64).reshape(integers.shape)

    def signs(self, targets: IntArray) -> BigIntegers:
        """-2^(2f+1) y."""
        signs: BigIntegers = targets.astype(object) * -(1 << (2 * self.fraction_bits + 1))
        return signs

    def stepped(
        self, weights: BigIntegers, gradient: BigIntegers, rows: int, epoch: int, last_is_bias: bool
    ) -> BigIntegers:
        """The next weights (models x columns), rounded half up; a bias in the last column is not penalised."""
        unit = 4 * rows << (2 * self.fraction_bits)
        rate, rate_unit = self.rate(epoch).as_integer_ratio()
        penalty, penalty_unit = self.penalty.as_integer_ratio()
        shrunk = weights * (penalty * unit)
        if last_is_bias:
            shrunk[:, -1] = 0
        top = (gradient * penalty_unit + shrunk) * rate
        bottom = rate_unit * penalty_unit * unit
        stepped: BigIntegers = weights - (2 * top + bottom) // (2 * bottom)
        return stepped


def targets(label: IntArray, classes: int) -> IntArray:
    """-1 or 1, one row per model: one model for two classes, else one for each class against the rest."""
    positive = [1] if classes == 2 else range(classes)
    return np.stack([np.where(label == one, 1, -1) for one in positive]).astype(np.int64)


def partition(rows: int, batch_size: int, rng: np.random.Generator, even: bool = False) -> IntArray:
    """The batch of each row: drawn once, used in every epoch. The last batch has what is left, or all are alike."""
    batch = np.empty(rows, dtype=np.int64)
    places = np.arange(rows)
    batch[rng.permutation(rows)] = places * -(-rows // batch_size) // rows if even else places // batch_size
    return batch


def members(batch: IntArray) -> list[IntArray]:
    """The rows of each batch, in the order of the table."""
    return [np.flatnonzero(batch == one) for one in range(int(batch.max()) + 1)]


@dataclass(frozen=True)
class Schedule:
    """The rows of every round, and how many rounds count as an epoch."""

    rows: tuple[IntArray, ...]
    per_epoch: int

    def epoch(self, turn: int) -> int:
        return turn // self.per_epoch

    @classmethod
    def kept(cls, batch: IntArray, epochs: int) -> Schedule:
        """The same batches in every epoch."""
        groups = members(batch)
        return cls(tuple(groups * epochs), len(groups))

    @classmethod
    def shuffled(cls, rows: int, batch_size: int, epochs: int, rng: np.random.Generator) -> Schedule:
        """All rows in every epoch, in batches drawn for this epoch."""
        groups = [group for _ in range(epochs) for group in members(partition(rows, batch_size, rng))]
        return cls(tuple(groups), -(-rows // batch_size))

    @classmethod
    def sampled(cls, rows: int, batch_size: int, epochs: int, rng: np.random.Generator) -> Schedule:
        """Rows drawn at random for every round; an epoch has as many rounds as it takes to go over all rows."""
        count, size = -(-rows // batch_size), min(rows, batch_size)
        return cls(tuple(np.sort(rng.permutation(rows)[:size]) for _ in range(count * epochs)), count)


@dataclass(frozen=True)
class Trained:
    """The weights (columns x models) and biases of a run."""

    weights: FloatArray
    bias: FloatArray

    def accuracy(self, values: FloatArray, label: IntArray) -> float:
        scores = values @ self.weights + self.bias
        found = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0.0)
        return float(np.mean(found == label)) if len(label) else float("nan")
