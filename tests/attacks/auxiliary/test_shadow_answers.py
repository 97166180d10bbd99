"""Shadow answers: stand-ins fitted to the answers about auxiliary rows, and solved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.attacks.auxiliary.shadow_answers import (
    ShadowAnswers,
    first_weights,
    slopes_of_weights,
    weights_of,
    with_weights,
)
from plumbob.threats import AuxiliaryRows, Schema, Threat
from plumbob.views import AUXILIARY_ANSWERS
from tests.attacks.scores.test_answer_solving import seen


def black_box(rows: int) -> Threat:
    return Threat("b", "", (Schema(), AuxiliaryRows(rows)))


@pytest.mark.parametrize(("hidden", "rows"), [((3,), 3), ((3, 2), 3)])
def test_a_linear_part_is_known_from_as_many_rows_as_columns(hidden: tuple[int, ...], rows: int) -> None:
    view, truth = seen(hidden, black_box(rows), layers=0)
    guess = ShadowAnswers().run(view, np.random.default_rng(0)).values
    assert guess == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("hidden", [(3,), (2, 2)])
def test_networks_are_fitted_and_solved(hidden: tuple[int, ...]) -> None:
    view, truth = seen(hidden, black_box(100), width=4)
    guess = attack_named("shadow_answers").run(view, np.random.default_rng(0)).values
    assert guess is not None
    assert (np.abs(guess - truth).max(axis=1) < 1e-2).mean() > 0.9


def test_too_few_rows_are_a_guess_all_the_same() -> None:
    view, truth = seen((3,), black_box(4))
    guess = ShadowAnswers(rounds=30, fits=1).run(view, np.random.default_rng(0)).values
    assert guess is not None
    assert np.isfinite(guess).all()
    assert ((guess - truth) ** 2).mean() < 0.2


def test_slopes_of_weights_are_those_of_the_outputs() -> None:
    rng = np.random.default_rng(0)
    for sizes in ((3, 4, 2), (2, 3, 3, 2)):
        model, x, step = first_weights(sizes, "tanh", rng), rng.random((5, sizes[0])), 1e-6
        flat = weights_of(model)
        for j in range(len(flat)):
            moved = [with_weights(model, flat + sign * step * np.eye(len(flat))[j]).outputs(x) for sign in (1, -1)]
            assert slopes_of_weights(model, x)[:, :, j] == pytest.approx((moved[0] - moved[1]) / (2 * step), abs=1e-6)


def test_without_the_grant_the_answers_about_other_rows_are_not_in_the_view() -> None:
    granted, _ = seen((3,), black_box(10))
    assert granted.notes[f"{AUXILIARY_ANSWERS}p0"].shape == (10, 4)
    bare, _ = seen((3,), Threat("b", "", (Schema(),)))
    assert not bare.notes
    with_coordinator, _ = seen((3,), black_box(10), coordinator=True)
    assert not with_coordinator.notes
    assert "coordinator" in ShadowAnswers().run(replace(granted, notes={}), np.random.default_rng(0)).untried
