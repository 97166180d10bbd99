"""Hidden share: one hidden column in order, levels exactly, and nothing where own columns explain the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from plumbob.attacks import attack_named
from plumbob.federation import FloatArray
from plumbob.threats import THREATS, View, cut
from tests.worlds import made_table, world

RNG = np.random.default_rng(3)
OWN = RNG.random((300, 4))


def view_of(hidden: FloatArray, step: float = 0.0, weight: float = 1.5) -> View:
    """Scores of a logistic regression on four own columns and a hidden one; nobody granted the model."""
    linear = OWN @ [2.0, -1.0, 0.5, 1.0] + weight * hidden - 1.0
    told = 1 / (1 + np.exp(-linear))
    view = View.from_arrays(own=OWN, scores=np.stack([1 - told, told], axis=1), unknown=1)
    return replace(view, steps=np.array([step]))


def guess(view: View) -> FloatArray:
    values = attack_named("hidden_share").run(view, np.random.default_rng(0)).values
    assert values is not None
    return values[:, 0]


@pytest.mark.parametrize("weight", [1.5, -1.5])
def test_one_hidden_column_is_in_order_up_to_its_direction(weight: float) -> None:
    hidden = RNG.random(300)
    assert abs(spearmanr(guess(view_of(hidden, weight=weight)), hidden).statistic) > 0.97


@pytest.mark.parametrize(("levels", "tied"), [(1, 0.7), (4, 0.1)])
def test_levels_that_go_with_own_columns_are_found_exactly(levels: int, tied: float) -> None:
    hidden = np.rint(levels * np.clip(tied * OWN[:, 0] + (1.2 - tied) * RNG.random(300) - 0.1, 0, 1)) / levels
    found = guess(view_of(hidden, 1 / levels))
    assert np.array_equal(found, hidden) or np.allclose(found, 1 - hidden)


def test_a_hidden_column_without_weight_leaves_nothing() -> None:
    assert np.ptp(guess(view_of(RNG.random(300), weight=0.0))) == 0


def test_one_column_behind_outputs_of_split_training_is_in_order() -> None:
    log = world("split_training", made_table(rows=120), unknown=1)
    found = guess(cut(log, THREATS["active-training"]))
    seen = found != 0.5
    assert abs(spearmanr(found[seen], log.sealed("passive")["columns"][seen, 0]).statistic) > 0.9
