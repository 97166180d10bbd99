"""ESA: the worked example, exactness below the threshold, and the geometry behind the bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks.scores.equation_solving import EquationSolving, equations, linear_model
from plumbob.errors import BadInput
from plumbob.federation import Column, Federation, Party, split_at_random
from plumbob.papers.luo2021.equations_and_paths import printed_scores, toy_view
from plumbob.protocols import predict
from plumbob.protocols.base import column_positions
from plumbob.protocols.scores.logistic_regression import LinearModel, LogisticRegression
from plumbob.protocols.scores.split_models import SplitModels
from plumbob.scoring.metrics import sharp_bound
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, THREATS, cut
from tests.worlds import made_table, world

RNG = np.random.default_rng(0)


def guess(view) -> np.ndarray:
    values = EquationSolving().run(view, RNG).values
    assert values is not None
    return values


def test_example_1_from_the_printed_scores() -> None:
    """The printed scores have three digits; half a unit of a' moves the answer by (1.8, 0.023)."""
    assert guess(toy_view())[0] == pytest.approx([8011.8, 3.046], abs=1.8)
    assert guess(toy_view())[0, 1] == pytest.approx(3.046, abs=0.023)


def test_example_1_from_the_printed_differences() -> None:
    """From a' = (2.334, 0.539) the first answer agrees to its last digit; the paper's second follows from its first."""
    deposit, shopping = guess(toy_view(printed_scores()))[0]
    assert round(deposit, 1) == 8011.8
    assert (2.434 - 0.0003 * 8011.8) / 0.01 == pytest.approx(3.046)
    assert shopping == pytest.approx(3.046, abs=0.001)


def test_example_1_has_the_printed_equations() -> None:
    system = equations(toy_view())
    assert system.left == pytest.approx(np.array([[0.0003, 0.01], [-0.0002, 0.03]]))
    own_part = np.array([0.02 * 25 - 0.0003 * 2000, 0.05 * 25 + 0.0004 * 2000])
    assert (system.right[0] + own_part).round(3) == pytest.approx([2.334, 0.539])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(1, 6), st.integers(1, 40), st.integers(0, 2**32 - 1), st.data())
def test_exact_for_random_models_up_to_the_threshold(
    classes: int, known: int, rows: int, seed: int, data: st.DataObject
) -> None:
    unknown = data.draw(st.integers(1, classes - 1))
    rng = np.random.default_rng(seed)
    columns = known + unknown
    model = LinearModel(rng.normal(size=(columns, classes)), rng.normal(size=classes))
    values = rng.random((rows, columns))
    parties = (
        Party("active", tuple(Column(f"a{i}") for i in range(known)), values[:, :known]),
        Party("passive", tuple(Column(f"p{i}") for i in range(unknown)), values[:, known:]),
    )
    federation = Federation(parties, "active", np.zeros(rows, dtype=np.int64), tuple(map(str, range(classes))))
    view = cut(predict(LogisticRegression(), model, federation, federation), LUO2021)
    condition = np.linalg.cond(equations(view).left)
    assert np.abs(guess(view) - values[:, known:]).max() < 1e-12 * condition**2 + 1e-9 * condition


@pytest.mark.parametrize("unknown", [3, 5, 7])
def test_above_the_threshold_the_answer_is_the_projection_of_the_truth(unknown: int) -> None:
    log = world(unknown=unknown)
    view = cut(log, LUO2021)
    truth = truth_of(log, view).values
    left = equations(view).left
    assert guess(view) == pytest.approx(truth @ (np.linalg.pinv(left) @ left).T, abs=1e-9)
    assert np.mean((guess(view) - truth) ** 2) <= sharp_bound(truth)


def test_two_classes_give_one_equation() -> None:
    from tests.worlds import made_table

    view = cut(world(table=made_table(classes=2)), LUO2021)
    assert equations(view).left.shape[0] == 1


def test_scores_of_zero_and_one_do_not_break_the_logarithm() -> None:
    view = toy_view((1.0, 0.0, 0.0))
    assert np.isfinite(guess(view)).all()


def test_the_model_is_needed() -> None:
    with pytest.raises(BadInput, match="white box"):
        EquationSolving().run(cut(world(), THREATS["active-black-box"]), RNG)


@pytest.mark.parametrize("classes", [2, 4])
def test_linear_parts_of_split_models_are_the_same_equations(classes: int) -> None:
    """jiang2022's rival: exact up to classes - 1 columns, and to the same values as on the joint model."""
    federation = split_at_random(made_table(classes=classes), classes - 1, np.random.default_rng(0))
    protocol, blocks = SplitModels(layers=0), list(column_positions(federation).values())
    model = protocol.fit(federation.values, federation.label, classes, np.random.default_rng(0), blocks)
    view = cut(predict(protocol, model, federation, federation), THREATS["active"])
    guess = EquationSolving().run(view, np.random.default_rng(0)).values
    assert guess == pytest.approx(federation["passive"].values, abs=1e-6)
    joint = replace(view, protocol="logistic_regression", model=linear_model(view).arrays())
    assert guess == pytest.approx(EquationSolving().run(joint, np.random.default_rng(0)).values)


def test_networks_are_not_solved_as_if_they_were_linear() -> None:
    view = cut(world("split_models"), THREATS["active"])
    made = EquationSolving().run(view, np.random.default_rng(0))
    assert "linear" in made.untried
    able = [EquationSolving().why_not_here(SplitModels(layers=n), THREATS["active"]) for n in (0, 1)]
    assert able[0] is None
    assert "networks" in str(able[1])
