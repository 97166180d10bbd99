"""Dropout and DP-SGD."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.defences.scores.dp_sgd import DpSgd, noise_for, sizes_of, spent
from plumbob.defences.scores.dropout import Dropout
from plumbob.errors import BadInput
from plumbob.protocols.scores.decision_tree import DecisionTree
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.protocols.scores.neural_network import NeuralNetwork
from tests.worlds import made_table


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rows", [300, 20_000])
def test_both_accountants_agree_and_the_budget_holds(epsilon: float, rows: int) -> None:
    rate, steps = sizes_of(rows, 256, 20)
    noise = noise_for(epsilon, 1 / rows, rate, steps)
    opacus, google = spent(noise, 1 / rows, rate, steps)
    assert opacus == pytest.approx(google, rel=0.05)
    assert 0.9 * epsilon < opacus <= 1.0001 * epsilon


def test_less_privacy_gives_a_better_model() -> None:
    table = made_table(rows=3000, classes=2, seed=3)
    accuracy = []
    for epsilon in (0.05, 20.0):
        protocol = DpSgd(epsilon=epsilon, epochs=5).protect(LogisticRegression())
        right = []
        for seed in range(4):
            assert table.label is not None
            model = protocol.fit(table.values, table.label, 2, np.random.default_rng(seed))
            right.append(np.mean(np.argmax(model.scores(table.values), axis=1) == table.label))
        accuracy.append(float(np.mean(right)))
    assert accuracy[0] + 0.02 < accuracy[1]


def test_the_private_network_has_the_layers_asked_for() -> None:
    table = made_table(classes=3)
    assert table.label is not None
    protocol = DpSgd(epochs=1).protect(NeuralNetwork(hidden=(5, 4)))
    one, two = (protocol.fit(table.values, table.label, 3, np.random.default_rng(0)).arrays() for _ in range(2))
    assert [one[f"w{i}"].shape for i in range(3)] == [(8, 5), (5, 4), (4, 3)]
    assert all(np.array_equal(one[key], two[key]) for key in one)


def test_dropout_changes_networks_and_nothing_else() -> None:
    assert "dropout=0.5" in repr(Dropout().protect(NeuralNetwork()))
    assert repr(NeuralNetwork()).endswith("dropout=0.0)")
    for other in (LogisticRegression(), DecisionTree()):
        assert Dropout().protect(other) is other
    table = made_table()
    assert table.label is not None
    plain, dropped = (
        protocol.fit(table.values, table.label, 3, np.random.default_rng(0)).arrays()["w1"]
        for protocol in (NeuralNetwork(hidden=(8, 8), epochs=2), NeuralNetwork(hidden=(8, 8), epochs=2, dropout=0.5))
    )
    assert not np.allclose(plain, dropped)


def test_an_impossible_dropout_is_refused() -> None:
    with pytest.raises(BadInput, match="expected a dropout of 0 or more and below 1, got 1"):
        NeuralNetwork(dropout=1.0)
    with pytest.raises(BadInput, match="expected a network without dropout"):
        DpSgd().protect(NeuralNetwork(dropout=0.5)).fit(np.zeros((4, 2)), np.zeros(4, int), 2, np.random.default_rng(0))


def test_dp_sgd_leaves_trees_as_they_are() -> None:
    tree = DecisionTree()
    assert DpSgd().protect(tree) is tree
