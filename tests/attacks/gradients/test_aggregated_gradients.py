"""What the server learns of masked uploads, whose sum over workers is all it opens; and where it does not know."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from torch import nn

from plumbob.attacks.base import Guess
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.defences import defence_named
from plumbob.federation import split_at_random
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from plumbob.trust import Trust
from tests.worlds import built_in

CODE = Trust(code=True)  # networks of these tests are code of another package

HERE = __name__
ROWS = 40


def chain(activation: type[nn.Module], shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(int(np.prod(shape)), 16), activation(), nn.Linear(16, outputs), activation()
    )


tanh, sigmoid, gelu = (partial(chain, kind) for kind in (nn.Tanh, nn.Sigmoid, nn.GELU))


def guessed(defence: str = "secure_aggregation", bits: int = 32, **settings: object) -> tuple[Guess, float]:
    """The guess, and the share of cells within 1 % of their column's range."""
    federation = split_at_random(built_in("breast"), 15, np.random.default_rng(0))
    given = {"secure_aggregation": {"bits": bits}} if "+" in defence else {"bits": bits} if "secure" in defence else {}
    choice = {"width": 16, "outputs": 4, "batch_size": 5} | settings
    protocol = defence_named(defence, **given).protect(SplitTraining(**choice))
    others = federation.rows(np.arange(ROWS, 2 * ROWS))
    log = protocol.trusting(CODE).train(federation.rows(np.arange(ROWS)), others, np.random.default_rng(0))
    view = cut(log, THREATS["coordinator"], CODE)
    guess = GradientPeeling().run(view, np.random.default_rng(0))
    assert guess.values is not None
    return guess, float(np.mean(np.abs(guess.values - truth_of(log, view).values) < 0.01))


@pytest.mark.parametrize("network", ["auto", f"{HERE}:tanh", f"{HERE}:sigmoid"])
def test_sums_open_where_values_tell_slopes(network: str) -> None:
    guess, right = guessed(network=network)
    assert right >= 0.95
    assert not guess.untried


@pytest.mark.parametrize("settings", [{"network": f"{HERE}:gelu"}, {"top": "sum"}, {"top": "mlp"}])
def test_sums_that_do_not_open_are_not_known(settings: dict[str, object]) -> None:
    """Labels still are: the top network's gradients are nobody's sum."""
    guess, _ = guessed(**settings)
    assert "sums over workers are opened only where" in guess.untried
    assert guess.labels is not None
    assert (guess.labels >= 0).any()


@pytest.mark.parametrize("defence", ["secure_aggregation", "quantised_gradients", "dp_gradients"])
def test_parameters_that_move_are_not_taken_for_still_ones(defence: str) -> None:
    guess, _ = guessed(defence, optimizer="sgd", learning_rate=1.0)
    assert "parameters move" in guess.untried


@pytest.mark.parametrize("defence", ["secure_aggregation", "quantised_gradients"])
def test_parameters_that_hardly_move_are(defence: str) -> None:
    assert not guessed(defence, optimizer="sgd", learning_rate=1e-7)[0].untried


def test_a_second_defence_below_masks_is_not_known() -> None:
    assert "second defence" in guessed("sparse_gradients+secure_aggregation")[0].untried


def test_the_rounding_of_fixed_point_is_weighed() -> None:
    """Units count as alive only where they are more so than rounding."""
    fine, right = guessed(bits=20)
    assert right >= 0.95
    assert not fine.untried
    coarse, right = guessed(bits=12)
    assert right >= 0.15
    assert "fixed point" in coarse.untried
