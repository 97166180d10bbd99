"""Deep leakage from gradients, as jin2021 compares with it: made-up rows and labels, moved until gradients agree.

D = |gradient(x, y) - uploaded gradient|^2
"""

from __future__ import annotations

from plumbob.attacks.gradients._gradient_matching import MadeUpBatch, Matching, MatchingServer, squared
from plumbob.later import Tensor


class Dlg(Matching):
    """The squared distance of gradients, and nothing else."""

    name = "dlg"
    identity = "Dlg(iterations, report_every, rate)"
    summary = "jin2021's rival: moves made-up rows until their gradients are those uploaded (DLG)"

    def objective(self, batch: MadeUpBatch, server: MatchingServer) -> Tensor:
        return squared(batch.pairs())
