"""Norm scoring (Li et al., ICLR 2022): rows of the rarer class have the longer gradients at the cut.

    g_i = (p_i - y_i) v_i,   |p_i - y_i| = 1 - p_i for positive rows and p_i for negative ones

Where positive rows are rare a model is surer of the others, so that |g_i| tells the two apart. The paper scores each batch by
itself and reports the AUC. Here a row's score is the mean of log |g_i| over its rounds, standardised in each batch, and the
two groups are those of least variance. The paper has two classes only.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Guess, nothing
from plumbob.attacks.labels._cut_gradients import SILENT, batches, labels_only
from plumbob.attacks.labels._passive_party import PassiveLabelAttack
from plumbob.federation import FloatArray
from plumbob.threats import View

TWO_CLASSES = "norm scoring tells two classes apart, and there are more"


class NormScoring(PassiveLabelAttack):
    """Groups by the length of gradients."""

    name = "norm_scoring"
    identity = "NormScoring()"
    summary = "label inference from the norms of gradients at the cut (norm attack of li2022)"
    paper = "li2022"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        if len(view.classes) > 2:
            return nothing(view, TWO_CLASSES)
        scores = norm_scores(view)
        if not np.isfinite(scores).any():
            return nothing(view, SILENT)
        return labels_only(view, np.where(np.isfinite(scores), scores > least_variance(scores), -1).astype(np.int64))


def norm_scores(view: View) -> FloatArray:
    """The score of every row; NaN where its gradients were never told, or zero."""
    total, times = np.zeros(len(view.own)), np.zeros(len(view.own))
    for batch in batches(view):
        sizes = np.linalg.norm(batch.gradients, axis=1)
        told = sizes > 0
        logs = np.log(sizes[told])
        spread = logs.std()
        np.add.at(total, batch.rows[told], (logs - logs.mean()) / (spread if spread > 0 else 1.0))
        np.add.at(times, batch.rows[told], 1)
    return np.asarray(np.divide(total, times, out=np.full(len(total), np.nan), where=times > 0))


def least_variance(scores: FloatArray) -> float:
    """The threshold at which the two sides vary least.

    >>> least_variance(np.array([0.0, 0.1, np.nan, 5.0, 0.2]))
    2.6
    """
    ordered = np.sort(scores[np.isfinite(scores)])
    count = np.arange(1, len(ordered))
    if not len(count):
        return 0.0
    left, total = ordered.cumsum()[:-1], ordered.sum()
    between = left**2 / count + (total - left) ** 2 / (len(ordered) - count)
    best = int(between.argmax())
    return float((ordered[best] + ordered[best + 1]) / 2)
