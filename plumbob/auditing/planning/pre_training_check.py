"""Pre-processing check (luo2021, Section VII): warnings that are possible before anything is trained.

A party with at most c - 1 columns can be solved for exactly; a column that correlates strongly with the active
party's can be guessed from them. Both are known before the collaboration starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.correlation import correlations, standardised
from plumbob.crypto.sharing import mean_products
from plumbob.federation import Federation, FloatArray

STRONG = 0.7  # an absolute correlation from which half of a column's variance is told by one other column
SAME = 1 - 1e-5  # from which one column is the other; secret shares are exact to less than that


@dataclass(frozen=True)
class Caution:
    """One warning before training."""

    party: str
    reason: str  # classes or correlation
    words: str


def secure_correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Correlations of two parties' columns on secret shares: each standardises its own, and only the means are revealed."""
    return mean_products(standardised(a), standardised(b))


def precheck(federation: Federation, strong: float = STRONG, *, secure: bool = False) -> list[Caution]:
    """Warnings for each passive party; none means that these two checks found nothing, not that the party is safe.

    With `secure` the correlations are computed on secret shares, so that no party reveals a column to another.
    """
    between = secure_correlations if secure else correlations
    classes = len(federation.classes)
    own = federation[federation.active].values
    warnings = []
    for name in federation.passive:
        party = federation[name]
        if len(party.columns) <= classes - 1:
            warnings.append(
                Caution(
                    name,
                    "classes",
                    f"'{name}' has {len(party.columns)} columns and there are {classes} classes: scores of a logistic "
                    f"regression give {classes - 1} equations, enough to solve for every value",
                )
            )
        strongest = np.abs(between(own, party.values)).max(axis=0, initial=0.0)
        told = dict(zip((column.name for column in party.columns), strongest, strict=True))
        same = [column for column, value in told.items() if value >= SAME]
        if same:
            warnings.append(
                Caution(
                    name,
                    "correlation",
                    f"'{federation.active}' holds {len(same)} of the columns of '{name}' already, up to scale and sign, whatever "
                    f"is trained: {', '.join(same)}",
                )
            )
        high = [column for column, value in told.items() if strong <= value < SAME]
        if high:
            warnings.append(
                Caution(
                    name,
                    "correlation",
                    f"{len(high)} of {len(party.columns)} columns of '{name}' correlate at {strong:.1f} or more with a "
                    f"column of '{federation.active}': {', '.join(high)}",
                )
            )
    return warnings
