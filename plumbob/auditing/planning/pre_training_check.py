"""Pre-processing check (luo2021, Section VII): warnings that are possible before anything is trained.

The paper's observations, party by party, with c classes and a passive party of d columns:
    classes         d <= c - 1: scores of a logistic regression solve for every value
    many classes    c - 1 > d / 2: they leave fewer than half of the directions open
    leaves          2^depth <= 4 c: a tree has few leaves for each class, so the predicted class leaves few paths
    sides           the class alone tells the side of a column's best split, so a tree that uses it gives the branch away
    correlation     |r| >= 0.7 with a column that the curious hold; from 1 - 1e-5 they hold the column itself
    together        the same of all columns of the active party together (multiple correlation)
Correlations and counts need both parties' columns: in the clear, or on secret shares. Whether a single column of a passive party
stands for the label is ours, and in the clear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plumbob.auditing.planning.joint_tables import InTheClear, JointSums, OnShares
from plumbob.correlation import standardised
from plumbob.crypto.sharing import mean_products
from plumbob.federation import Federation, FloatArray, IntArray, Party
from plumbob.lazy_imports import sklearn

STRONG = 0.7  # an absolute correlation from which half of a column's variance is told by one other column
STANDS = 0.95  # share of the most frequent class's errors that a column alone removes, if it stands for the label
FOLDS, FEWEST_OTHERS = 5, 10  # of the test; rows of other classes below which it says nothing
SAME = 1 - 1e-5  # from which one column is the other; secret shares are exact to less than that
DEPTH, FEW_LEAVES = 5, 4  # of luo2021's trees (Section VI-A); leaves for a class that leave few paths
SIDES_TOLD = 0.5  # share of guessing's errors about the side that the class removes
THRESHOLDS = np.arange(1, 10) / 10  # deciles: where a column's best split is looked for
ROWS_A_CLASS = 20  # below which counts by class say nothing
LISTED = 20  # columns that a sentence names


@dataclass(frozen=True)
class Caution:
    """One warning before training."""

    party: str
    reason: str  # classes, many classes, leaves, sides, correlation, together or label
    words: str
    columns: tuple[str, ...] = ()  # that it is about


def secure_correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Correlations of two parties' columns on secret shares: each standardises its own, and only the means are revealed."""
    return mean_products(standardised(a), standardised(b))


def precheck(
    federation: Federation, strong: float = STRONG, *, secure: bool = False, sums: JointSums | None = None
) -> list[Caution]:
    """Warnings for each passive party; none means that these checks found nothing, not that the party is safe.

    With `secure` correlations and counts are computed on secret shares, so that no party reveals a column to another; `sums`
    is a way to add up of one's own.
    """
    adding = sums if sums is not None else OnShares() if secure else InTheClear()
    warnings = []
    for name in federation.passive:
        warnings += [*_of_classes(federation, name), *_of_correlations(federation, name, strong, adding)]
        warnings += _of_sides(federation, name, adding)
    return warnings


def _of_classes(federation: Federation, name: str) -> list[Caution]:
    """What the numbers of classes and columns say by themselves."""
    names = tuple(column.name for column in federation[name].columns)
    count, classes = len(names), len(federation.classes)
    known = f"'{name}' has {count} columns and there are {classes} classes"
    equations = f"scores of a logistic regression give {classes - 1} equations"
    hidden = sum(len(federation[party].columns) for party in federation.passive)
    alone = "" if hidden <= classes - 1 or len(federation.passive) == 1 else " once the other passive parties collude"
    found = []
    if count <= classes - 1:
        words = f"{known}: {equations}, enough to solve for every value{alone} ({listed(names)})"
        found.append(Caution(name, "classes", words, names))
    elif 2 * (classes - 1) > count:
        open_ = f"which leave {count - classes + 1} of {count} directions open{alone}"
        found.append(Caution(name, "many classes", f"{known}: {equations}, {open_} ({listed(names)})", names))
    if 2**DEPTH <= FEW_LEAVES * classes:
        few = f"a tree of depth {DEPTH} has at most {2**DEPTH / classes:.1f} leaves for each, so the predicted class"
        words = f"there are {classes} classes: {few} leaves few paths, and sides of the columns of '{name}' ({listed(names)})"
        found.append(Caution(name, "leaves", words, names))
    return found


def _of_correlations(federation: Federation, name: str, strong: float, sums: JointSums) -> list[Caution]:
    """What is held already, or told by what is held, by the active party and by others that may collude with it."""
    party, active, rows = federation[name], federation.active, max(1, len(federation))
    own = standardised(federation[active].values)
    between = sums.products(own, standardised(party.values)) / rows
    told = dict(zip(_names(party), np.abs(between).max(axis=0, initial=0.0).tolist(), strict=True))
    found = _related(party, active, told, strong, f"a column of '{active}'")
    together = dict(zip(_names(party), _multiple(own, between).tolist(), strict=True))
    more = tuple(column for column, value in together.items() if value >= strong > told[column])
    if more:
        words = (
            f"{len(more)} of {len(told)} columns of '{name}' can be told from all columns of '{active}' together (multiple "
            f"correlation of {strong:.1f} or more): {listed(more)}"
        )
        found.append(Caution(name, "together", words, more))
    for other in federation.passive:
        if other != name:
            theirs = sums.products(standardised(federation[other].values), standardised(party.values)) / rows
            strongest = zip(_names(party), np.abs(theirs).max(axis=0, initial=0.0).tolist(), strict=True)
            new = {column: value for column, value in strongest if told[column] < strong}
            whose = f"a column of '{other}', which may collude with '{active}'"
            found += _related(party, other, new, strong, whose)
    return found


