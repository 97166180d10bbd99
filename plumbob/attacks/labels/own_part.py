"""Own part (ours): a passive party is dealt its part of the model, and that part names classes from its own columns.

    y_i = argmax over k of (z_ik - mean of z_k),    z_i = f(x_i; phi), its own answer

The part was trained on labels that the party does not have. It makes the answers itself, no message is needed.
What other parties add is taken for the same in all rows. Biases are not dealt: classes count as equally frequent.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.attacks.base import Attack, Guess, nothing
from plumbob.bundle import Array
from plumbob.federation import FloatArray
from plumbob.kinds import Kind
from plumbob.protocols.scores.split_models import LocalModel
from plumbob.threats import Threat, View
from plumbob.transcript import COORDINATOR

NO_PART = "no part of the model was dealt to the curious parties"


class OwnPart(Attack):
    """The class that own columns and own weights point at."""

    name = "own_part"
    summary = "ours: a passive party reads the class from the part of the model that it was dealt and its own columns"
    paper = "plumbob"
    protocols = ("logistic_regression", "split_models")
    addresses = (Kind.LABEL,)
    needs_active = False
    cost_terms = ("1", "n d", "n w")
    workload = "matrices"

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """Only parties that are dealt a part and have no label."""
        if protocol in self.protocols and (threat.active or threat.corrupted):
            return "needs a passive party alone: the active party has the label, the coordinator no columns"
        return super().why_not(protocol, threat, sent)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        answers = own_answers(view)
        if answers is None:
            return nothing(view, NO_PART)
        labels = (answers - answers.mean(axis=0)).argmax(axis=1)
        return replace(nothing(view), labels=np.asarray(labels, dtype=np.int64))


def own_answers(view: View) -> FloatArray | None:
    """The sum of what the curious parties answer; their columns stand in the order of the parties."""
    parts: dict[str, dict[str, Array]] = {}
    for message in view.messages:
        if message.sender == COORDINATOR and message.phase == "setup" and message.receiver in view.curious:
            parts.setdefault(message.receiver, {})[message.name] = message.payload
    total, begin = np.zeros((len(view.own), len(view.classes))), 0
    for part in parts.values():
        if not {"weights", "activation"} & set(part):
            return None
        first = np.asarray(part["weights" if "weights" in part else "w0"])
        own = view.own[:, begin : begin + len(first)]
        begin += len(first)
        total += own @ first if "weights" in part else LocalModel.from_arrays(part, np.arange(len(first))).outputs(own)
    return total if parts else None
