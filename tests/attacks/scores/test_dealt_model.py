"""Dealt model: answers under dealt parts are solved exactly where they are equations enough; sides bound the rest."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.protocols import protocol_named
from plumbob.threats import THREATS, cut
from tests.worlds import made_table, world


@pytest.mark.parametrize("threat", ["coordinator", "corrupted-coordinator"])
def test_the_first_layer_of_a_network_gives_every_hidden_column_away(threat: str) -> None:
    log = world("neural_network", made_table(rows=100))
    view = cut(log, THREATS[threat])
    values = attack_named("dealt_model").run(view, np.random.default_rng(0)).values
    hidden = np.hstack([log.sealed(party)["columns"] for party in log.parties])[:, view.unknown]
    assert values == pytest.approx(hidden, abs=1e-8)


def test_trees_bound_every_cell_by_its_sides() -> None:
    log = world("random_forest", made_table(rows=100))
    view = cut(log, THREATS["corrupted-coordinator"])
    values = attack_named("dealt_model").run(view, np.random.default_rng(0)).values
    assert values is not None
    hidden = log.sealed("passive")["columns"]
    for column, threshold in zip(
        *(log.sealed("coordinator")[f"model/{n}"].ravel() for n in ("feature", "threshold")), strict=True
    ):
        if column in view.unknown:
            place = list(view.unknown).index(column)
            assert np.array_equal(values[:, place] > threshold, hidden[:, place] > threshold)


def test_the_coordinator_alone_names_the_class_that_the_model_predicts() -> None:
    log = world("logistic_regression", made_table(rows=100))
    labels = attack_named("dealt_model").run(cut(log, THREATS["coordinator"]), np.random.default_rng(0)).labels
    scores = next(message.payload for message in log.messages if message.name == "scores")
    assert np.array_equal(labels, scores.argmax(axis=1))


def test_masked_sums_and_answers_that_go_elsewhere_are_said() -> None:
    attack = attack_named("dealt_model")
    masked = protocol_named("logistic_regression", sums="shared")
    assert attack.why_not_here(masked, THREATS["coordinator"]) == "the parties' answers are added up unseen"
    assert attack.why_not_here(protocol_named("split_models", coordinator=False), THREATS["coordinator"])
