"""Known labels and gradients of all rounds: what own columns tell at first is corrected by what classes' gradients differ by.

    z_ic = sum over rounds of (<g_ib, m_bc> - |m_bc|^2 / 2) / s_b^2,   m_bc: mean gradient of class c in round b without row i,
           s_b: what is left of gradients beside the means; then a logistic regression on own columns and z, by known labels

Classes are those of own columns in the first pass and of the regression in the next ones, known labels always themselves. The
regression weighs z against own columns, so that noise does not outvote them.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.labels._cut_gradients import Batch
from plumbob.attacks.own_column_labels import labels_of_own_columns, learners
from plumbob.attacks.row_messages import WIDE, reduced, whole
from plumbob.federation import FloatArray, IntArray
from plumbob.threats import View

ROUNDS = 5  # of self-teaching
WEIGHT = 2.0  # spread of z beside standardised columns
TINY = 1e-300


def taught_classes(found: list[Batch], view: View, side: FloatArray | None = None) -> IntArray | None:
    """The class of every row; None where labels of fewer than two classes are known, or gradients say nothing.

    `side`: where each row lies between two classes, as found without labels.
    """
    known = view.known_labels
    start = labels_of_own_columns(view)
    labelled, rest = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
    if start is None or len(np.unique(known[labelled])) < 2:
        return None
    own, logistic = reduced(whole(view.own), WIDE), learners()[0]
    if side is not None:
        own = np.hstack([own, WEIGHT * reduced(side[:, None], 1)])
    classes = np.where(known >= 0, known, start)
    for _ in range(ROUNDS):
        score = likelihoods(found, classes, len(view.classes))
        score -= score.mean(axis=1, keepdims=True)
        if not (spread := float(score.std())) > 0:
            return None
        table = np.hstack([own, WEIGHT * score / spread])
        said = logistic(table[labelled], known[labelled], table[rest], table)
        classes, before = np.where(known >= 0, known, said), classes
        if (classes == before).all():
            break
    return classes


def likelihoods(found: list[Batch], classes: IntArray, count: int) -> FloatArray:
    """Rows x classes: how well a row's gradients fit each class's mean, added up over rounds."""
    total = np.zeros((len(classes), count))
    for batch in found:
        gradients, mine = batch.gradients, classes[batch.rows]
        many = np.bincount(mine, minlength=count).astype(np.float64)
        sums = np.eye(count)[mine].T @ gradients
        means = sums / np.maximum(many, 1.0)[:, None]
        own = (sums[mine] - gradients) / np.maximum(many[mine] - 1, 1.0)[:, None]
        fits = gradients @ means.T - (means**2).sum(axis=1) / 2
        fits[np.arange(len(mine)), mine] = (gradients * own).sum(axis=1) - (own**2).sum(axis=1) / 2
        np.add.at(total, batch.rows, fits / (float(((gradients - own) ** 2).mean()) + TINY))
    return total
