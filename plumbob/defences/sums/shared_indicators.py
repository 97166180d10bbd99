"""Secret-shared indicator vectors (weng2022, Section 6, "hiding partial orders"): nobody sees which rows lie in a node or a bin.

    sum of a bin = sum over rows of s g b        s, b (the row is in the node, in the bin) and g on three servers in shares
The paper proposes it and doubts it: the sums that are opened are the same, and a code hidden in g comes with them. What it hides
are the answers which rows go left. The weights that rows get are opened all the same: the next tree's gradients need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbob.defences.sums._histogram_settings import HistogramDefence


class SharedIndicators(HistogramDefence):
    """Sums and splits on secret shares; trees as without it."""

    name = "shared_indicators"
    identity = "SharedIndicators()"
    summary = "which rows lie in a node or a bin is secret-shared on three servers; only the sums are opened"
    paper = "weng2022"

    def changed(self) -> Mapping[str, Any]:
        return {"shared_indicators": True}
