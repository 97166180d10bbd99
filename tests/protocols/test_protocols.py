"""Joint prediction gives what the whole model gives, over any number of parties, and nothing else crosses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import halves, split, split_at_random
from plumbob.protocols import PROTOCOLS, predict, protocol_named
from plumbob.protocols.base import Model, column_positions
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.transcript import COORDINATOR
from tests.worlds import built_in, made_table, small, transcript

PREDICTION = [name for name, kind in PROTOCOLS.items() if kind.phase == "prediction"]


def parties(table, count: int):
    names = np.array_split(np.array(table.names), count)
    return split(table, {f"p{i}": list(part) for i, part in enumerate(names)}, "p0")


@pytest.mark.parametrize("name", PREDICTION)
@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("classes", [2, 4])
def test_the_parties_together_compute_the_models_scores(name: str, count: int, classes: int) -> None:
    table = made_table(classes=classes, columns=9)
    federation = parties(table, count)
    train, rows = halves(federation.label, np.random.default_rng(0))
    protocol = small(name)
    trainer, target = federation.rows(train), federation.rows(rows)
    blocks = list(column_positions(federation).values())
    model = protocol.fit(trainer.values, trainer.label, classes, np.random.default_rng(0), blocks)
    log = predict(protocol, model, target, trainer, batch=70)
    scores = np.concatenate([m.payload for m in log.messages if m.name == "scores"])
    assert scores == pytest.approx(model.scores(target.values), abs=1e-12)
    assert scores.sum(axis=1) == pytest.approx(np.ones(len(target)))
    assert type(model).from_arrays(model.arrays()).scores(target.values) == pytest.approx(scores, abs=1e-12)


@pytest.mark.parametrize("name", PREDICTION)
def test_who_sends_what_to_whom(name: str) -> None:
    federation = parties(made_table(), 3)
    protocol = small(name)
    blocks = list(column_positions(federation).values())
    model = protocol.fit(federation.values, federation.label, 3, np.random.default_rng(0), blocks)
    log = predict(protocol, model, federation, federation, batch=10_000)
    seen = {(m.sender, m.receiver, m.name) for m in log.messages if m.phase == "predict"}
    assert seen == (
        {("p0", p, "rows") for p in ("p1", "p2")}
        | {(p, COORDINATOR, "answer") for p in ("p0", "p1", "p2")}
        | {(COORDINATOR, "p0", "scores")}
    )


@pytest.mark.parametrize("name", PREDICTION)
def test_columns_in_another_order_are_the_same_model(name: str) -> None:
    table = made_table()
    protocol = small(name)
    model = protocol.fit(table.values, table.label, 3, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(8)
    assert model.reordered(order).scores(table.values[:, order]) == pytest.approx(model.scores(table.values), abs=1e-12)


@pytest.mark.parametrize("name", PREDICTION)
def test_the_same_generator_gives_the_same_model(name: str) -> None:
    table = made_table()
    one, two = (small(name).fit(table.values, table.label, 3, np.random.default_rng(5)).arrays() for _ in range(2))
    assert all(np.array_equal(one[key], two[key]) for key in one)


def test_trees_agree_with_scikit_learn() -> None:
    from sklearn.tree import DecisionTreeClassifier

    table = built_in("digits")
    rng = np.random.default_rng(0)
    ours = PROTOCOLS["decision_tree"]().fit(table.values, table.label, 10, np.random.default_rng(0))
    theirs = DecisionTreeClassifier(max_depth=5, random_state=int(rng.integers(2**31))).fit(table.values, table.label)
    values = table.values.astype(np.float32).astype(np.float64)  # scikit-learn rounds its inputs
    assert np.array_equal(np.argmax(ours.scores(values), axis=1), theirs.predict(values))


def test_a_forest_is_a_vote() -> None:
    table = made_table()
    forest = small("random_forest").fit(table.values, table.label, 3, np.random.default_rng(0))
    votes = forest.scores(table.values) * len(forest.feature)
    assert votes == pytest.approx(votes.round(), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "least"),
    [("logistic_regression", 0.95), ("decision_tree", 0.6), ("random_forest", 0.75), ("neural_network", 0.95)],
)
def test_models_learn_digits(name: str, least: float) -> None:
    table = built_in("digits")
    train, rows = halves(table.label, np.random.default_rng(0))
    protocol = protocol_named(
        name, **({"hidden": (64,), "epochs": 30, "batch": 32} if name == "neural_network" else {})
    )
    model = protocol.fit(table.values[train], table.label[train], 10, np.random.default_rng(0))
    assert np.mean(np.argmax(model.scores(table.values[rows]), axis=1) == table.label[rows]) > least


def test_two_classes_keep_both_scores_exact_in_the_tails() -> None:
    from plumbob.protocols.scores.logistic_regression import LinearModel

    model = LinearModel(np.array([[-50.0, 50.0]]), np.zeros(2))
    scores = model.scores(np.array([[1.0]]))
    assert np.log(scores[0, 1]) - np.log(scores[0, 0]) == pytest.approx(100.0)


@pytest.mark.parametrize("name", PREDICTION)
def test_training_rows_that_lack_a_class_are_refused(name: str) -> None:
    table = made_table()
    label = np.where(table.label == 1, 0, table.label)
    with pytest.raises(BadInput, match="expected training rows of all 3 classes, got none of class number 2"):
        small(name).fit(table.values, label, 3, np.random.default_rng(0))


class _RawRegression(LogisticRegression):
    """A model that forgot something: its outputs are changed."""

    def __init__(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__()
        self.change = change

    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, np.ndarray]) -> np.ndarray:
        return self.change(super().combine(model, answers, columns))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (np.log, "expected probabilities, 0 or more and adding up to 1 in every row; is a softmax missing?"),
        (lambda v: 2 * v, "expected probabilities"),
        (lambda v: np.where(v == v[3, 0], np.nan, v), "got NaN or infinity in 1 of 200 rows"),
        (lambda v: v[:, :2], "expected 200 x 3 scores"),
    ],
)
def test_outputs_that_are_no_probabilities_are_refused(change: Callable[[np.ndarray], np.ndarray], words: str) -> None:
    federation = split_at_random(made_table(), 3, np.random.default_rng(0))
    with pytest.raises(BadInput, match=re.escape(words)):
        transcript(_RawRegression(change), federation)


def test_wrong_settings_are_one_sentence() -> None:
    with pytest.raises(BadInput, match="did you mean 'depth'"):
        protocol_named("decision_tree", dept=3)
    with pytest.raises(BadInput, match="expected a whole number from 1 to 14, got 0"):
        protocol_named("decision_tree", depth=0)
    with pytest.raises(BadInput, match="did you mean 'random_forest'"):
        protocol_named("random_forrest")
