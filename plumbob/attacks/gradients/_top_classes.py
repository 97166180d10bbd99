"""Classes from the top network: its last bias has softmax - label as a row's own gradient, negative at the label only."""

from __future__ import annotations

import numpy as np

from plumbob.attacks.gradients._defended_gradients import changed, estimates_of
from plumbob.attacks.gradients._row_gradients import Separation
from plumbob.attacks.gradients._worker_uploads import Uploads
from plumbob.federation import IntArray
from plumbob.protocols.gradients.split_training import TOP


def last_bias(uploads: Uploads) -> str | None:
    """The top network's parameter with a number for each class: the last bias."""
    classes = len(uploads.view.classes)
    keys = [key for key, array in uploads.parameters(TOP, 0).items() if array.shape == (classes,)]
    return keys[-1] if keys else None


def labels(uploads: Uploads) -> IntArray | None:
    """Classes from the top network's last bias: the only negative cell of softmax - label."""
    key = last_bias(uploads)
    if key is None:
        return None
    if changed(uploads.view.defence):
        return np.asarray(estimates_of(uploads, TOP, key).values.argmin(axis=1))
    gradients = uploads.gradients(TOP, key)
    separation = Separation.of(uploads, gradients.rounds)
    rows = separation.rows(gradients)
    return np.where(separation.determined, rows.argmin(axis=1), -1)
