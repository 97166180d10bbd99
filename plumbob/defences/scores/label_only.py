"""Label only (jiang2022, Section 6.1.3): the predicted class and nothing else.

The release is 1 for the largest score and 0 for the others. Accuracy is untouched; confidence is gone.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.base import Defence
from plumbob.federation import Federation, FloatArray
from plumbob.protocols.base import Model, PredictionProtocol, Release


def one_hot(scores: FloatArray) -> FloatArray:
    """1 at the largest score of each row, 0 elsewhere; a withheld row stays withheld.

    >>> one_hot(np.array([[0.2, 0.5, 0.3]])).tolist()
    [[0.0, 1.0, 0.0]]
    """
    told = np.asarray(~np.isnan(scores).any(axis=1))
    label = np.argmax(np.where(told[:, None], scores, 0.0), axis=1)
    return np.where(told[:, None], np.eye(scores.shape[1])[label], np.nan)


class LabelOnly(Defence):
    """Only the predicted class is released."""

    name = "label_only"
    identity = "LabelOnly()"
    summary = "only the predicted class is released"
    point = "scores"
    paper = "jiang2022"

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        return lambda scores, _: one_hot(scores)
