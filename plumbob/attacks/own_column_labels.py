"""Labels that need no message: what own columns tell by themselves, the fair baseline of label inference.

with known labels      the semi-supervised model that errs least on known labels it was not fitted to: logistic regression at
                       several penalties, the same taught by its own surest answers, and labels spread over nearest neighbours
without                as many clusters of own columns as there are classes; which is which nobody knows

Liu et al. (arXiv 2603.18680): much of what is called label inference is told by the columns, whatever is sent. Only what an
attack finds beyond it is a leak of the protocol.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np

from plumbob import bundle
from plumbob.attacks.row_messages import WIDE, reduced, whole
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.threats import View

FEW = 40  # known labels up to which each is held out by itself
FOLDS = 8
SAMPLE = 1_500  # rows without a label that models see; they classify all of them
PENALTIES = (1.0, 0.01, 0.1, 10.0, 100.0)  # of logistic regression, inverse
SURE = 0.9  # probability from which a model teaches itself
ROUNDS = 5  # in which it does
NEIGHBOURS = 7
SPREADS = (0.2, 0.8)  # how much of a label comes from neighbours
STARTS = 3  # of the clustering
Learner = Callable[[FloatArray, IntArray, FloatArray, FloatArray], IntArray]  # rows, classes, unlabelled rows, asked


def labels_of_own_columns(view: View) -> IntArray | None:
    """The class of every row from own columns and known labels, without a message; None where no label is known."""
    known = view.known_labels
    return None if (known < 0).all() else _learnt(_Asked.of(view.own, known))


def clusters_of_own_columns(view: View) -> IntArray:
    """Which rows belong together by own columns alone."""
    return _clustered(_Asked.of(view.own, np.array([len(view.classes)])))


@dataclass(frozen=True)
class _Asked:
    """Columns and labels that are known by their digest."""

    digest: str
    own: FloatArray = field(compare=False)
    known: IntArray = field(compare=False)

    @classmethod
    def of(cls, own: FloatArray, known: IntArray) -> _Asked:
        return cls(bundle.canonical([bundle.digest(own), bundle.digest(known)]), own, known)

    def features(self) -> FloatArray:
        return reduced(whole(self.own), WIDE)


@lru_cache(maxsize=4)  # all attacks on a view are judged one after the other
def _clustered(asked: _Asked) -> IntArray:
    table, classes = asked.features(), int(asked.known[0])
    if not table.shape[1] or len(np.unique(table, axis=0)) < classes:
        return np.zeros(len(table), dtype=np.int64)
    rows = _sample(np.arange(len(table)))
    model = sklearn.cluster.KMeans(classes, n_init=STARTS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows in the sample than clusters
        return np.asarray(model.fit(table[rows]).predict(table), dtype=np.int64)


@lru_cache(maxsize=4)
def _learnt(asked: _Asked) -> IntArray:
    labelled = np.flatnonzero(asked.known >= 0)
    table, classes = asked.features(), asked.known[labelled]
    values, counts = np.unique(classes, return_counts=True)
    if len(values) < 2 or not table.shape[1]:
        return np.full(len(table), values[counts.argmax()])
    rest = table[_sample(np.flatnonzero(asked.known < 0))]
    some = learners()
    wrong = [_held_out(learner, table[labelled], classes, rest) for learner in some]
    return some[int(np.argmin(wrong))](table[labelled], classes, rest, table)


def learners() -> list[Learner]:
    """All models, simple ones first: of equals the first is taken."""
    return [
        *(partial(_logistic, c=c) for c in PENALTIES),
        _self_taught,
        *(partial(_spread, share=share) for share in SPREADS),
    ]


def _sample(rows: IntArray) -> IntArray:
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).round().astype(np.int64)]


def _held_out(learner: Learner, rows: FloatArray, classes: IntArray, rest: FloatArray) -> float:
    """The share of known labels that a model gets wrong when it was not fitted to them."""
    count = len(classes)
    folds = np.arange(count) if count <= FEW else np.random.default_rng(0).permutation(count) % FOLDS
    wrong = 0
    for fold in np.unique(folds):
        out = folds == fold
        left = np.unique(classes[~out])
        if len(left) < 2:
            wrong += int((classes[out] != left[0]).sum())
            continue
        wrong += int((learner(rows[~out], classes[~out], rest, rows[out]) != classes[out]).sum())
    return wrong / count


def _logistic(rows: FloatArray, classes: IntArray, rest: FloatArray, asked: FloatArray, *, c: float) -> IntArray:
    return np.asarray(_fitted(rows, classes, c).predict(asked), dtype=np.int64)


def _fitted(rows: FloatArray, classes: IntArray, c: float) -> sklearn.linear_model.LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it has not converged it is still a guess
        return sklearn.linear_model.LogisticRegression(C=c, max_iter=200).fit(rows, classes)


def _self_taught(rows: FloatArray, classes: IntArray, rest: FloatArray, asked: FloatArray) -> IntArray:
    """Answers that are sure count as labels, round by round."""
    model = _fitted(rows, classes, 1.0)
    for _ in range(ROUNDS if len(rest) else 0):
        chances = model.predict_proba(rest)
        sure = chances.max(axis=1) >= SURE
        if not sure.any():
            break
        said = model.classes_[chances[sure].argmax(axis=1)]
        model = _fitted(np.vstack([rows, rest[sure]]), np.concatenate([classes, said]), 1.0)
    return np.asarray(model.predict(asked), dtype=np.int64)


def _spread(rows: FloatArray, classes: IntArray, rest: FloatArray, asked: FloatArray, *, share: float) -> IntArray:
    table = np.vstack([rows, rest])
    told = np.concatenate([classes, np.full(len(rest), -1)])
    near = min(NEIGHBOURS, len(table) - 1)
    model = sklearn.semi_supervised.LabelSpreading(kernel="knn", n_neighbors=near, alpha=share)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # rows that no label reaches
        said = np.asarray(model.fit(table, told).predict(asked), dtype=np.int64)
    return np.where(np.isin(said, classes), said, classes[0])
