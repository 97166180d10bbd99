"""Deep leakage from gradients, as jin2021 compares with it: made-up rows and labels, moved until gradients agree.

D = |gradient(x, y) - uploaded gradient|^2
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.attacks.generative_regression import one_thread
from plumbob.attacks.gradient_matching import Dummies, Server, ServerAttack, search, seed_of, squared
from plumbob.errors import positive
from plumbob.threats import View


class Dlg(ServerAttack):
    """The squared distance of gradients, and nothing else."""

    name = "dlg"
    summary = "jin2021's rival: moves made-up rows until their gradients are those uploaded (DLG)"

    def __init__(self, *, iterations: int = 300, rate: float = 1e-2, report_every: int | None = None) -> None:
        self._store_length(iterations, report_every)
        self.rate = positive("rate", rate)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        with one_thread():
            server = Server(view)
            dummies = Dummies.drawn(server, seed_of(rng))
            return search(self, server, dummies, lambda batch: squared(batch.pairs()), self.rate)
