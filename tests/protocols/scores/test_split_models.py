"""Split models: a model per party, added up, and what is seen without a coordinator."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from plumbob.attacks._common.differentiable_models import logits_of
from plumbob.errors import BadInput
from plumbob.federation import halves, split_at_random
from plumbob.protocols import predict, protocol_named
from plumbob.protocols.base import column_positions
from plumbob.protocols.scores.split_models import SplitModel, SplitModels
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR
from tests.worlds import built_in, made_table


def federated(classes: int = 3, **settings):
    federation = split_at_random(made_table(classes=classes), 3, np.random.default_rng(0))
    protocol = SplitModels(**({"epochs": 3} | settings))
    blocks = list(column_positions(federation).values())
    model = protocol.fit(federation.values, federation.label, classes, np.random.default_rng(0), blocks)
    return protocol, model, federation


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu"])
@pytest.mark.parametrize("classes", [2, 4])
def test_torch_computes_the_same_scores(layers: int, activation: str, classes: int) -> None:
    _, model, federation = federated(classes, layers=layers, activation=activation)
    logits = logits_of("split_models", model.arrays(), torch.float64)(torch.tensor(federation.values))
    assert torch.softmax(logits, dim=1).numpy() == pytest.approx(model.scores(federation.values), abs=1e-12)


def test_the_output_is_a_sum_of_functions_of_one_party_each() -> None:
    """Log-score differences change by the same amount with a party's columns, whatever the other party's are."""
    _, model, federation = federated(layers=2)
    own, other = federation["active"].values, federation["passive"].values

    def step(active: np.ndarray, passive: np.ndarray) -> np.ndarray:
        return -np.diff(np.log(model.scores(np.hstack([active, passive]))), axis=1)

    one = step(own[:1], other[1:2]) - step(own[:1], other[:1])
    two = step(own[5:6], other[1:2]) - step(own[5:6], other[:1])
    assert one == pytest.approx(two, abs=1e-9)


def test_reordering_moves_every_partys_columns_with_it() -> None:
    _, model, federation = federated(layers=1)
    assert isinstance(model, SplitModel)
    order = np.random.default_rng(1).permutation(8)
    moved = model.reordered(order)
    assert moved.scores(federation.values[:, order]) == pytest.approx(model.scores(federation.values), abs=1e-12)
    passive = np.sort(np.argsort(order)[column_positions(federation)["passive"]])
    assert moved.part(passive)["w1"] == pytest.approx(model.part(column_positions(federation)["passive"])["w1"])
    back = moved.reordered(np.argsort(order))
    assert all(np.array_equal(back.arrays()[key], array) for key, array in model.arrays().items())


def test_a_part_is_of_one_partys_columns_only() -> None:
    _, model, _ = federated()
    with pytest.raises(BadInput, match="no party's model has columns 0 7"):
        model.part(np.array([0, 7]))


def test_two_classes_are_opposite_outputs() -> None:
    protocol, model, federation = federated(2, layers=1)
    for party, columns in column_positions(federation).items():
        sent = protocol.answer(federation[party], model.part(columns), np.arange(5))
        assert sent.sum(axis=1) == pytest.approx(np.zeros(5), abs=1e-12)


def test_without_a_coordinator_the_active_party_sees_the_other_outputs() -> None:
    protocol, model, federation = federated(coordinator=False)
    log = predict(protocol, model, federation, federation)
    seen = {(m.sender, m.receiver, m.name) for m in log.messages if m.phase == "predict"}
    assert seen == {("active", "passive", "rows"), ("passive", "active", "answer"), ("active", "active", "scores")}
    view = cut(log, THREATS["active"])
    outputs = protocol.answer(
        federation["passive"], model.part(column_positions(federation)["passive"]), np.arange(len(federation))
    )
    assert view.received("answer") == pytest.approx(outputs)
    assert view.received("scores") == pytest.approx(model.scores(federation.values))


def test_with_a_coordinator_it_does_not() -> None:
    protocol, model, federation = federated()
    view = cut(predict(protocol, model, federation, federation), THREATS["active"])
    assert [(m.sender, m.receiver) for m in view.messages if m.name == "answer"] == [("active", COORDINATOR)]


def test_nobody_can_round_scores_that_the_active_party_computes() -> None:
    protocol, model, federation = federated(coordinator=False)
    with pytest.raises(BadInput, match="without a coordinator"):
        predict(protocol, model, federation, federation, release=lambda scores: scores.round(1))


@pytest.mark.parametrize(("layers", "least"), [(0, 0.9), (1, 0.8), (2, 0.78)])
def test_models_learn_digits(layers: int, least: float) -> None:
    federation = split_at_random(built_in("digits"), 0.5, np.random.default_rng(0))
    train, rows = halves(federation.label, np.random.default_rng(0))
    trainer, target = federation.rows(train), federation.rows(rows)
    blocks = list(column_positions(federation).values())
    protocol = SplitModels(layers=layers, epochs=40)
    model = protocol.fit(trainer.values, trainer.label, 10, np.random.default_rng(0), blocks)
    assert np.mean(np.argmax(model.scores(target.values), axis=1) == target.label) > least


def test_wrong_settings_are_one_sentence() -> None:
    with pytest.raises(BadInput, match="expected 0 to 3 hidden layers, got 4"):
        protocol_named("split_models", layers=4)
    with pytest.raises(BadInput, match="did you mean 'sigmoid'"):
        protocol_named("split_models", activation="sigmoyd")
