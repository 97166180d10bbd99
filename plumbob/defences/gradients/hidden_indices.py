"""Hidden indices (ours): the server's row numbers denote different rows in every round.

The parties share a secret from which they draw a fresh permutation of all rows for every round; a batch is as random as before
and of the same size, and the server does not learn which rows it had. It hides who, not what: see
`attacks/gradients/_hidden_rows.py`.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.gradients._gradient_guards import GradientDefence
from plumbob.federation import IntArray
from plumbob.protocols.shared.guards import GradientGuard, GradientOutline


class HiddenIndices(GradientDefence):
    """Rows by a secret permutation, new in every round."""

    name = "hidden_indices"
    identity = "HiddenIndices()"
    summary = "parties secretly permute the rows in every round, so the server's row numbers are meaningless"
    paper = "plumbob"

    def changes(self, point: str) -> bool:
        return False  # it changes which rows gradients are of, and no gradient

    def begin(self, outline: GradientOutline) -> GradientGuard[HiddenIndices]:
        return _Hidden(self)


class _Hidden(GradientGuard[HiddenIndices]):
    def rows(self, rows: IntArray, total: int, round: int, rng: np.random.Generator) -> IntArray:
        return np.asarray(rng.permutation(total)[rows])
