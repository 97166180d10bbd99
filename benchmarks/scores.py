"""Attacks on the scores of regressions and trees, against a loop over rows, and against themselves at another size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.timing import Measured, best, result
from plumbob.attacks.scores.equation_solving import EquationSolving, equations
from plumbob.attacks.scores.path_restriction import PathRestriction, path_claims
from plumbob.data import registry
from plumbob.federation import Table, halves, split_at_random
from plumbob.protocols import PredictionProtocol, predict
from plumbob.protocols.scores.decision_tree import DecisionTree
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.protocols.shared.trees import LEAF, Forest
from plumbob.threats import LUO2021, View, cut


def esa_against_loop() -> Iterator[Measured]:
    """ESA on 11,701 rows of drive with 20 unknown columns against one row at a time."""
    view = _view(LogisticRegression(), registry.load("drive"), 20, rows=11_701)
    attack = EquationSolving()
    ours, guess = best(lambda: attack.run(view, np.random.default_rng(0)).values, 20)
    for name, solve_each in (("each row solved", True), ("inverse kept", False)):
        loop, answers = best(lambda solve=solve_each: _esa_loop(view, solve), 1)  # type: ignore[misc]  # bound at once
        assert np.allclose(guess, answers, atol=1e-8)
        goal = 100 if solve_each else None
        yield result(f"ESA against a loop over rows, {name}", loop / ours, goal, "11,701 rows, 20 of 48 columns", ours)


def _esa_loop(view: View, solve_each: bool) -> np.ndarray:
    """The same algebra, a row at a time: logarithms, differences, own columns to the other side, least squares."""
    assert view.model is not None
    weights, bias = view.model["weights"], view.model["bias"]
    left = equations(view).left
    inverse = np.linalg.pinv(left)
    answers = []
    for own, scores in zip(view.own, view.received("scores"), strict=True):
        logs = np.log(scores)
        right = [
            logs[k]
            - logs[k + 1]
            - own @ (weights[view.known, k] - weights[view.known, k + 1])
            - (bias[k] - bias[k + 1])
            for k in range(len(logs) - 1)
        ]
        answers.append((np.linalg.pinv(left) if solve_each else inverse) @ np.array(right))
    return np.array(answers)


def pra_against_loop() -> Iterator[Measured]:
    """PRA over 30,000 rows of credit against Algorithm 1 row by row."""
    table = registry.load("credit")
    view = _view(DecisionTree(), table, 12, rows=None, train=table)
    attack = PathRestriction()
    ours, guess = best(lambda: attack.run(view, np.random.default_rng(0)).branches, 10)
    assert guess is not None
    loop, counts = best(lambda: pra_loop(view, np.random.default_rng(0)), 1)
    assert np.array_equal(guess.candidates, counts)
    yield result("PRA against a walk per row", loop / ours, 50, f"{len(counts):,} rows, 12 of 23 columns", ours)


def pra_loop(view: View, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 1 as printed, for one row after the other; returns how many paths were left."""
    assert view.model is not None
    tree = Forest.from_arrays(view.model)
    feature, threshold, labels = tree.feature[0].tolist(), tree.threshold[0].tolist(), tree.label[0].tolist()
    position = {int(column): i for i, column in enumerate(view.known)}
    leaves = np.flatnonzero(tree.feature[0] == LEAF)
    path_claims(tree, leaves, view.unknown)
    counts = []
    for own, predicted in zip(view.own.tolist(), np.argmax(view.received("scores"), axis=1).tolist(), strict=True):
        beta = [0] * len(feature)
        beta[0] = 1
        queue = [0]
        while queue:
            node = queue.pop(0)
            if feature[node] < 0:
                continue
            mine = position.get(feature[node])
            if mine is None:
                beta[2 * node + 1] = beta[2 * node + 2] = beta[node]
            elif own[mine] <= threshold[node]:
                beta[2 * node + 1], beta[2 * node + 2] = beta[node], 0
            else:
                beta[2 * node + 1], beta[2 * node + 2] = 0, beta[node]
            queue += [2 * node + 1, 2 * node + 2]
        paths = [i for i in range(len(beta)) if beta[i] and feature[i] == LEAF and labels[i] == predicted]
        paths[int(rng.integers(len(paths)))]
        counts.append(len(paths))
    return np.array(counts)


def cost_against_rows() -> Iterator[Measured]:
    """Seconds per row at 581,012 rows of covertype over seconds per row at a tenth of them; 1 is linear."""
    table = registry.load("covertype")
    train = table.rows(np.arange(0, len(table.values), 50))
    for protocol, attack in ((LogisticRegression(), EquationSolving()), (DecisionTree(), PathRestriction())):
        seconds = {}
        for share in (0.1, 1.0):
            rows = round(share * len(table.values))
            view = _view(protocol, table, 20, rows=rows, train=train)
            seconds[rows], _ = best(lambda v=view, a=attack: a.run(v, np.random.default_rng(0)), 3)  # type: ignore[misc]  # as above
        (few, short), (many, long) = seconds.items()
        size = f"{many:,} rows against {few:,}, 20 of 54 columns, cost per row"
        yield result(f"{attack.name} cost per row, large against small", (long / many) / (short / few), 1, size, long)


def _view(
    protocol: PredictionProtocol, table: Table, unknown: int, rows: int | None, train: Table | None = None
) -> View:
    """The curious party's view of a prediction over that many rows."""
    rng = np.random.default_rng(0)
    federation = split_at_random(table, unknown, rng)
    order = [table.names.index(feature.column.name) for feature in federation.features]
    assert table.label is not None
    if train is None:
        chosen, others = halves(table.label, rng, 0.5)
        target = federation.rows(others[:rows])
        model = protocol.fit(table.values[chosen], table.label[chosen], len(table.classes), rng)
    else:
        assert train.label is not None
        target = federation.rows(np.arange(rows or len(federation)))
        model = protocol.fit(train.values, train.label, len(table.classes), rng)
    return cut(predict(protocol, model.reordered(np.array(order)), target, target.rows(np.arange(1))), LUO2021)
