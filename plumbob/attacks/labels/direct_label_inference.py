"""Direct label inference (Fu et al., USENIX Security 2022): the gradient of logits is negative at one class only.

    dL/dz_i = (p_i - y_i) / batch:   negative at the true class, positive everywhere else

It needs a cut at the model's output: as many numbers cross as there are classes, and each row's gradient has one negative
component and sums to zero. With a single logit (two classes) its sign is the class.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.attacks.base import Guess, nothing
from plumbob.attacks.labels._cut_gradients import SILENT, Batch, batches
from plumbob.attacks.labels._passive_party import PassiveLabelAttack
from plumbob.threats import View

NO_LOGITS = "what crosses the cut are no logits: a gradient of logits sums to zero and is negative at one class"
ROUNDING = 1e-3  # of the largest component, by which a sum may differ from zero
MOST = 0.95  # share of the rows that have to look like gradients of logits


class DirectLabelInference(PassiveLabelAttack):
    """The component of the gradient that is negative."""

    name = "direct_label_inference"
    identity = "DirectLabelInference()"
    summary = "label inference from the signs of gradients where logits cross the cut (direct attack of fu2022)"
    paper = "fu2022"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        found = batches(view)
        if not found:
            return nothing(view, SILENT)
        if not all(_logits(batch, len(view.classes)) for batch in found):
            return nothing(view, NO_LOGITS)
        votes = np.zeros((len(view.own), len(view.classes)))
        for batch in found:
            told = batch.gradients.any(axis=1)
            single = batch.gradients.shape[1] == 1
            classes = batch.gradients[:, 0] < 0 if single else batch.gradients.argmin(axis=1)
            np.add.at(votes, (batch.rows[told], classes[told].astype(np.int64)), 1.0)
        labels = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
        return replace(nothing(view), labels=labels)


def _logits(batch: Batch, classes: int) -> bool:
    """Whether these may be gradients of logits."""
    gradients = batch.gradients[batch.gradients.any(axis=1)]
    if gradients.shape[1] == 1:
        return classes == 2
    if gradients.shape[1] != classes:
        return False
    largest = np.abs(gradients).max(axis=1)
    fits = (np.abs(gradients.sum(axis=1)) <= ROUNDING * largest) & ((gradients < 0).sum(axis=1) == 1)
    return bool(fits.mean() >= MOST)
