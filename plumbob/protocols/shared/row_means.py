"""What the active party of a cut keeps of all rounds, however many: for each row the mean of the outputs it was sent.

    mean[i] = sum over rounds of z_t[i] / times[i],   z_t[i] = W_t x_i + what a defence has added
It needs no more room than one round of all rows, and it is the active party's own work: it chose the rows of every batch. Noise
that is drawn anew in each round shrinks in it with the root of `times`; X times the mean of the weights stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plumbob.bundle import Array
from plumbob.federation import IntArray
from plumbob.protocols.base import note
from plumbob.transcript import Transcript

MEAN, TIMES = "mean outputs", "times sent"  # names of the notes; with a sender: `mean outputs/shop`


@dataclass
class RowMeans:
    """Running sums by sender; the sender of an opened sum is ''."""

    rows: int
    _sums: dict[str, Array] = field(default_factory=dict)
    _times: dict[str, IntArray] = field(default_factory=dict)

    def add(self, sender: str, rows: IntArray, outputs: Array) -> None:
        """The outputs of one batch; rows below 0 are of nobody, and outputs of another shape than the first are left out."""
        if sender not in self._sums:
            kind = np.promote_types(outputs.dtype, np.float32)
            self._sums[sender] = np.zeros((self.rows, *outputs.shape[1:]), dtype=kind)
            self._times[sender] = np.zeros(self.rows, dtype=np.int64)
        if outputs.shape != (len(rows), *self._sums[sender].shape[1:]):
            return
        known = rows >= 0
        np.add.at(self._sums[sender], rows[known], outputs[known])
        np.add.at(self._times[sender], rows[known], 1)

    def write(self, log: Transcript) -> None:
        """Seal the means as notes of the active party."""
        for sender, total in self._sums.items():
            times = self._times[sender]
            total /= np.maximum(times, 1).astype(total.dtype)[:, None]
            note(log, log.active, noted(MEAN, sender), total)
            note(log, log.active, noted(TIMES, sender), times)


def noted(name: str, sender: str) -> str:
    """The name of a note about one sender."""
    return f"{name}/{sender}" if sender else name
