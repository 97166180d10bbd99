"""What a fixed guess hits: the share of a column's cells that the best constant comes close to.

An attack's own hits say little beside nothing: within 10 % of the range lie two thirds of many columns wherever one points.
"""

from __future__ import annotations

from plumbob.federation import FloatArray
from plumbob.scoring import metrics
from plumbob.scoring.rows_at_risk import crowded

ROUNDING = 1 + 1e-9  # the constant lies at the edge of its window


def fixed_hits(truth: FloatArray, tolerance: float) -> FloatArray:
    """For every column the largest share of cells that one constant hits to within the tolerance.

    >>> import numpy as np
    >>> fixed_hits(np.array([[0.0], [0.01], [0.5], [1.0]]), 0.01).tolist()
    [0.5]
    """
    return metrics.within(crowded(truth, tolerance), truth, tolerance * ROUNDING)