def _related(party: Party, holder: str, told: Mapping[str, float], strong: float, whose: str) -> list[Caution]:
    """Columns that the holder has already, and those that one of its columns is close to."""
    name, found = party.name, []
    same = tuple(column for column, value in told.items() if value >= SAME)
    high = tuple(column for column, value in told.items() if strong <= value < SAME)
    if same:
        words = (
            f"'{holder}' holds {len(same)} of the columns of '{name}' already, up to scale and sign, whatever "
            f"is trained: {listed(same)}"
        )
        found.append(Caution(name, "correlation", words, same))
    if high:
        share = f"{len(high)} of {len(party.columns)} columns of '{name}'"
        words = f"{share} correlate at {strong:.1f} or more with {whose}: {listed(high)}"
        found.append(Caution(name, "correlation", words, high))
    return found


def _multiple(own: FloatArray, between: FloatArray) -> FloatArray:
    """The multiple correlation of each column with all own ones, less what chance gives: R^2 = r' C^-1 r, adjusted."""
    rows, count = own.shape
    if count == 0 or rows <= 2 * count:
        return np.zeros(between.shape[1])
    inverse = np.linalg.pinv(own.T @ own / rows, rcond=1e-3, hermitian=True)  # what shares round off is not blown up
    explained = np.einsum("ij,ik,kj->j", between, inverse, between)
    adjusted = 1 - (1 - np.clip(explained, 0, 1)) * (rows - 1) / (rows - count - 1)
    return np.asarray(np.sqrt(np.clip(adjusted, 0, 1)))


def _of_sides(federation: Federation, name: str, sums: JointSums) -> list[Caution]:
    """Columns whose best split, among their deciles, the class tells."""
    party, label, classes = federation[name], federation.label, len(federation.classes)
    if len(label) < ROWS_A_CLASS * classes or not party.columns:
        return []
    limits = [np.unique(np.quantile(column, THRESHOLDS)) for column in party.values.T]
    below = np.hstack([column[:, None] <= at for column, at in zip(party.values.T, limits, strict=True)]).astype(
        np.int64
    )
    counted = sums.counts(np.eye(classes, dtype=np.int64)[label], below)
    totals = np.bincount(label, minlength=classes)
    ends = np.cumsum([len(at) for at in limits])[:-1]
    told, words = [], []
    for column, counts in zip(_names(party), np.split(counted, ends, axis=1), strict=True):
        right, usual = _best_split(counts, totals)
        errors = (1 - usual) * len(label)
        if errors >= FEWEST_OTHERS and right - usual >= SIDES_TOLD * (1 - usual):
            told.append(column)
            words.append(f"{column} ({right:.0%} of rows, guessed {usual:.0%})")
    if not told:
        return []
    sentence = f"the class alone tells on which side of their best split rows lie for {len(told)} of {len(party.columns)} columns"
    ending = "a tree that splits there gives the branch away"
    return [Caution(name, "sides", f"{sentence} of '{name}': {listed(words)}; {ending}", tuple(told))]


def _best_split(below: IntArray, totals: IntArray) -> tuple[float, float]:
    """At the threshold of the purest two sides: how often the class tells the side, and the larger side's share."""
    sides = np.stack([below, totals[:, None] - below]).astype(float)  # side, class, threshold
    rows, whole = float(totals.sum()), sides.sum(axis=1)
    pure = (sides**2).sum(axis=1) / np.where(whole > 0, whole, 1)
    best = int(pure.sum(axis=0).argmax())
    return float(sides[:, :, best].max(axis=0).sum() / rows), float(whole[:, best].max() / rows)


def _names(party: Party) -> list[str]:
    return [column.name for column in party.columns]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, not too many of them.

    >>> listed(["a", "b"]), listed([str(i) for i in range(23)])[-17:]
    ('a, b', '18, 19 and 3 more')
    """
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def label_stand_ins(federation: Federation) -> list[Caution]:
    """Warnings of passive parties' columns from which alone the label can be told, on rows that were not looked at for it.

    The party that holds such a column has the label, whatever is sent, and an attack that recovers it recovers the label.
    """
    warnings = []
    for name in federation.passive:
        party = federation[name]
        pairs = zip(_names(party), party.values.T, strict=True)
        found = tuple(column for column, values in pairs if tells(values, federation.label))
        if found:
            one, quoted = len(found) == 1, [f"'{column}'" for column in found]
            columns = f"column {quoted[0]} stands" if one else f"columns {', '.join(quoted)} stand"
            words = (
                f"party '{name}': {columns} for the label: whoever learns {'it' if one else 'one of them'} learns the label, "
                f"and '{name}' knows the label already"
            )
            warnings.append(Caution(name, "label", words, found))
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
