"""CAFE in a single loop (jin2021, Algorithm 4): one batch after another goes through all three steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from plumbob.attacks.gradients.cafe import Cafe, CafeState
from plumbob.setting_sources import printed


class CafeSingleLoop(Cafe):
    """Algorithm 4: all three steps in every iteration, and a step that has arrived is left out from then on.

    It has arrived when its objective stayed below its bound for as many batches in a row as make up one pass over the rows.
    """

    name = "cafe_single_loop"
    identity = "CafeSingleLoop(iterations, report_every, earlier, rates, first_step, alpha, beta, gamma, xi)"
    summary = "jin2021: the same three steps, all of them in every iteration (single loop)"
    nested = False
    sources = Cafe.sources | {"earlier": printed("Algorithm 4: all steps in each iteration")}
    bounds: ClassVar[tuple[float, float]] = (1e-9, 5e-9)  # Section 4.2, of F1 and F2

    def _steps(self, state: CafeState) -> Iterator[int]:
        server = state.server
        once = -(-server.rows // max(len(rows) for rows in server.batches))
        below = [0, 0]
        for iteration in range(state.length):
            for i, step in enumerate((state.first, state.second)):
                if below[i] < once:
                    below[i] = below[i] + 1 if step(iteration) < self.bounds[i] else 0
            yield iteration
