"""Generative regression: Algorithm 2 to the letter where asked for, better than the papers' guesses, blind to the truth."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from plumbob.attacks._common.differentiable_models import logits_of
from plumbob.attacks.scores.generative_regression import GenerativeRegression, forward, fresh, surrogate
from plumbob.data import registry
from plumbob.errors import BadInput
from plumbob.federation import Table
from plumbob.protocols.shared.trees import Forest
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, Threat, View, cut
from tests.worlds import built_in, made_table, world


def fast(**settings: Any) -> GenerativeRegression:
    return GenerativeRegression.preset("fast", **settings)


QUICK = fast(epochs=10, steps=20)


def run(view: View, attack: GenerativeRegression = QUICK, seed: int = 5) -> np.ndarray:
    values = attack.run(view, np.random.default_rng(seed)).values
    assert values is not None
    return values


def with_scores(view: View, change) -> View:
    """The same view, but with other scores in its messages."""
    messages = [replace(m, payload=change(np.array(m.payload))) if m.name == "scores" else m for m in view.messages]
    return replace(view, messages=tuple(messages))


def margin(table: Table, protocol: str, attack: GenerativeRegression) -> tuple[float, float]:
    """Error over that of the better of the papers' random guesses, and the R2, at 40 % unknown columns."""
    log = world(protocol, table, 0.4)
    view = cut(log, LUO2021)
    judged = score(attack.run(view, np.random.default_rng(1)), truth_of(log, view), view, np.random.default_rng(0))
    return judged.error / min(judged.baselines["uniform"], judged.baselines["normal"]), judged.r2


@pytest.mark.parametrize("protocol", ["logistic_regression", "neural_network"])
@pytest.mark.parametrize(("data", "limit"), [("breast", 0.9), ("digits", 0.7)])
def test_below_the_papers_random_guesses(data: str, limit: float, protocol: str) -> None:
    assert margin(built_in(data), protocol, fast(steps=200))[0] < limit


@pytest.mark.needs_data("drive")
def test_below_the_papers_random_guesses_on_drive() -> None:
    table = registry.load("drive")
    table = table.rows(np.sort(np.random.default_rng(0).permutation(len(table.values))[:4_000]))
    assert margin(table, "neural_network", fast(steps=200))[0] < 0.7


def test_individuals_are_learnt_where_columns_hang_together() -> None:
    assert margin(made_table(rows=2_000), "neural_network", fast(steps=300))[1] > 0.2


def test_noise_alone_is_worse_than_noise_and_known_columns() -> None:
    table = made_table(rows=2_000)
    full, blind = (margin(table, "neural_network", fast(steps=200, known=k))[0] for k in (True, False))
    assert full < 0.8 * blind


def test_without_a_generator_the_guess_leaves_the_box() -> None:
    view = cut(world(), LUO2021)
    free = run(view, fast(steps=200, generator=False))
    inside = run(view)
    assert free.min() < 0 or free.max() > 1
    assert inside.min() >= 0
    assert inside.max() <= 1


def test_the_constraint_lowers_the_spread_of_the_guess() -> None:
    view = cut(world(unknown=7), LUO2021)
    held, free = (run(view, fast(steps=100, constraint=c)).var(axis=0).sum() for c in (True, False))
    assert held < free


def test_training_lowers_the_distance_to_the_observed_scores() -> None:
    view = cut(world("neural_network"), LUO2021)
    attack = fast(epochs=40, batch=64)
    assert view.model is not None
    logits = logits_of(view.protocol, view.model)
    rows = torch.empty(len(view.own), len(view.known) + len(view.unknown))
    rows[:, view.known] = torch.tensor(view.own, dtype=torch.float32)
    distances = []
    for guess in attack.progress(view, np.random.default_rng(5)):
        rows[:, view.unknown] = torch.tensor(guess(), dtype=torch.float32)
        distances.append(float(((torch.softmax(logits(rows), dim=1).numpy() - view.received("scores")) ** 2).mean()))
    assert distances[-1] < 0.7 * distances[0]


