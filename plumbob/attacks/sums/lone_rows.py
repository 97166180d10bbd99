"""Lone rows (ours): the coordinator alone opens gradients, and one that comes of a single row is that row.

The gradients of a batch, those of all parties side by side with the bias last, are sums over its rows of d_i (x_i, 1). Of one row
    (g, g_bias) = d (x, 1),    so x = g / g_bias, whatever d is; while z is small d = z/4 - y/2 has the label's sign
The same batch comes again in every epoch, with another d and the same x: a quotient that recurs is a person, one that does not is
a sum over several. The coordinator is not told which rows a batch holds, so people have no names, and of larger batches it has
sums over rows that it cannot tell apart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.attacks.base import NAMELESS, Attack, Guess, nothing
from plumbob.crypto.plain import integers
from plumbob.federation import FloatArray
from plumbob.kinds import COLUMNS, Kind
from plumbob.protocols.shared.taylor_regression import Rule
from plumbob.threats import Threat, View
from plumbob.transcript import COORDINATOR

SAME = 1e-7  # quotients that differ by less are the same row
SUMS = "the gradients are sums over several rows each, and the coordinator is not told over which"
NO_GRADIENTS = "no gradients pass through the coordinator's hands in the clear"


class LoneRows(Attack):
    """Batches of one row, by the quotient of gradients that recurs."""

    name = "lone_rows"
    summary = "ours: the coordinator alone reads the rows of batches of one from the gradients that it opens"
    paper = "plumbob"
    protocols = ("encrypted_logistic_regression",)
    corrupted = True
    needs_active = False
    addresses = (*COLUMNS, Kind.LABEL)
    cost_terms = ("1", "n u")

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """With the active party beside it, the coordinator knows the batches, and other attacks read them."""
        why = super().why_not(protocol, threat, sent)
        alone = None if not threat.active else "needs the coordinator alone; with the active party others learn more"
        return why or alone

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        gradients = opened(view)
        if gradients is None:
            return nothing(view, NO_GRADIENTS)
        weights = gradients[:, -1]
        clear = np.abs(weights) > SAME
        rows, weights = gradients[clear, :-1] / weights[clear, None], weights[clear]
        inside = ((rows > -SAME) & (rows < 1 + SAME)).all(axis=1)
        rows, weights = rows[inside], weights[inside]
        _, first, times = np.unique(np.rint(rows / SAME / 10), axis=0, return_index=True, return_counts=True)
        again = np.flatnonzero(times > 1)
        if not len(again):
            return nothing(view, SUMS)
        early = weights[first[again]]  # the first time a batch is met, z is small
        labels = (early < 0).astype(np.int64) if len(view.classes) == 2 else np.full(len(again), -1)
        people = np.clip(rows[first[again]], 0.0, 1.0)
        said = f"{len(again):,} batches of one row; {NAMELESS}"
        return replace(nothing(view), values=None, people=people, labels=labels, certificate=said)


def opened(view: View) -> FloatArray | None:
    """The gradients of the first model, rounds x (all columns and the bias); None where parties are told weights instead."""
    first = next((message for message in view.messages if message.name == "settings"), None)
    owners = [message.receiver for message in view.messages if message.name == "settings"]
    told: dict[str, list[FloatArray]] = {name: [] for name in owners}
    models = 1 if len(view.classes) == 2 else len(view.classes)
    for message in view.messages:
        if first is not None and message.sender == COORDINATOR and message.name == "gradients":
            numbers = np.array(integers(message.payload), dtype=object).reshape(models, -1)
            told[message.receiver].append(Rule.read(first.payload).decode(numbers[0], 3))
    if not told or not all(told.values()):
        return None
    joined = {name: np.array(parts) for name, parts in told.items()}
    columns = [part[:, :-1] if name == view.active else part for name, part in joined.items()]
    return np.hstack([*columns, joined[view.active][:, -1:]])
