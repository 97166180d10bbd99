"""How useful released scores are besides the class they name: how well they rank rows, and whether they mean what they say.

AUC          chance that a row of a class has a higher score for it than a row of another one; mean over classes
calibration  |confidence - share right|, over ten bins of confidence, weighted by rows (expected calibration error)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.federation import FloatArray, IntArray
from plumbob.scoring.metrics import ranks

BINS = 10


@dataclass(frozen=True)
class Usefulness:
    """Both of one release; None where the label is not known or nothing was released."""

    auc: float | None = None
    calibration: float | None = None


def usefulness(scores: FloatArray, label: IntArray | None) -> Usefulness:
    """Of the rows that got an answer."""
    told = ~np.isnan(scores[:, 0])
    if label is None or not told.any():
        return Usefulness()
    return Usefulness(auc(scores[told], label[told]), calibration_error(scores[told], label[told]))


def auc(scores: FloatArray, label: IntArray) -> float | None:
    """Area under the ROC curve, one class against the rest; None where only one class is there.

    >>> auc(np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]), np.array([0, 1, 1]))
    1.0
    """
    areas = []
    for k in np.unique(label):
        mine = label == k
        positive, negative = int(mine.sum()), int((~mine).sum())
        if positive and negative:
            place = ranks(scores[:, [k]])[mine, 0].sum()
            areas.append((place - positive * (positive + 1) / 2) / (positive * negative))
    return float(np.mean(areas)) if areas else None


def calibration_error(scores: FloatArray, label: IntArray) -> float:
    """
    >>> calibration_error(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))
    0.5
    """
    confidence, right = scores.max(axis=1), scores.argmax(axis=1) == label
    place = np.clip((confidence * BINS).astype(int), 0, BINS - 1)
    counts = np.bincount(place, minlength=BINS)
    gaps = np.abs(np.bincount(place, confidence, BINS) - np.bincount(place, right.astype(float), BINS))
    return float(gaps.sum() / max(1, counts.sum()))
