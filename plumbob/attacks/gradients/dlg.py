"""Deep leakage from gradients, a baseline of jin2021: dummy rows and labels, optimised until gradients match.

D = |gradient(x, y) - uploaded gradient|^2
"""

from __future__ import annotations

from plumbob.attacks.gradients._gradient_matching import MadeUpBatch, Matching, MatchingServer, squared
from plumbob.lazy_imports import Tensor


class Dlg(Matching):
    """The squared distance of gradients, and nothing else."""

    name = "dlg"
    identity = "Dlg(iterations, report_every, rate)"
    summary = "jin2021's baseline: optimises dummy rows until their gradients match those uploaded (DLG)"

    def objective(self, batch: MadeUpBatch, server: MatchingServer) -> Tensor:
        return squared(batch.pairs())
