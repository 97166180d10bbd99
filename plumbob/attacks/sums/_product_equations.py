"""The equations that a corrupted coordinator reads in encrypted logistic regression: T X' = Z, batch by batch, in integers.

Gradients (or weights) pass through its hands in clear, so it replays the weights T of every party, to the last bit. The
residuals that reach the active party are under its key: it opens them, takes off what the curious parties added themselves,
and what is left is Z, the weights of all other columns times the rows of the batch. T changes from epoch to epoch, X does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbob.crypto.plain import integers
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.shared.taylor_regression import BigIntegers, Rule, members, targets
from plumbob.threats import View
from plumbob.transcript import COORDINATOR

OPENED = "opened residuals"


@dataclass(frozen=True)
class ProductEquations:
    """Of one batch: sum over columns j of coefficients[t, m, j] X[i, j] = products[t, m, i], epoch t and model m."""

    rows: IntArray
    coefficients: BigIntegers  # epochs x models x unknown columns, times 2^f
    products: BigIntegers  # epochs x models x rows, times 2^(2f)
    rule: Rule

    def first(self, models: int | None) -> ProductEquations:
        """Those of the first models only."""
        return replace(self, coefficients=self.coefficients[:, :models], products=self.products[:, :models])

    def stacked(self) -> tuple[BigIntegers, BigIntegers]:
        """All equations one below the other."""
        return _flat(self.coefficients), _flat(self.products)

    def differences(self) -> tuple[FloatArray, FloatArray]:
        """Between successive epochs (Eq 9), in double precision."""
        left, right = self.rule.decode(self.coefficients), self.rule.decode(self.products, 2)
        return _flat(np.diff(left, axis=0)), _flat(np.diff(right, axis=0))


def _flat(cube: NDArray[Any]) -> NDArray[Any]:
    """Epochs and models one below the other."""
    return cube.reshape(cube.shape[0] * cube.shape[1], cube.shape[2])


@dataclass(frozen=True)
class DeterminedBatch:
    """What the equations of one batch determine. All of its rows share the coefficients."""

    rows: IntArray
    equations: int
    rank: int
    condition: float  # largest singular value over the smallest that counts
    determined: NDArray[np.bool_]  # rows x columns: cells that have one answer only


@dataclass(frozen=True)
class Analysis:
    """All batches, and the number of unknown columns."""

    batches: tuple[DeterminedBatch, ...]
    columns: int

    @property
    def rank(self) -> int:
        """The lowest of all batches."""
        return min(batch.rank for batch in self.batches)

    @property
    def share(self) -> float:
        """Of the unknown cells: how many are determined."""
        return float(np.concatenate([batch.determined for batch in self.batches]).mean())


def read(view: View) -> list[ProductEquations]:
    """The equations of every batch; none (zero epochs) where the coordinator has nothing to open."""
    rule = Rule.read(_first(view, "settings"))
    batches = members(np.asarray(_first(view, "batches"), dtype=np.int64))
    owners = [m.receiver for m in view.messages if m.name == "settings"]  # in the order of the joint columns
    classes = len(view.classes)
    models = 1 if classes == 2 else classes
    if OPENED not in view.notes:
        none = np.zeros((0, models, len(view.own) + len(view.unknown)), dtype=object)
        return [
            ProductEquations(rows, none[:, :, : len(view.unknown)], none[:, :, : len(rows)], rule) for rows in batches
        ]
    weights, bias = _weights(view, rule, owners, models, [len(rows) for rows in batches])
    residuals = integers(view.notes[OPENED])
    own, signs = rule.encode(view.own), rule.signs(targets(view.notes["label"], classes))
    found: list[tuple[list[BigIntegers], list[BigIntegers]]] = [([], []) for _ in batches]
    place = 0
    for turn, (current, offset) in enumerate(zip(weights, bias, strict=True)):
        rows = batches[turn % len(batches)]
        size = models * len(rows)
        residual = np.array(residuals[place : place + size], dtype=object).reshape(models, len(rows))
        place += size
        known = current[:, view.known] @ own[rows].T + (offset << rule.fraction_bits)[:, None] + signs[:, rows]
        left, right = found[turn % len(batches)]
        left.append(current[:, view.unknown])
        right.append(residual - known)
    return [ProductEquations(rows, np.stack(a), np.stack(b), rule) for rows, (a, b) in zip(batches, found, strict=True)]


def _first(view: View, name: str) -> NDArray[np.generic]:
    for message in view.messages:
        if message.name == name:
            return message.payload
    raise BadInput(f"this view holds no message '{name}'")


def _weights(
    view: View, rule: Rule, owners: list[str], models: int, sizes: list[int]
) -> tuple[list[BigIntegers], list[BigIntegers]]:
    """All weights (models x joint columns) and biases as they stood at the beginning of every round."""
    told = [m for m in view.messages if m.sender == COORDINATOR and m.name in ("gradients", "coefficients")]
    current: dict[str, BigIntegers] = {}
    for message in told[: len(owners)]:
        current[message.receiver] = np.zeros((models, len(message.payload) // models), dtype=object)
    weights, biases = [], []
    for turn in range(len(told) // len(owners)):
        weights.append(np.hstack([_columns(current[name], name == view.active) for name in owners]))
        biases.append(current[view.active][:, -1])
        epoch, batch = divmod(turn, len(sizes))
        for message in told[turn * len(owners) : (turn + 1) * len(owners)]:
            before = current[message.receiver]
            sent = np.array(integers(message.payload), dtype=object).reshape(before.shape)
            if message.name == "gradients":
                sent = rule.stepped(before, sent, sizes[batch], epoch, message.receiver == view.active)
            current[message.receiver] = sent
    return weights, biases


def _columns(weights: BigIntegers, with_bias: bool) -> BigIntegers:
    return weights[:, :-1] if with_bias else weights
