"""Embeddings as features: of all rows at a cut, and of the rows that are known in full, if any of these were predicted.

half-whitened   U S^(1/2) of the centred embeddings' U S V': directions that vary little count, and noise does not drown the rest
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.threats import View
from plumbob.views import AUXILIARY_ANSWERS, AUXILIARY_LABELS

MOST = 128  # directions that are kept
SMALLEST = 1e-6  # of the largest singular value
OWN_LABEL = "label"  # note of an active party that trains
CONSTANT = "the embeddings are the same for all rows, so they say nothing"
SILENT = "this view holds no embeddings of all rows"


@dataclass(frozen=True)
class Told:
    """Embeddings of all rows of the view, side by side by sender, and of rows of other people, where they were predicted too."""

    asked: FloatArray
    others: FloatArray | None

    @property
    def constant(self) -> bool:
        return not self.asked.size or bool(np.ptp(self.asked, axis=0).max() <= 0)


def told(view: View) -> Told | None:
    """With the final parameters; None where the view has none of all rows, or some are not finite."""
    parts: dict[str, list[FloatArray]] = {}
    for message in view.messages:
        if message.name == "embeddings" and message.sender not in view.curious and message.payload.ndim == 2:
            parts.setdefault(message.sender, []).append(np.asarray(message.payload, dtype=np.float64))
    if "embeddings" in view.notes:
        parts = {"": [np.asarray(view.notes["embeddings"], dtype=np.float64)]}
    tables = {sender: np.concatenate(payloads) for sender, payloads in parts.items()}
    if not tables or any(len(one) != len(view.own) or not np.isfinite(one).all() for one in tables.values()):
        return None
    answers = [view.notes.get(f"{AUXILIARY_ANSWERS}{sender}") for sender in tables]
    others = None if any(one is None for one in answers) else np.hstack([one for one in answers if one is not None])
    usable = others is not None and np.isfinite(others).all()
    return Told(np.hstack(list(tables.values())), others.astype(np.float64) if usable and others is not None else None)


def half_whitened(table: FloatArray, more: FloatArray, most: int = MOST) -> tuple[FloatArray, FloatArray]:
    """The directions of `table` for its rows and for `more` rows, the largest with spread 1.

    >>> own, other = half_whitened(np.array([[-2.0], [2.0]]), np.array([[1.0]]))
    >>> (other / own[1]).round(9).tolist()
    [[0.5]]
    """
    centre = table.mean(axis=0)
    left, values, right = np.linalg.svd(table - centre, full_matrices=False)
    kept = np.flatnonzero(values > SMALLEST * max(values.max(initial=0.0), 1e-300))[:most]
    largest = values[0] if len(values) else 1.0
    scale = np.sqrt(len(table)) * np.sqrt(values[kept] / largest)
    return left[:, kept] * scale, (more - centre) @ right[kept].T / values[kept] * scale


def labels_of(view: View) -> tuple[IntArray, IntArray] | None:
    """Classes of all rows and of the auxiliary ones, where the curious party has a label of its own."""
    found = view.notes.get(OWN_LABEL), view.notes.get(AUXILIARY_LABELS)
    counts = len(view.own), 0 if view.auxiliary is None else len(view.auxiliary)
    for one, count in zip(found, counts, strict=True):
        if one is None or one.shape != (count,) or one.dtype.kind not in "iu" or not count:
            return None
        if one.min() < 0 or one.max() >= len(view.classes):
            return None
    return np.asarray(found[0], dtype=np.int64), np.asarray(found[1], dtype=np.int64)


def other_people(view: View, what: str) -> FloatArray:
    """The complete rows of other people; one sentence if there are none, or a cell is no number."""
    if view.auxiliary is None or len(view.auxiliary) < 2:
        raise BadInput(f"{what}: expected at least 2 complete rows of other people, got none")
    if not np.isfinite(view.auxiliary).all():
        raise BadInput(f"{what}: expected numbers in the complete rows of other people, got NaN or infinity")
    return view.auxiliary
