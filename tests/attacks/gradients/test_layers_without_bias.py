"""First fully connected layers without a bias: exact where the slopes above are known, and said to be untried elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch import nn

from plumbob.attacks.base import Guess
from plumbob.attacks.gradients._network_blocks import chain_of
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.defences import DEFENCES
from plumbob.federation import split_at_random
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from plumbob.trust import Trust
from tests.worlds import made_table

CODE = Trust(code=True)  # networks of these tests are code of another package

HERE = __name__
ROWS = 40


def one(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], 32, bias=False), nn.ReLU(), nn.Linear(32, outputs))


def wide(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """More numbers than are kept in every round whatever the room."""
    return nn.Sequential(nn.Linear(shape[0], 2_500, bias=False), nn.ReLU(), nn.Linear(2_500, outputs))


def none_at_all(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """With one ReLU for all layers."""
    relu = nn.ReLU()
    layers = [nn.Linear(shape[0], 32, bias=False), relu, nn.Linear(32, 24, bias=False), relu]
    return nn.Sequential(nn.Flatten(), nn.Sequential(*layers), nn.Linear(24, outputs, bias=False))


def linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], outputs, bias=False))


def sigmoid(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], 32, bias=False), nn.Sigmoid(), nn.Linear(32, outputs))


class Crossed(nn.Module):
    """Layers that are not defined in the order in which they run."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.last, self.first = nn.Linear(32, outputs), nn.Linear(inputs, 32, bias=False)

    def forward(self, x: object) -> object:
        return self.last(self.first(x).tanh())


def crossed(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return Crossed(shape[0], outputs)


def attacked(network: str, seed: int = 0, defence: str = "", **settings: Any) -> tuple[Transcript, View, Guess]:
    federation = split_at_random(made_table(80, seed=seed), 4, np.random.default_rng(seed))
    protocol = SplitTraining(network=f"{HERE}:{network}", batch_size=5, rounds=2 * ROWS, **settings)
    guarded = DEFENCES[defence]().protect(protocol) if defence else protocol
    rest = federation.rows(np.arange(ROWS, 80))
    log = guarded.trusting(CODE).train(federation.rows(np.arange(ROWS)), rest, np.random.default_rng(seed))
    view = cut(log, THREATS["coordinator"], CODE)
    return log, view, GradientPeeling().run(view, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("top", ["linear", "sum", "mlp"])
@pytest.mark.parametrize("network", ["one", "none_at_all", "linear"])
def test_tables_are_recovered_in_single_precision(network: str, top: str, seed: int) -> None:
    log, view, guess = attacked(network, seed, top=top)
    assert guess.values is not None
    assert np.abs(guess.values - truth_of(log, view).values).max() < 1e-4


@pytest.mark.parametrize(
    ("network", "words"), [("sigmoid", "has no bias, and Sigmoid follows it"), ("crossed", "is no chain")]
)
def test_slopes_that_are_not_known_are_left_alone_and_said(network: str, words: str) -> None:
    log, view, guess = attacked(network)
    assert words in guess.untried
    judged = score(guess, truth_of(log, view), view, np.random.default_rng(0))
    assert all(column.claims == 0 for column in judged.columns)
    assert judged.label_accuracy == 1.0  # which the top network gives away all the same


def test_changed_gradients_without_a_bias_are_left_alone_and_said() -> None:
    guess = attacked("one", defence="dp_gradients")[2]
    assert "has no bias, and a defence changes its gradients" in guess.untried
    assert guess.values is not None
    assert (guess.values == 0.5).all()


def test_gradients_that_were_kept_in_part_are_said() -> None:
    assert "raise archive_mb" in attacked("wide", archive_mb=1)[2].untried
    log, view, guess = attacked("wide")
    assert guess.values is not None
    assert np.abs(guess.values - truth_of(log, view).values).max() < 1e-4


def test_a_chain_names_a_part_as_often_as_it_runs() -> None:
    made = none_at_all((4,), 2)
    kinds = [type(part).__name__ for _, part in chain_of(made) or []]
    assert kinds == ["Flatten", "Linear", "ReLU", "Linear", "ReLU", "Linear"]
    again = nn.Linear(3, 3)
    assert chain_of(nn.Sequential(again, nn.ReLU(), again)) is None
    assert chain_of(Crossed(4, 2)) is None
