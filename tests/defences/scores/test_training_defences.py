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
from plumbob.protocols.scores.split_models import SplitModel, SplitModels
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


BLOCKS = (np.array([0, 2, 4, 6, 7]), np.array([1, 3, 5]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_models_per_party_are_trained_privately(layers: int, classes: int) -> None:
    table = made_table(classes=classes)
    assert table.label is not None
    inner = SplitModels(layers=layers, width=5)
    protocol = DpSgd(epochs=1).protect(inner)
    one, two = (protocol.fit(table.values, table.label, classes, np.random.default_rng(0), BLOCKS) for _ in range(2))
    usual = inner.fit(table.values, table.label, classes, np.random.default_rng(0), BLOCKS)
    assert isinstance(one, SplitModel)
    assert {k: a.shape for k, a in one.arrays().items()} == {k: a.shape for k, a in usual.arrays().items()}
    assert all(np.array_equal(array, two.arrays()[key]) for key, array in one.arrays().items())
    assert all(local.weights[-1].shape[1] == classes for local in one.locals)
    assert not np.allclose(one.scores(table.values), usual.scores(table.values), atol=1e-3)
    if classes == 2:
        assert one.locals[0].outputs(table.values[:, BLOCKS[0]]).sum(axis=1) == pytest.approx(np.zeros(400), abs=1e-6)


def test_less_privacy_gives_better_models_per_party() -> None:
    table = made_table(rows=2000, classes=2, seed=3)
    assert table.label is not None
    right = []
    for epsilon in (0.05, 20.0):
        protocol = DpSgd(epsilon=epsilon, epochs=6).protect(SplitModels(layers=0))
        scores = [
            protocol.fit(table.values, table.label, 2, np.random.default_rng(seed), BLOCKS).scores(table.values)
            for seed in range(3)
        ]
        right.append(float(np.mean([np.argmax(one, axis=1) == table.label for one in scores])))
    assert right[0] + 0.02 < right[1]


def test_each_rows_gradient_over_all_parties_is_clipped_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, a step's sum of gradients is no longer than the clip for each row in it."""
    from plumbob.defences.scores import dp_sgd

    seen: list[float] = []
    adam = dp_sgd.torch.optim.Adam

    class Watched(adam):  # type: ignore[misc,valid-type]
        def step(self, *args: object, **kwargs: object) -> None:
            grads = [p.grad for group in self.param_groups for p in group["params"]]
            seen.append(float(sum((g**2).sum() for g in grads) ** 0.5))
            super().step(*args, **kwargs)

    monkeypatch.setattr(dp_sgd.torch.optim, "Adam", Watched)
    table = made_table(classes=3)
    assert table.label is not None
    private = dp_sgd.PrivateSteps(rate=1.0, steps=3, noise=0.0, clip=0.01)
    rng = np.random.default_rng(0)
    dp_sgd.train_by_party(SplitModels(), table.values, table.label, 3, BLOCKS, private, rng)
    assert len(seen) == 3
    assert max(seen) <= 0.01 * 1.0001  # the mean over the rows
    assert max(seen) > 1e-4


@pytest.mark.parametrize(("layers", "changes"), [(0, False), (1, True), (2, True)])
def test_dropout_changes_parties_networks_and_no_linear_model(layers: int, changes: bool) -> None:
    protocol = SplitModels(layers=layers, epochs=2)
    dropped = Dropout().protect(protocol)
    assert (dropped is not protocol) == changes
    table = made_table()
    assert table.label is not None
    scores = [
        one.fit(table.values, table.label, 3, np.random.default_rng(0), BLOCKS).scores(table.values)
        for one in (protocol, dropped)
    ]
    assert np.allclose(*scores) != changes


def test_a_network_without_hidden_layers_has_nothing_to_drop() -> None:
    linear = NeuralNetwork(hidden=())
    assert Dropout().protect(linear) is linear
    with pytest.raises(BadInput, match="expected a dropout of 0 or more and below 1, got 1"):
        SplitModels(dropout=1.0)
