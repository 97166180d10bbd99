"""Passive model completion (Fu et al., USENIX Security 2022): the trained bottom model gets a head, from few labels.

    label of row i = argmax head(bottom(x_i)),   the head by MixMatch on known labels and all other rows (`_model_completion`)

The bottom model is trained jointly with the label, so its outputs are better features than the columns. The attacker follows the
protocol. Settings are those of the authors' code for tables: 5 epochs of 1,024 steps, one layer with batch norm and ReLU.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.attacks.base import Guess, nothing
from plumbob.attacks.labels._model_completion import WEIGHT, completed
from plumbob.attacks.labels._passive_party import PassiveLabelAttack
from plumbob.errors import not_negative, whole
from plumbob.federation import FloatArray
from plumbob.setting_sources import authors
from plumbob.threats import KnownLabels, View

MASKED = "this view holds no outputs of the trained bottom model"
BATCH = 16
ONE_CLASS = "labels of one class only are known, and of the others none"


class ModelCompletion(PassiveLabelAttack):
    """A head on the outputs of the trained bottom model. `steps`: how often it learns; `weight`: of rows without a label."""

    name = "model_completion"
    identity = "ModelCompletion(steps, weight)"
    summary = (
        "label inference by a head on the trained bottom model, from few labels (passive model completion of fu2022)"
    )
    paper = "fu2022"
    requires = (KnownLabels,)
    presets = {"small": {"steps": 100}, "light": {"weight": 1.0}}
    sources = {
        "steps": authors("model_completion.py: 5 epochs of 1,024 steps for tables"),
        "weight": authors("model_completion.py: --lambda-u"),
    }

    def __init__(self, *, steps: int = 5 * 1_024, weight: float = WEIGHT) -> None:
        self.steps = whole("model completion: steps", steps, 1, 1_000_000)
        self.weight = not_negative("model completion: weight", weight)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        outputs, known = trained_outputs(view), view.known_labels
        if outputs is None:
            return nothing(view, MASKED)
        if len(np.unique(known[known >= 0])) < 2:
            return nothing(view, ONE_CLASS)
        seed = int(rng.integers(2**31))
        return replace(
            nothing(view), labels=completed(outputs, known, len(view.classes), self.steps, BATCH, seed, self.weight)
        )


def trained_outputs(view: View) -> FloatArray | None:
    """What the curious parties' bottom models gave for all rows when training was over, side by side."""
    parts: dict[str, list[FloatArray]] = {}
    for message in view.messages:
        if message.name == "embeddings" and message.phase == "predict" and message.sender in view.curious:
            parts.setdefault(message.sender, []).append(np.asarray(message.payload, dtype=np.float64))
    tables = [np.concatenate(part).reshape(-1, part[0].shape[-1]) for part in parts.values()]
    whole_ones = [np.nan_to_num(table) for table in tables if len(table) == len(view.own)]
    return np.hstack(whole_ones) if whole_ones else None
