"""Hidden share (ours): what own columns do not explain of a message is what hidden columns put into it. No model, no known row.

    share = message - E[message | own columns],    the expectation fitted to other rows
Scores are taken as log-odds. Of least squares and boosted trees the one that errs less is kept. A party's
own answers or outputs are functions of its columns alone, so that nothing is taken off. Of one hidden column the share tells the
order; where the model is linear and the column has levels (`Schema`), these are found exactly, up to their direction: with the
levels right, a linear fit leaves nothing.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks._common.shares import EMPTY_SHARE, first_direction, guess_of, on_grid
from plumbob.attacks.base import Attack, Guess, nothing
from plumbob.attacks.scores._party_answers import answers_received
from plumbob.federation import FloatArray
from plumbob.lazy_imports import sklearn
from plumbob.threats import AuxiliaryRows, KnownPeople, Threat, View, WhiteBox

SMALLEST = 1e-12  # a score below it counts as this
PARTS, FOLDS = 3, 2  # of the messages: the largest components, each fitted across so many folds
FEWEST = 20  # rows below which nothing is fitted
TREES = {"max_iter": 40, "max_depth": 4, "early_stopping": False}
MORE_IS_KNOWN = "needs no more than messages; with the model or complete rows other attacks learn more"
NOTHING_LEFT = "own columns explain the messages"


class HiddenShare(Attack):
    """The residual of the messages on own columns."""

    name = "hidden_share"
    summary = (
        "ours: without the model, what own columns do not explain of the scores or outputs orders the hidden columns"
    )
    paper = "plumbob"
    protocols = (
        "boosted_trees",
        "decision_tree",
        "logistic_regression",
        "neural_network",
        "random_forest",
        "split_models",
        "split_training",
    )
    cost_terms = ("1", "n", "n d", "n c")
    workload = "loops"

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """It stands where nothing but messages is known."""
        known = any(threat.grant(kind) is not None for kind in (WhiteBox, AuxiliaryRows, KnownPeople))
        if protocol in self.protocols and threat.active and known and protocol != "split_training":
            return MORE_IS_KNOWN
        return super().why_not(protocol, threat, sent)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        table, alone = messages(view)
        told = np.flatnonzero(np.isfinite(table).all(axis=1)) if table.size else np.zeros(0, dtype=np.intp)
        if len(told) < FEWEST:
            return nothing(view, "too few rows were answered")
        table, own = table[told], view.own[told]
        if len(view.unknown) == 1 and view.steps is not None:
            for column in table.T:
                cells = on_grid(own[:, :0] if alone else own, column, float(view.steps[0]))
                if cells is not None:
                    upward = cells if cells.mean() <= 0.5 else 1 - cells
                    return guess_of(view, upward, told, "levels found that leave nothing, in one of two directions")
        left = table if alone else unexplained(own, components(table), rng)
        if float(left.var(axis=0).sum()) <= EMPTY_SHARE * float(table.var(axis=0).sum()):
            return nothing(view, "" if len(view.unknown) == 1 else NOTHING_LEFT)
        return guess_of(view, first_direction(left), told)


def messages(view: View) -> tuple[FloatArray, bool]:
    """One row of numbers for each row, NaN where nothing was answered, and whether hidden columns alone made them."""
    if view.protocol == "split_training":
        return outputs(view), True
    answers = answers_received(view) if view.protocol == "split_models" else {}
    if answers:
        return np.hstack([one[:, 1:] - one[:, :1] for one in answers.values()]), True
    scores = np.asarray(view.received("scores"), dtype=np.float64)
    logs = np.log(np.maximum(scores, SMALLEST))
    return logs[:, 1:] - logs[:, :1], False


def outputs(view: View) -> FloatArray:
    """The mean of what each row's outputs were, sender by sender."""
    count, senders = len(view.own), dict[str, tuple[FloatArray, FloatArray]]()
    rows: dict[int, np.ndarray] = {}
    for message in view.messages:
        if message.name == "rows" and message.receiver in view.curious:
            rows[message.round] = np.asarray(message.payload).ravel()
        if message.name != "outputs" or message.sender in view.curious or message.round not in rows:
            continue
        payload = np.asarray(message.payload, dtype=np.float64).reshape(len(message.payload), -1)
        if len(payload) != len(rows[message.round]):
            continue
        total, times = senders.setdefault(message.sender, (np.zeros((count, payload.shape[1])), np.zeros(count)))
        np.add.at(total, rows[message.round], payload)
        np.add.at(times, rows[message.round], 1)
    seen = [
        np.where(times[:, None] > 0, total / np.maximum(times, 1)[:, None], np.nan) for total, times in senders.values()
    ]
    return np.hstack([np.zeros((count, 0)), *seen])


def components(table: FloatArray) -> FloatArray:
    """The largest principal components."""
    centred = table - table.mean(axis=0)
    _, _, right = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ right[:PARTS].T)


def unexplained(own: FloatArray, table: FloatArray, rng: np.random.Generator) -> FloatArray:
    """What the better of two learners leaves of each number, on rows that it was not fitted to."""
    fold = rng.permutation(len(own)) % FOLDS
    design = np.hstack([own, np.ones((len(own), 1))])
    linear, bent = np.zeros_like(table), np.zeros_like(table)
    for k in range(FOLDS):
        fitted, asked = fold != k, fold == k
        linear[asked] = design[asked] @ np.linalg.lstsq(design[fitted], table[fitted], rcond=1e-10)[0]
        for part in range(table.shape[1] if own.shape[1] else 0):
            trees = sklearn.ensemble.HistGradientBoostingRegressor(**TREES, random_state=0)
            bent[asked, part] = trees.fit(own[fitted], table[fitted, part]).predict(own[asked])
    found = [table - one for one in ((linear, bent) if own.shape[1] else (linear,))]
    return min(found, key=lambda left: float((left**2).sum()))
