"""What a passive party of encrypted regression knows of the label from its own gradients, round by round.

In fixed point a gradient is G = X' D over the rows of the round, with D = T X of all parties - 2^(2f+1) y. The party knows its
own part of D, and takes it off:
    -(G - X' (T X)_own) / 2^(3f+1)  =  sum over rows of x (y - z / 2),      z: the others' part of the model's score, 0 at first
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plumbob.crypto.plain import integers
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.shared.taylor_regression import BigIntegers, Rule, members
from plumbob.threats import View


@dataclass(frozen=True)
class OpenedGradient:
    """One round: `sums` is models x own columns, as above; `exact` the same as whole numbers, times 2^f, where z is 0."""

    rows: IntArray
    sums: FloatArray
    exact: BigIntegers | None


def opened_gradients(view: View) -> tuple[BigIntegers, list[OpenedGradient]]:
    """Own columns times 2^f, and all rounds."""
    rule = Rule.read(_first(view, "settings"))
    columns: BigIntegers = rule.encode(view.own)
    models = 1 if len(view.classes) == 2 else len(view.classes)
    rounds, per_epoch = _rows_of_rounds(view)
    own: BigIntegers = np.zeros((models, columns.shape[1]), dtype=object)
    unit = 2 << (2 * rule.fraction_bits)
    found = []
    for turn, (rows, told) in enumerate(zip(rounds, _told(view, rule, models), strict=False)):
        here = columns[rows]
        after, rounded = told
        gradient = _undone(rule, own, after, len(rows), turn // per_epoch) if rounded else after
        rest = -(gradient - (own @ here.T) @ here)
        exact = rest // unit if turn == 0 and not rounded else None
        scale = unit << rule.fraction_bits
        sums = np.array([[int(one) / scale for one in model] for model in rest], dtype=np.float64)
        found.append(OpenedGradient(rows, sums, exact))
        own = after if rounded else rule.stepped(own, gradient, len(rows), turn // per_epoch, False)
    if not found:
        raise BadInput(
            "label lattice: expected gradients or coefficients sent to a passive party, got none in this view"
        )
    return columns, found


def _first(view: View, name: str) -> FloatArray:
    found = next((m.payload for m in view.messages if m.name == name and m.receiver in view.curious), None)
    if found is None:
        raise BadInput(f"this view holds no message '{name}'")
    return np.asarray(found)


def _rows_of_rounds(view: View) -> tuple[list[IntArray], int]:
    """The rows of every round, and the rounds of an epoch."""
    drawn = {m.round: m.payload.astype(np.int64) for m in view.messages if m.name == "batch"}
    if drawn:
        largest = max(len(rows) for rows in drawn.values())
        return [drawn[turn] for turn in sorted(drawn)], -(-len(view.own) // largest)
    groups = members(_first(view, "batches").astype(np.int64))
    last = max((m.round for m in view.messages if m.phase == "train"), default=-1)
    return [groups[turn % len(groups)] for turn in range(last + 1)], len(groups)


def _told(view: View, rule: Rule, models: int) -> Iterator[tuple[BigIntegers, bool]]:
    """For every round gradients, or the weights after it and True; the columns of colluding parties side by side."""
    parties = [name for name in view.curious if name != "coordinator"]
    noted = [view.notes.get(f"own gradients/{name}") for name in parties]
    if all(note is not None for note in noted):
        flat = [np.array(integers(note), dtype=object) for note in noted if note is not None]
        rounds = len(_rows_of_rounds(view)[0])
        for turn in range(rounds):
            parts = [one.reshape(rounds, models, -1)[turn] for one in flat]
            yield np.hstack(parts), False
        return
    received: dict[int, list[BigIntegers]] = {}
    for name in parties:
        for m in view.messages:
            if m.receiver == name and m.name in ("gradients", "coefficients"):
                numbers = np.array(integers(m.payload), dtype=object).reshape(models, -1)
                received.setdefault(m.round, []).append(numbers)
    weights = any(m.name == "coefficients" for m in view.messages)
    for turn in sorted(received):
        yield np.hstack(received[turn]), weights


def _undone(rule: Rule, before: BigIntegers, after: BigIntegers, rows: int, epoch: int) -> BigIntegers:
    """The gradient that a step was made with, as far as rounding lets it be known."""
    unit = 4 * rows << (2 * rule.fraction_bits)
    rate, rate_unit = rule.rate(epoch).as_integer_ratio()
    penalty, penalty_unit = rule.penalty.as_integer_ratio()
    gradient: BigIntegers = (before - after) * (rate_unit * unit) // rate - before * (penalty * unit) // penalty_unit
    return gradient
