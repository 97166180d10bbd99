"""The equations that a corrupted coordinator reads in encrypted logistic regression: T X' = Z, batch by batch, in integers.

Gradients (or weights) pass through its hands in clear, so it replays the weights T of every party, to the last bit. The
residuals that reach the active party are under its key: it opens them, takes off what the curious parties added themselves,
and what is left is Z, the weights of all other columns times the rows of the batch. T changes from round to round, X does not.

A residual belongs to one row, so equations are collected row by row over the rounds in which it was drawn. Rows that were drawn
in the same rounds share their T: with recurring batches these are the batches, with batches drawn anew hardly two rows.
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


@dataclass(frozen=True)
class OpenedRound:
    """One round: its rows, T of the unknown columns, Z, and the residuals D themselves; gradients X' D where they were told."""

    rows: IntArray
    coefficients: BigIntegers  # models x unknown columns
    products: BigIntegers  # models x rows
    residual: BigIntegers  # models x rows
    gradient: BigIntegers | None  # models x unknown columns, times 2^(3f)


def read(view: View) -> list[ProductEquations]:
    """The equations of every batch; none (zero epochs) where the coordinator has nothing to open."""
    rule, turns, kept = _settings(view)
    if OPENED not in view.notes:
        models = _models(view)
        none = np.zeros((0, models, len(view.own) + len(view.unknown)), dtype=object)
        groups = turns if kept else [np.arange(len(view.own))]
        return [
            ProductEquations(rows, none[:, :, : len(view.unknown)], none[:, :, : len(rows)], rule) for rows in groups
        ]
    return row_equations(opened_rounds(view), len(view.own), rule)


def row_equations(rounds: list[OpenedRound], rows: int, rule: Rule) -> list[ProductEquations]:
    """Those of all rows, together for rows that were drawn in the same rounds."""
    drawn: list[list[int]] = [[] for _ in range(rows)]
    for turn, one in enumerate(rounds):
        for row in one.rows.tolist():
            drawn[row].append(turn)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, seen in enumerate(drawn):
        groups.setdefault(tuple(seen), []).append(row)
    return [
        _collected([rounds[turn] for turn in seen], np.array(groups[seen]), rounds[0], rule) for seen in sorted(groups)
    ]


def _collected(seen: list[OpenedRound], rows: IntArray, any_round: OpenedRound, rule: Rule) -> ProductEquations:
    if not seen:  # rows that no round has drawn
        models, columns = any_round.coefficients.shape
        none = np.zeros((0, models, columns + len(rows)), dtype=object)
        return ProductEquations(rows, none[:, :, :columns], none[:, :, columns:], rule)
    products = [one.products[:, np.searchsorted(one.rows, rows)] for one in seen]
    return ProductEquations(rows, np.stack([one.coefficients for one in seen]), np.stack(products), rule)


def opened_rounds(view: View) -> list[OpenedRound]:
    """All rounds, in order."""
    rule, turns, _ = _settings(view)
    owners = [m.receiver for m in view.messages if m.name == "settings"]  # in the order of the joint columns
    models = _models(view)
    weights, bias = _weights(view, rule, owners, models, turns)
    gradients = _gradients(view, [name for name in owners if name not in view.curious], models)
    residuals = integers(view.notes[OPENED])
    own, signs = rule.encode(view.own), rule.signs(targets(view.notes["label"], len(view.classes)))
    found, place = [], 0
    for turn, (current, offset) in enumerate(zip(weights, bias, strict=True)):
        rows = turns[turn % len(turns)]
        size = models * len(rows)
        residual = np.array(residuals[place : place + size], dtype=object).reshape(models, len(rows))
        place += size
        known = current[:, view.known] @ own[rows].T + (offset << rule.fraction_bits)[:, None] + signs[:, rows]
        gradient = gradients[turn] if gradients else None
        found.append(OpenedRound(rows, current[:, view.unknown], residual - known, residual, gradient))
    return found


def _models(view: View) -> int:
    return 1 if len(view.classes) == 2 else len(view.classes)


def _settings(view: View) -> tuple[Rule, list[IntArray], bool]:
    """The rule, the rows of the rounds, and whether these are batches that recur in every epoch."""
    rule = Rule.read(_first(view, "settings"))
    if recurring(view):
        return rule, members(np.asarray(_first(view, "batches"), dtype=np.int64)), True
    told = [m for m in view.messages if m.name == "batch"]
    receiver = told[0].receiver if told else ""  # every passive party is told the same
    return rule, [np.asarray(m.payload, dtype=np.int64) for m in told if m.receiver == receiver], False


def recurring(view: View) -> bool:
    """Whether the batches are the same in every epoch."""
    return any(message.name == "batches" for message in view.messages)


def _gradients(view: View, hidden: list[str], models: int) -> list[BigIntegers]:
    """X' D of the unknown columns, round by round; none where parties are told their weights instead."""
    told: dict[str, list[BigIntegers]] = {name: [] for name in hidden}
    for message in view.messages:
        if message.sender == COORDINATOR and message.name == "gradients" and message.receiver in told:
            told[message.receiver].append(np.array(integers(message.payload), dtype=object).reshape(models, -1))
    return [np.hstack(parts) for parts in zip(*told.values(), strict=True)]


def _first(view: View, name: str) -> NDArray[np.generic]:
    for message in view.messages:
        if message.name == name:
            return message.payload
    raise BadInput(f"this view holds no message '{name}'")


def _weights(
    view: View, rule: Rule, owners: list[str], models: int, turns: list[IntArray]
) -> tuple[list[BigIntegers], list[BigIntegers]]:
    """All weights (models x joint columns) and biases as they stood at the beginning of every round."""
    told = [m for m in view.messages if m.sender == COORDINATOR and m.name in ("gradients", "coefficients")]
    per_epoch = -(-len(view.own) // max(len(rows) for rows in turns))
    current: dict[str, BigIntegers] = {}
    for message in told[: len(owners)]:
        current[message.receiver] = np.zeros((models, len(message.payload) // models), dtype=object)
    weights, biases = [], []
    for turn in range(len(told) // len(owners)):
        weights.append(np.hstack([_columns(current[name], name == view.active) for name in owners]))
        biases.append(current[view.active][:, -1])
        rows = len(turns[turn % len(turns)])
        for message in told[turn * len(owners) : (turn + 1) * len(owners)]:
            before = current[message.receiver]
            sent = np.array(integers(message.payload), dtype=object).reshape(before.shape)
            if message.name == "gradients":
                sent = rule.stepped(before, sent, rows, turn // per_epoch, message.receiver == view.active)
            current[message.receiver] = sent
    return weights, biases


def _columns(weights: BigIntegers, with_bias: bool) -> BigIntegers:
    return weights[:, :-1] if with_bias else weights
