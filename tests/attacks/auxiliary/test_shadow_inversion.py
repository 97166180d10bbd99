"""Shadow inversion: what auxiliary rows and their scores tell of a model that is not seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plumbob.attacks.auxiliary.shadow_inversion import ShadowInversion, linear_shadow, outputs_of, own_parts, threshold
from plumbob.attacks.scores.gradient_inversion import GradientInversion
from plumbob.errors import BadInput
from plumbob.federation import split_at_random
from plumbob.protocols import predict
from plumbob.protocols.base import column_positions
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.protocols.scores.split_models import SplitModels
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, AuxiliaryRows, Schema, Threat, View, WhiteBox, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table, transcript, world


def black_box(rows: int) -> Threat:
    return Threat("black box", "", (AuxiliaryRows(rows),))


def linear(unknown: int = 5, classes: int = 4) -> Transcript:
    federation = split_at_random(made_table(classes=classes), unknown, np.random.default_rng(0))
    return transcript(SplitModels(layers=0), federation)


def guess(view: View, **settings) -> np.ndarray:
    values = ShadowInversion.preset("fast", **settings).run(view, np.random.default_rng(0)).values
    assert values is not None
    return values


def fitted(view: View, bias: bool) -> tuple[np.ndarray, np.ndarray]:
    assert view.auxiliary is not None
    assert view.auxiliary_scores is not None
    offsets = outputs_of(own_parts(view), view.auxiliary[:, view.known])
    return linear_shadow(view.auxiliary[:, view.unknown], view.auxiliary_scores, offsets, bias)


def test_auxiliary_scores_are_the_federations_answers_on_those_rows() -> None:
    log = linear()
    view = cut(log, black_box(9))
    white = cut(log, Threat("t", "", (WhiteBox(),)))
    assert view.model is None
    assert view.auxiliary is not None
    from plumbob.protocols.scores.split_models import SplitModel

    expected = SplitModel.from_arrays(white.model or {}).scores(view.auxiliary)
    assert view.auxiliary_scores == pytest.approx(expected)
    assert white.auxiliary_scores is None


def test_auxiliary_scores_pass_the_same_release_as_all_others() -> None:
    federation = split_at_random(made_table(), 3, np.random.default_rng(0))
    protocol = LogisticRegression()
    model = protocol.fit(federation.values, federation.label, 3, np.random.default_rng(0))
    view = cut(predict(protocol, model, federation, federation, release=lambda s, rows: s.round(1)), black_box(20))
    assert view.auxiliary_scores is not None
    assert view.auxiliary_scores == pytest.approx(view.auxiliary_scores.round(1), abs=1e-12)
    assert view.auxiliary_scores != pytest.approx(model.scores(federation.values[:20]), abs=1e-6)


def test_verification_judges_the_auxiliary_rows_as_if_they_were_predicted() -> None:
    """The same rows in both places are withheld or not alike; with two unknown columns and three classes all are."""
    from plumbob.defences.scores.verification import Verification

    for unknown, some in ((2, False), (5, True)):
        federation = split_at_random(made_table(rows=40), unknown, np.random.default_rng(0))
        protocol = LogisticRegression()
        model = protocol.fit(federation.values, federation.label, 3, np.random.default_rng(0))
        release = Verification().release(protocol, model, federation)
        view = cut(predict(protocol, model, federation, federation, release=release), black_box(40))
        assert view.auxiliary_scores == pytest.approx(view.received("scores"), abs=1e-12, nan_ok=True)
        assert np.isfinite(view.auxiliary_scores).any() == some
        assert np.isfinite(guess(view)).all()


def test_verification_withholds_a_row_that_is_asked_about_alone() -> None:
    from plumbob.defences.scores.verification import Verification

    federation = split_at_random(made_table(rows=40), 2, np.random.default_rng(0))
    protocol = LogisticRegression()
    model = protocol.fit(federation.values, federation.label, 3, np.random.default_rng(0))
    release = Verification().release(protocol, model, federation)
    assert release is not None
    one = federation.rows(np.array([3]))
    assert np.isnan(release(model.scores(one.values), one)).all()


def test_auxiliary_scores_survive_saving(tmp_path: Path) -> None:
    view = cut(linear(), black_box(6))
    view.save(tmp_path / "view.zip")
    assert np.array_equal(View.load(tmp_path / "view.zip").auxiliary_scores, view.auxiliary_scores)


@pytest.mark.parametrize("classes", [2, 4])
def test_tau_rows_give_the_weights_up_to_what_scores_can_tell(classes: int) -> None:
    """Eq 21: d_pas rows; softmax does not show a shift common to all classes."""
    log = linear(5, classes)
    view = cut(log, black_box(threshold(5, classes)))
    weights, _ = fitted(view, bias=False)
    model = cut(log, LUO2021).model
    assert model is not None
    true = model["1/w0"]
    assert weights == pytest.approx(true - true.mean(axis=1, keepdims=True), abs=1e-6)


def test_one_row_less_does_not() -> None:
    log = linear()
    weights, _ = fitted(cut(log, black_box(4)), bias=False)
    true = (cut(log, LUO2021).model or {})["1/w0"]
    assert np.abs(weights - (true - true.mean(axis=1, keepdims=True))).max() > 1e-3


def test_the_coordinators_bias_takes_one_row_more() -> None:
    log = world(unknown=4)
    weights, bias = fitted(cut(log, black_box(5)), bias=True)
    model = cut(log, LUO2021).model or {}
    true = model["weights"][cut(log, LUO2021).unknown]
    assert weights == pytest.approx(true - true.mean(axis=1, keepdims=True), abs=1e-6)
    assert bias == pytest.approx(model["bias"] - model["bias"].mean(), abs=1e-6)


def test_at_tau_a_linear_shadow_guesses_like_the_white_box() -> None:
    log = linear(3, 4)  # three columns, three equations
    values = guess(cut(log, black_box(3)))
    assert values == pytest.approx(
        GradientInversion.preset("fast").run(cut(log, LUO2021), np.random.default_rng(0)).values, abs=1e-5
    )
    assert values == pytest.approx(truth_of(log, cut(log, LUO2021)).values, abs=1e-5)


def test_the_model_is_not_used_even_if_granted() -> None:
    log = linear()
    both = Threat("t", "", (WhiteBox(), Schema(), AuxiliaryRows(8)))
    assert np.array_equal(guess(cut(log, both)), guess(replace(cut(log, both), model=None)))


def test_more_rows_make_a_better_network_shadow() -> None:
    """Errors of three worlds: the shadow from 100 rows is closer to the truth than that from 4."""
    few, many = [], []
    for seed in range(3):
        log = world("split_models", made_table(seed=seed), unknown=2, seed=seed)
        truth = truth_of(log, cut(log, LUO2021)).values
        few.append(np.mean((guess(cut(log, black_box(4)), finish=0) - truth) ** 2))
        many.append(np.mean((guess(cut(log, black_box(100)), finish=0) - truth) ** 2))
    assert np.mean(many) < 0.5 * np.mean(few)


@pytest.mark.parametrize("structure", [(), (8,), (4, 4, 4)])
def test_any_structure_can_be_guessed(structure: tuple[int, ...]) -> None:
    view = cut(world("split_models"), black_box(30))
    assert np.isfinite(guess(view, structure=structure, fitting=50, steps=50)).all()


def test_colluding_parties_use_all_their_parts() -> None:
    from plumbob.federation import split

    table = made_table(classes=4)
    owners = dict(zip("abcd", np.split(np.array(table.names), 4), strict=True))
    federation = split(table, {k: list(v) for k, v in owners.items()}, "b")
    log = transcript(SplitModels(layers=0), federation)
    view = cut(log, Threat("t", "", (AuxiliaryRows(4),), ("d",)))
    assert [len(part.weights[0]) for part in own_parts(view)] == [2, 2]
    true = [(cut(log, LUO2021).model or {})[f"{p}/w0"] for p in (0, 2)]
    stacked = np.vstack(true)
    assert fitted(view, bias=False)[0] == pytest.approx(stacked - stacked.mean(axis=1, keepdims=True), abs=1e-6)
    assert list(column_positions(federation)) == ["a", "b", "c", "d"]


def test_the_threshold_counts_unknown_parameters() -> None:
    assert threshold(24, 4) == 24
    assert threshold(36, 6, (8, 8)) == -(-(36 * 8 + 8 + 8 * 8 + 8 + 8 * 6 + 6) // 6)


def test_rows_and_scores_are_needed() -> None:
    with pytest.raises(BadInput, match="auxiliary rows and their scores"):
        guess(cut(linear(), LUO2021))
    assert "complete rows" in (ShadowInversion().why_not("split_models", LUO2021) or "")
