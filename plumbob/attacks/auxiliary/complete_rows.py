"""Complete rows (ours): whoever knows some rows in full learns hidden columns, and the label, from all messages about a row.

    x_target = g(x_own, messages),   g: the learner that errs least on rows known in full that it was not fitted to

The rows are of other people, with the federation's answers on them, or of the very people in the federation (`lesson`).
Learners are ridge regression at many penalties, on own columns, on messages, on both and on products of a few of both, and
randomised trees. One of them is the mean, so that where messages say nothing the guess says nothing. A linear relation comes
out exactly as soon as more rows are known than it has terms.

It works on any protocol. What it finds without messages is a baseline of scoring (`learnt_alone`): only more than that is a leak.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from plumbob import bundle
from plumbob.attacks.auxiliary._held_out_learners import Features, Learnt, at_grid, learn
from plumbob.attacks.auxiliary._lessons import Lesson, lesson
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.errors import whole
from plumbob.federation import FloatArray, IntArray
from plumbob.kinds import COLUMNS, Kind
from plumbob.threats import AuxiliaryRows, KnownPeople, Threat, View

SILENT = "no message says anything about the rows that are known in full, so nothing could be learnt from messages"
TREES = 60
PREDICTED = (
    "boosted_trees",
    "decision_tree",
    "logistic_regression",
    "neural_network",
    "random_forest",
    "split_models",
)
TRAINED = ("encrypted_logistic_regression", "secure_boost", "split_network", "split_training", "xgboost_columns")


class CompleteRows(Attack):
    """Ridge regression and randomised trees, chosen column by column on held-out rows. `trees`: how many are grown."""

    name = "complete_rows"
    identity = "CompleteRows(trees)"
    summary = "ours: learns hidden columns and labels from messages about rows that are known in full"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = (*PREDICTED, *TRAINED)
    addresses = (*COLUMNS, Kind.LABEL)
    needs_active = False
    presets = {"small": {"trees": 12}}
    cost_terms = ("1", "n d", "n w", "u")
    workload = "matrices"

    def __init__(self, *, trees: int = TREES) -> None:
        self.trees = whole("complete rows: trees", trees, 0, 1_000)

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """Any message about rows will do; without complete rows there is nothing to learn from."""
        if threat.grant(AuxiliaryRows) is None and threat.grant(KnownPeople) is None:
            return super().why_not(protocol, threat, sent) or "needs complete rows"
        if protocol in PREDICTED and not threat.active:
            return "needs messages about rows, and predictions send them to the active party only"
        return super().why_not(protocol, threat, sent)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        taught = lesson(view)
        found = _learn(taught, taught.hidden, self.trees)
        values = np.clip(at_grid(found, view.steps), 0.0, 1.0)
        if view.people is not None and view.people_rows is not None:
            values[view.people] = view.people_rows[:, view.unknown]
        labels = None if taught.labels is None else _classes(taught, taught.labels, len(view.classes), self.trees)
        return Guess(view.unknown_names, values, labels=labels, untried="" if taught.told_asked.shape[1] else SILENT)


def learnt_alone(view: View) -> FloatArray | None:
    """What the same learners find in own columns alone, a guess that needs no message; None without complete rows."""
    if view.auxiliary is None and view.people is None:
        return None
    taught = lesson(view, told=False)
    parts = (taught.own_taught, taught.own_asked, taught.hidden)
    return _alone(_Asked(bundle.canonical([bundle.digest(part) for part in parts]), taught, view.steps))


def labels_alone(view: View) -> IntArray | None:
    """The classes that the same learners find in own columns alone; None where no label is known of anybody."""
    if view.people is None:
        return None
    taught = lesson(view, told=False)
    return None if taught.labels is None else _classes(taught, taught.labels, len(view.classes), TREES)


@dataclass(frozen=True)
class _Asked:
    """A lesson that is known by its digest."""

    digest: str
    taught: Lesson = field(compare=False)
    steps: FloatArray | None = field(compare=False)


@lru_cache(maxsize=4)  # all attacks on a view are judged one after the other
def _alone(asked: _Asked) -> FloatArray:
    return np.clip(at_grid(_learn(asked.taught, asked.taught.hidden, TREES), asked.steps), 0.0, 1.0)


def _learn(taught: Lesson, targets: FloatArray, trees: int) -> Learnt:
    """Own columns first, so that where messages say nothing more the guess is what it would be without them."""
    own, told = Features(taught.own_taught, taught.own_asked), Features(taught.told_taught, taught.told_asked)
    both = own.beside(told)
    more = [[told, both.with_products(), both]] if told.asked.shape[1] else []
    return learn([[own.with_products(), own], *more], targets, trees)


def _classes(taught: Lesson, labels: IntArray, classes: int, trees: int) -> IntArray:
    """The class that is predicted to be most likely, of every row."""
    return np.asarray(_learn(taught, np.eye(classes)[labels], trees).values.argmax(axis=1), dtype=np.int64)
