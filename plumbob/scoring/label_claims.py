"""Score guesses of the label: the share of rows whose class is right, beside what needs no message.

Rows whose label the threat grants do not count. The baseline is the best of
    the most frequent class
    what own columns tell where labels or people are known (`attacks.own_column_labels`)

A guess may say which rows share a class, and not which class that is (`Guess.unnamed`): whoever knows one person of a class, or
which class is the rarer, names it. So it is a leak too. Its groups are named by the truth, each by a class of its own, and luck
has no part in it: the names that one half of the rows suggests are judged on the other half. What helps the guess helps the
baseline, which may then also be the clusters of own columns, named likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.auxiliary.complete_rows import labels_alone
from plumbob.attacks.base import Guess
from plumbob.attacks.own_column_labels import clusters_of_own_columns, labels_of_own_columns
from plumbob.federation import IntArray
from plumbob.lazy_imports import optimize
from plumbob.scoring.evidence import label_tie
from plumbob.scoring.truth import Truth
from plumbob.threats import View


@dataclass(frozen=True)
class LabelScore:
    """What a guess of labels is worth."""

    accuracy: float
    baseline: float
    tie: float  # strongest correlation of a guessed class with a true one
    unnamed: bool


def score_labels(guess: Guess, truth: Truth, view: View) -> LabelScore | None:
    """The judged guess; None where it says nothing of labels, or the curious hold the label."""
    if guess.labels is None or truth.label is None or view.active in view.curious:
        return None
    if guess.untried and (guess.labels < 0).all():
        return None
    told, label = truth.unlabelled(guess.labels), truth.unlabelled(truth.label)
    if not len(label):
        return None
    usual = int(np.bincount(label).max()) / len(label)
    if (alone := labels_alone(view)) is not None:  # what needs no message is no leak of the protocol
        usual = max(usual, float(np.mean(truth.unlabelled(alone) == label)))
    if view.labelled is not None and (alone := labels_of_own_columns(view)) is not None:
        usual = max(usual, float(np.mean(truth.unlabelled(alone) == label)))
    if not guess.unnamed:
        right = float(np.mean(told == label))  # a row of which nothing is said counts as wrong
        return LabelScore(right, usual, label_tie(told, label), False)
    clusters = truth.unlabelled(clusters_of_own_columns(view))
    usual = max(usual, named_accuracy(clusters, label))
    return LabelScore(named_accuracy(told, label), usual, label_tie(told, label), True)


def named_accuracy(groups: IntArray, label: IntArray) -> float:
    """The share of rows whose class is right once groups are named, by rows other than those that are judged.

    >>> label = np.arange(40) % 2
    >>> named_accuracy(1 - label, label), named_accuracy(np.full(40, -1), label)
    (1.0, 0.0)
    """
    half = np.random.default_rng(0).permutation(len(label)) % 2
    named = np.concatenate([_named(groups[half != k], label[half != k], groups[half == k]) for k in (0, 1)])
    return float(np.mean(named == np.concatenate([label[half == k] for k in (0, 1)])))


def _named(groups: IntArray, label: IntArray, asked: IntArray) -> IntArray:
    """Classes for the groups asked about, each its own, so that as many of the other rows as can be are right."""
    ids, classes = np.unique(groups[groups >= 0]), np.unique(label)
    counts = np.array([[np.sum((groups == one) & (label == c)) for c in classes] for one in ids])
    named = np.full(len(asked), -1)
    if counts.size:
        for group, place in zip(*optimize.linear_sum_assignment(-counts), strict=True):
            named[asked == ids[group]] = classes[place]
    return named
