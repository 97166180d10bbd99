"""Pre-processing check (luo2021, Section VII): warnings that are possible before anything is trained.

A party with at most c - 1 columns can be solved for exactly; a column that correlates strongly with the active
party's can be guessed from them. Both are known before the collaboration starts. So is whether a single column of a passive
party stands for the label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.correlation import correlations, standardised
from plumbob.crypto.sharing import mean_products
from plumbob.federation import Federation, FloatArray, IntArray
from plumbob.lazy_imports import sklearn

STRONG = 0.7  # an absolute correlation from which half of a column's variance is told by one other column
STANDS = 0.95  # share of the most frequent class's errors that a column alone removes, if it stands for the label
FOLDS, FEWEST_OTHERS = 5, 10  # of the test; rows of other classes below which it says nothing
SAME = 1 - 1e-5  # from which one column is the other; secret shares are exact to less than that


@dataclass(frozen=True)
class Caution:
    """One warning before training."""

    party: str
    reason: str  # classes, correlation or label
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


def label_stand_ins(federation: Federation) -> list[Caution]:
    """Warnings of passive parties' columns from which alone the label can be told, on rows that were not looked at for it.

    The party that holds such a column has the label, whatever is sent, and an attack that recovers it recovers the label.
    """
    warnings = []
    for name in federation.passive:
        party = federation[name]
        found = [
            f"'{c.name}'" for c, x in zip(party.columns, party.values.T, strict=True) if tells(x, federation.label)
        ]
        if found:
            one = len(found) == 1
            columns = f"column {found[0]} stands" if one else f"columns {', '.join(found)} stand"
            words = (
                f"party '{name}': {columns} for the label: whoever learns {'it' if one else 'one of them'} learns the label, "
                f"and '{name}' knows the label already"
            )
            warnings.append(Caution(name, "label", words))
    return warnings


def tells(column: FloatArray, label: IntArray) -> bool:
    """Whether a small tree on the column alone removes nearly all errors of naming the most frequent class, cross-fitted."""
    counts = np.bincount(label)
    errors = len(label) - int(counts.max())
    depth = int(np.ceil(np.log2(max(2, (counts > 0).sum())))) + 2
    if errors < FEWEST_OTHERS or not _could_tell(column, label, errors, 2**depth):
        return False
    order = np.random.default_rng(0).permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]  # every fold has its share of each class
    fold = np.empty(len(label), dtype=np.int64)
    fold[order] = np.arange(len(label)) % FOLDS
    wrong = 0
    for k in range(FOLDS):
        tree = sklearn.tree.DecisionTreeClassifier(max_depth=depth, random_state=0)
        tree.fit(column[fold != k, None], label[fold != k])
        wrong += int((tree.predict(column[fold == k, None]) != label[fold == k]).sum())
    return wrong <= (1 - STANDS) * errors


def _could_tell(column: FloatArray, label: IntArray, errors: int, leaves: int) -> bool:
    """A quick look: rows of one value have one class, and along the column the class hardly changes."""
    order = np.lexsort((label, column))
    x, y = column[order], label[order]
    _, level = np.unique(x, return_inverse=True)
    classes = int(label.max()) + 1
    most = np.bincount(level * classes + y, minlength=(level[-1] + 1) * classes).reshape(-1, classes).max(axis=1)
    changes = int((y[1:] != y[:-1]).sum())
    return len(label) - int(most.sum()) <= (1 - STANDS) * errors and changes <= 4 * (1 - STANDS) * errors + 2 * leaves
