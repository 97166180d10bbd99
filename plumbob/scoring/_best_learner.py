"""The best of several learners, chosen on other rows than it is judged on: without messages, and with them.

Rows are dealt into folds. In each, the learner and penalty count that err least on all other folds; messages are used where
their learner spares more there than a standard error of it. So a choice among many does not make the result better than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbob.attacks.row_messages import RowMessages
from plumbob.federation import FloatArray
from plumbob.scoring._leave_one_out import Learner, learners

FOLDS = 5
LANDMARKS = 150
CAUTION = 1.0  # standard errors by which messages have to help on other rows before they are used
OWN = "own columns"  # the learner where messages do not help


@dataclass(frozen=True)
class Chosen:
    """Predictions of some columns that belong together, rows x columns."""

    own: FloatArray
    told: FloatArray | None  # with messages, whether they help or not; None without messages
    taken: FloatArray  # whichever was used in each fold
    learner: str  # of what was taken, in most folds


class Judge:
    """Learners on one set of rows, ready for any columns."""

    def __init__(self, own: FloatArray, messages: RowMessages, rng: np.random.Generator) -> None:
        count = len(own)
        self.folds = rng.permutation(count) % FOLDS
        self.inside = np.eye(FOLDS, dtype=np.bool_)[self.folds].T  # folds x rows
        landmarks = np.sort(rng.permutation(count)[: min(LANDMARKS, count // 2)])
        seed = int(rng.integers(2**31))
        self.alone = learners(own, None, landmarks, seed)
        self.both = learners(own, messages, landmarks, seed) if messages.features.shape[1] else []

    def choose(self, table: FloatArray, parts: Sequence[slice]) -> list[Chosen]:
        """For each part of the columns what is predicted of it; `table` is standardised, rows x columns."""
        alone, both = (_predictions(some, table) for some in (self.alone, self.both))
        return [
            self._one(table[:, part], (alone[0], alone[1][:, :, part]), (both[0], both[1][:, :, part]))
            for part in parts
        ]

    def _one(self, true: FloatArray, alone: _Predictions, both: _Predictions) -> Chosen:
        own, _, own_squares = self._least(true, alone)
        if not both[0]:
            return Chosen(own, None, own, "")
        told, names, squares = self._least(true, both)
        spared, there = own_squares - squares, ~self.inside
        count = there.sum(axis=1)
        mean = (spared * there).sum(axis=1) / count
        error = np.sqrt(((spared - mean[:, None]) ** 2 * there).sum(axis=1)) / count
        helps = mean > CAUTION * error
        used = [name for name, good in zip(names, helps, strict=True) if good]
        taken = np.where(helps[self.folds][:, None], told, own)
        return Chosen(own, told, taken, max(used, key=used.count) if 2 * len(used) > FOLDS else OWN)

    def _least(self, true: FloatArray, made: _Predictions) -> tuple[FloatArray, list[str], FloatArray]:
        """Predictions of every row, the learner of every fold, and that learner's squared errors on all rows."""
        names, values = made
        squares = ((values - true) ** 2).mean(axis=2)  # candidates x rows
        by_fold = squares @ self.inside.T
        least = (by_fold.sum(axis=1, keepdims=True) - by_fold).argmin(axis=0)
        return values[least[self.folds], np.arange(len(true))], [names[i] for i in least], squares[least]


_Predictions = tuple[list[str], FloatArray]  # the learner of every candidate; candidates x rows x columns


def _predictions(some: Sequence[Learner], table: FloatArray) -> _Predictions:
    made = [learner.predictions(table) for learner in some]
    names = [learner.name for learner, part in zip(some, made, strict=True) for _ in part]
    return names, np.concatenate([np.zeros((0, *table.shape)), *made])
