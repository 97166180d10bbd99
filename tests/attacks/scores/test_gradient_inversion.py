"""GIA: the minimum it looks for, and that rows do not feel each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from plumbob.attacks.scores.equation_solving import EquationSolving
from plumbob.attacks.scores.gradient_inversion import GradientInversion, InversionLoss, distances
from plumbob.errors import BadInput
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, THREATS, View, cut
from tests.worlds import made_table, world

PROTOCOLS = GradientInversion.protocols


def guess(view: View, **settings) -> np.ndarray:
    values = GradientInversion.preset("fast", **settings).run(view, np.random.default_rng(0)).values
    assert values is not None
    return values


def part(view: View, rows: slice) -> View:
    """The same view of some rows only."""
    messages = [m for m in view.messages if m.name != "scores"]
    scores = next(m for m in view.messages if m.name == "scores")
    return replace(
        view, own=view.own[rows], messages=(*messages, replace(scores, payload=view.received("scores")[rows]))
    )


def scores_of(view: View, values: np.ndarray) -> np.ndarray:
    from plumbob.protocols.scores.logistic_regression import LinearModel
    from plumbob.protocols.scores.neural_network import Network
    from plumbob.protocols.scores.split_models import SplitModel

    kinds = {"logistic_regression": LinearModel, "neural_network": Network, "split_models": SplitModel}
    kind = kinds[view.protocol]
    assert kind is not None
    rows = np.zeros((len(values), len(view.known) + len(view.unknown)))
    rows[:, view.known], rows[:, view.unknown] = view.own, values
    return kind.from_arrays(view.model or {}).scores(rows)


@pytest.mark.parametrize("loss", ["mse", "kld"])
@pytest.mark.parametrize(("unknown", "classes"), [(1, 2), (2, 3), (3, 4), (2, 5)])
def test_agrees_with_equation_solving_where_the_answer_is_unique(
    loss: InversionLoss, unknown: int, classes: int
) -> None:
    log = world(table=made_table(classes=classes), unknown=unknown)
    view = cut(log, LUO2021)
    solved = EquationSolving().run(view, np.random.default_rng(0)).values
    assert guess(view, loss=loss) == pytest.approx(solved, abs=1e-6)
    assert guess(view, loss=loss) == pytest.approx(truth_of(log, view).values, abs=1e-6)


def test_recovers_what_a_network_per_party_determines() -> None:
    log = world("split_models", unknown=2)
    view = cut(log, LUO2021)
    assert guess(view) == pytest.approx(truth_of(log, view).values, abs=1e-6)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("settings", [{}, {"rate": 0.001, "steps": 200, "finish": 0}, {"loss": "kld"}])
def test_all_rows_at_once_are_each_row_by_itself(protocol: str, settings: dict[str, object]) -> None:
    """For networks the last rounds of Gauss-Newton stop far from exact fits; Adam alone is compared there."""
    if protocol == "neural_network":
        settings = settings | {"finish": 0}
    view = part(cut(world(protocol, unknown=5), LUO2021), slice(0, 6))
    together = guess(view, **settings)
    alone = np.vstack([guess(part(view, slice(i, i + 1)), **settings) for i in range(6)])
    assert together == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("protocol", ["logistic_regression", "split_models"])
def test_the_guess_has_the_scores_that_were_seen(protocol: str) -> None:
    view = cut(world(protocol, unknown=5), LUO2021)
    assert scores_of(view, guess(view)) == pytest.approx(view.received("scores"), abs=1e-4)


def test_the_papers_search_gets_closer_with_every_round() -> None:
    view = cut(world("split_models", unknown=4), LUO2021)
    seen = view.received("scores")
    far, mid, near = (
        np.mean((scores_of(view, guess(view, rate=0.001, steps=steps, finish=0)) - seen) ** 2)
        for steps in (0, 300, 1200)
    )
    assert near < mid < far


def published(view: View, **settings) -> np.ndarray:
    values = GradientInversion(**settings).run(view, np.random.default_rng(0)).values
    assert values is not None
    return values


def test_the_published_search_stays_in_the_box() -> None:
    view = part(cut(world("split_models", unknown=4), LUO2021), slice(0, 20))
    held, free = (published(view, steps=400, rate=0.01, box=box) for box in (True, False))
    assert free.min() < 0
    assert ((held >= 0) & (held <= 1)).all()


def test_rows_that_have_arrived_are_left_where_they_are() -> None:
    view = part(cut(world(unknown=2), LUO2021), slice(0, 12))
    to_the_end, first_look = published(view, steps=150, until=0.0), published(view, steps=150, until=1e9)
    assert np.array_equal(first_look, published(view, steps=50, until=0.0))
    some = published(view, steps=150, until=3e-3)
    left = np.abs(some - to_the_end).max(axis=1) < 1e-12
    assert left.any()
    assert not left.all()


def test_withheld_rows_stay_at_the_start() -> None:
    view = cut(world(), LUO2021)
    scores = next(m for m in view.messages if m.name == "scores")
    payload = np.array(scores.payload)
    payload[3] = np.nan
    others = [m for m in view.messages if m.name != "scores"]
    withheld = guess(replace(view, messages=(*others, replace(scores, payload=payload))))
    assert np.array_equal(withheld[3], np.zeros(len(view.unknown)))
    assert np.delete(withheld, 3, axis=0) == pytest.approx(np.delete(guess(view), 3, axis=0), abs=1e-5)


@pytest.mark.parametrize("loss", ["mse", "kld"])
def test_distances_are_zero_at_the_seen_scores_and_positive_elsewhere(loss: InversionLoss) -> None:
    logits = torch.tensor(np.random.default_rng(0).normal(size=(5, 4)))
    seen = torch.softmax(logits, dim=1)
    assert distances(logits, seen, loss).numpy() == pytest.approx(np.zeros(5), abs=1e-12)
    assert (distances(logits.flip(0), seen, loss)[[0, 1, 3, 4]] > 1e-4).all()


def test_rounded_scores_give_finite_guesses() -> None:
    view = cut(world(), LUO2021)
    scores = next(m for m in view.messages if m.name == "scores")
    for digits in (0, 1):
        rounded = replace(view, messages=(replace(scores, payload=scores.payload.round(digits)),))
        assert np.isfinite(guess(rounded)).all()
        assert np.isfinite(guess(rounded, loss="kld")).all()


def test_the_model_is_needed() -> None:
    with pytest.raises(BadInput, match="white box"):
        GradientInversion().run(cut(world(), THREATS["active-black-box"]), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"loss": "l1"}, "'mse' or 'kld'"), ({"steps": -1}, ">= 0, got -1"), ({"rate": 0.0}, "above 0, got 0.0")],
)
def test_wrong_settings_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        GradientInversion(**settings)