def test_one_published_step_is_algorithm_2() -> None:
    """One batch of 50 rows, written out anew: torch's modules, a sum over rows, the authors' weight of the variance."""
    view = cut(world("neural_network", made_table(rows=100)), LUO2021)
    attack = GenerativeRegression(epochs=1)
    found = run(view, attack)
    random = torch.Generator().manual_seed(int(np.random.default_rng(5).integers(2**62)))
    known, unknown = len(view.known), len(view.unknown)
    sizes = (known + unknown, 600, 200, 100, unknown)
    layers: list[torch.nn.Module] = []
    for i in range(4):
        layer, bound = torch.nn.Linear(sizes[i], sizes[i + 1]), 1 / math.sqrt(sizes[i])
        with torch.no_grad():
            layer.weight.uniform_(-bound, bound, generator=random)
            layer.bias.uniform_(-bound, bound, generator=random)
        layers += [layer, torch.nn.LayerNorm(sizes[i + 1]), torch.nn.ReLU()] if i < 3 else [layer, torch.nn.Sigmoid()]
    network = torch.nn.Sequential(*layers)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)
    assert view.model is not None
    joint = logits_of(view.protocol, view.model)
    own, scores = (torch.tensor(a, dtype=torch.float32) for a in (view.own, view.received("scores")))
    order = torch.randperm(len(own), generator=random)
    made = network(torch.cat([own[order], torch.randn(len(own), unknown, generator=random)], dim=1))
    full = torch.empty(len(own), known + unknown)
    full[:, view.known] = own[order]
    full = full.index_copy(1, torch.tensor(view.unknown), made)
    errors = ((torch.softmax(joint(full), dim=1) - scores[order]) ** 2).sum()
    spread = sum(made[:, j].var(correction=0) for j in range(unknown))
    ((errors + 0.25 * len(own) / 64 * spread) / len(own)).backward()  # Adam's steps do not feel the scale
    optimiser.step()
    with torch.no_grad():
        wanted = network(torch.cat([own, torch.randn(len(own), unknown, generator=random)], dim=1))
    assert len(own) == 50
    assert found == pytest.approx(wanted.double().numpy(), abs=2e-6)


@pytest.mark.parametrize("protocol", ["logistic_regression", "neural_network", "random_forest"])
def test_the_guess_follows_the_observed_scores(protocol: str) -> None:
    """Other scores, other guess; for a forest this says that the forest's real scores are what is matched."""
    view = cut(world(protocol), LUO2021)
    turned = with_scores(view, lambda scores: np.roll(scores, 1, axis=1))
    assert np.abs(run(view) - run(turned)).max() > 1e-3


def test_the_surrogate_votes_like_the_forest() -> None:
    view = cut(world("random_forest"), LUO2021)
    assert view.model is not None
    forest = Forest.from_arrays(view.model)
    stand_in = surrogate(forest, torch.rand(50, 3), 5, 60, torch.Generator().manual_seed(0), near=False)
    rows = np.random.default_rng(3).random((500, 8))
    votes = forest.scores(rows)
    off = torch.softmax(stand_in(torch.tensor(rows, dtype=torch.float32)), dim=1).numpy() - votes
    assert (off**2).sum() < 0.3 * ((votes - votes.mean(axis=0)) ** 2).sum()


def test_withheld_rows_are_guessed_like_others_and_teach_nothing() -> None:
    view = cut(world(), LUO2021)

    def withhold(scores: np.ndarray) -> np.ndarray:
        scores[::2] = np.nan
        return scores

    guess = run(with_scores(view, withhold))
    assert np.isfinite(guess).all()
    nothing = run(with_scores(view, lambda scores: np.full_like(scores, np.nan)))
    assert np.isfinite(nothing).all()


@pytest.mark.parametrize("settings", [{}, {"noise": False}, {"known": False}, {"generator": False}])
def test_no_known_columns_are_survived(settings: dict[str, bool]) -> None:
    view = cut(world(), LUO2021)
    assert view.model is not None
    rest = {name: array[view.unknown] if name == "weights" else array for name, array in view.model.items()}
    count = len(view.unknown)
    bare = replace(view, own=view.own[:, :0], known=view.known[:0], unknown=np.arange(count), model=rest)
    guess = run(bare, fast(epochs=2, **settings))
    assert guess.shape == (len(view.own), count)
    assert np.isfinite(guess).all()


def test_neither_global_seeds_nor_threads_are_touched() -> None:
    view = cut(world(), LUO2021)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    run(view)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"epochs": 0}, "epochs >= 1, got 0"), ({"rate": 0.0}, "rate above 0"), ({"schedule": "x"}, "got 'x'")],
)
def test_wrong_settings_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        GenerativeRegression(**settings)  # type: ignore[arg-type]  # wrong on purpose


def test_a_view_without_the_model_is_refused() -> None:
    view = cut(world(), Threat("black box", ""))
    with pytest.raises(BadInput, match="white box"):
        QUICK.run(view, np.random.default_rng(0))


def test_layers_have_the_papers_sizes() -> None:
    layers = fresh((5, 600, 200, 100, 3), torch.Generator().manual_seed(0), normalised=True)
    assert [tuple(layer[0].shape) for layer in layers] == [(600, 5), (200, 600), (100, 200), (3, 100)]
    assert [len(layer) for layer in layers] == [4, 4, 4, 2]
    assert forward(layers, torch.zeros(2, 5)).shape == (2, 3)
