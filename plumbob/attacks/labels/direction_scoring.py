"""Direction scoring (Li et al., ICLR 2022): gradients at the cut point the same way for rows of one class.

    score_c(i) = mean over rounds, and over known rows j of class c in the round, of cos(g_i, g_j)

With two classes cosines to a row of the own class are positive, to one of the other class negative. The paper compares with one
positive row of the batch that is known. Here it is every row of the batch whose label the threat grants; rows that never share a
batch with one are not guessed. Of several classes the one with the highest score is taken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.attacks.base import Guess, nothing
from plumbob.attacks.labels._cut_gradients import SILENT, batches
from plumbob.attacks.labels._passive_party import PassiveLabelAttack
from plumbob.federation import FloatArray
from plumbob.threats import KnownLabels, View


class DirectionScoring(PassiveLabelAttack):
    """The class whose known rows have gradients of the nearest direction."""

    name = "direction_scoring"
    identity = "DirectionScoring()"
    summary = "label inference by the gradients at the cut of rows whose label is known (direction attack of li2022)"
    paper = "li2022"
    requires = (KnownLabels,)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        scores = direction_scores(view)
        told = np.isfinite(scores).any(axis=1)
        if not told.any():
            return nothing(view, SILENT)
        labels = np.full(len(scores), -1)
        labels[told] = np.nan_to_num(scores[told], nan=-2.0).argmax(axis=1)
        if len(view.classes) == 2:  # one known class is enough: the other points away
            labels[told] = np.nan_to_num(scores[told, 1]) > np.nan_to_num(scores[told, 0])
        known = view.known_labels
        return replace(nothing(view), labels=np.where(known >= 0, known, labels))


def direction_scores(view: View) -> FloatArray:
    """Rows x classes; NaN where a row was never beside one whose class is known."""
    known = view.known_labels
    total = np.zeros((len(known), len(view.classes)))
    times = np.zeros_like(total)
    for batch in batches(view):
        units, classes = batch.units, known[batch.rows]
        for one in np.unique(classes[classes >= 0]):
            cosines = units @ units[classes == one].T
            np.add.at(total[:, one], batch.rows, cosines.mean(axis=1))
            np.add.at(times[:, one], batch.rows, 1)
    return np.asarray(np.divide(total, times, out=np.full(total.shape, np.nan), where=times > 0))
