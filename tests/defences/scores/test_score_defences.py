"""Rounding, noise, codebook and purifier: the algebra of each release."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks.scores.path_restriction import PathRestriction
from plumbob.defences import NoDefence
from plumbob.defences.scores.codebook import Codebook, encode, make_codebook
from plumbob.defences.scores.dp_scores import DpScores
from plumbob.defences.scores.label_only import LabelOnly
from plumbob.defences.scores.noise import Noise, as_scores
from plumbob.defences.scores.purifier import Purifier, train
from plumbob.defences.scores.randomised_response import RandomisedResponse, respond
from plumbob.defences.scores.rounding import Rounding, round_down, round_to_nearest
from plumbob.defences.scores.verification import Verification, _strangers, imitated, known_branch
from plumbob.errors import BadInput
from plumbob.federation import split
from plumbob.known_defences import KnownNoise, KnownPurifier, KnownRounding
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.threats import LUO2021, THREATS, Threat
from tests.defences.worlds import defended, released, view_of
from tests.worlds import made_table, small

RNG = np.random.default_rng(0)


@given(st.floats(0, 1), st.integers(1, 6))
def test_a_rounded_score_is_below_by_less_than_one_step(score: float, digits: int) -> None:
    down = float(round_down(np.array([[score]]), digits)[0, 0])
    assert -1e-12 <= score - down < 10.0**-digits
    assert down * 10**digits == pytest.approx(round(down * 10**digits), abs=1e-9)


@given(st.floats(0, 1), st.integers(1, 6))
def test_a_score_rounded_to_the_nearest_is_off_by_at_most_half_a_step(score: float, digits: int) -> None:
    near = float(round_to_nearest(np.array([[score]]), digits)[0, 0])
    assert abs(score - near) <= 0.5 * 10.0**-digits * (1 + 1e-9)
    assert near * 10**digits == pytest.approx(round(near * 10**digits), abs=1e-9)


def test_how_scores_are_rounded_is_known_and_down_is_as_it_was() -> None:
    """luo2021 rounds down and jiang2022 to the nearest; the default keeps its identity and what is known of it."""
    down, nearest = Rounding(digits=2), Rounding(digits=2, how="nearest")
    assert down.identified() == "Rounding(digits=2)"
    assert nearest.identified() == "Rounding(digits=2, how='nearest')"
    assert down.known().arrays.keys() == {"rounding/digits", "rounding/on"}
    assert [one.known()[KnownRounding].nearest for one in (down, nearest)] == [None, True]
    plain, told = (released(defended(one)) for one in (NoDefence(), nearest))
    assert np.abs(plain - told).max() <= 0.005 + 1e-12
    assert (told > plain).any()
    assert (told < plain).any()
    with pytest.raises(BadInput, match="'down' or 'nearest', got 'up'"):
        Rounding(how="up")  # type: ignore[arg-type]


@given(st.integers(0, 1000))
def test_a_score_of_three_digits_survives_rounding_to_three(thousandths: int) -> None:
    assert round_down(np.array([thousandths / 1000]), 3)[0] == thousandths / 1000


def test_label_only_of_scores_and_of_withheld_ones() -> None:
    release = LabelOnly().release(LogisticRegression(), None, None)  # type: ignore[arg-type]  # neither is looked at
    assert release is not None
    out = release(np.array([[0.4, 0.6], [np.nan, np.nan]]), None)  # type: ignore[arg-type]  # nor are the rows
    assert out[0].tolist() == [0, 1]
    assert np.isnan(out[1]).all()


@pytest.mark.parametrize("sigma", [0.01, 0.1, 1.0])
def test_noise_has_mean_0_and_the_scale_asked_for(sigma: float) -> None:
    plain = released(defended(NoDefence()))
    noise = (released(defended(Noise(sigma=sigma))) - plain).ravel() / sigma
    count = len(noise)
    assert abs(noise.mean()) < 4 / np.sqrt(count)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / count)


def test_noise_is_fresh_for_every_query_seed_and_model() -> None:
    one, other, again = (released(defended(Noise(seed=seed), seed=0)) for seed in (0, 1, 0))
    assert not np.array_equal(one, other)
    assert np.array_equal(one, again)
    gap = one - released(defended(NoDefence()))
    assert len(np.unique(gap.round(12))) == gap.size
    moved = released(defended(Noise(), seed=5)) - released(defended(NoDefence(), seed=5))
    assert not np.allclose(gap, moved)


@pytest.mark.parametrize("clip", [False, True])
def test_asking_k_times_leaves_noise_of_a_kth_of_the_variance(clip: bool) -> None:
    """Of clipped answers the mean is moved, but their spread shrinks the same way."""
    once, often = (
        np.stack([released(defended(Noise(sigma=0.05, clip=clip, seed=s, repeats=k), rows=60)) for s in range(20)])
        for k in (1, 16)
    )
    ratio = often.var(axis=0, ddof=1).mean() / once.var(axis=0, ddof=1).mean()
    assert ratio == pytest.approx(1 / 16, rel=0.15)


def test_one_question_draws_what_it_always_drew() -> None:
    assert np.array_equal(released(defended(Noise())), released(defended(Noise(repeats=1))))
    assert Noise(repeats=7).known()[KnownNoise].repeats == 7


def test_laplace_noise_has_the_scale_of_the_budget() -> None:
    """Mean absolute noise b = 2 / epsilon, whose own standard deviation is b; of k answers the mean has a kth of the variance."""
    plain = released(defended(NoDefence()))
    for epsilon in (0.1, 10.0):
        noise = (released(defended(DpScores(epsilon=epsilon))) - plain).ravel() * epsilon / 2.0
        assert abs(np.abs(noise).mean() - 1.0) < 4 / np.sqrt(len(noise))
    often = (released(defended(DpScores(epsilon=10.0, repeats=100))) - plain).ravel() * 10.0 / 2.0
    assert often.var() == pytest.approx(2.0 / 100, rel=0.3)


@pytest.mark.parametrize("classes", [2, 5])
def test_a_class_is_named_as_often_as_the_budget_says(classes: int) -> None:
    """p / q = e^epsilon, and no row's answer makes two rows more different than that."""
    label = np.repeat(np.arange(classes), 4_000)
    answers = respond(label, 1.0, classes, np.random.default_rng(0))
    named = np.stack([answers[label == k].mean(axis=0) for k in range(classes)])
    p, q = np.e / (np.e + classes - 1), 1 / (np.e + classes - 1)
    assert named == pytest.approx(np.where(np.eye(classes) > 0, p, q), abs=4 * 0.5 / np.sqrt(4_000))


def test_a_withheld_row_gets_no_answer() -> None:
    model = LogisticRegression().fit(*_small())
    for defence in (DpScores(), RandomisedResponse()):
        release = defence.release(LogisticRegression(), model, None)  # type: ignore[arg-type]  # no rows are looked at
        assert release is not None
        out = release(np.array([[0.4, 0.6], [np.nan, np.nan]]), None)  # type: ignore[arg-type]
        assert np.isfinite(out[0]).all()
        assert np.isnan(out[1]).all()


def test_clipping_makes_scores_of_anything() -> None:
    out = as_scores(np.array([[-1.0, 2.0, 2.0], [-1.0, -2.0, -3.0]]))
    assert out.tolist() == [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 5))
def test_a_codebook_keeps_the_class_of_any_scores(seed: int, classes: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    learnt, asked = (rng.dirichlet(np.full(classes, 0.5), 40) for _ in range(2))
    words = make_codebook(learnt, levels)
    out = encode(asked, words)
    assert np.array_equal(np.argmax(out, axis=1), np.argmax(asked, axis=1))
    assert np.allclose(out.sum(axis=1), 1)
    assert len(words) <= classes * levels


def test_one_level_releases_the_mean_scores_of_the_class_and_tells_the_label_only() -> None:
    scores = np.random.default_rng(0).dirichlet([0.5] * 3, 200)
    words = make_codebook(scores, 1)
    label = np.argmax(scores, axis=1)
    for k in range(3):
        assert words[k] == pytest.approx(scores[label == k].mean(axis=0))
    assert len(np.unique(released(defended(Codebook())), axis=0)) == len(
        np.unique(released(defended(LabelOnly())), axis=0)
    )


def test_a_class_that_was_never_predicted_has_a_codeword_of_its_own() -> None:
    words = make_codebook(np.array([[0.9, 0.1, 0.0]]), 2)
    assert np.argmax(words, axis=1).tolist() == [0, 1, 2]


def test_codewords_are_calibrated_on_the_rows_they_were_made_from() -> None:
    """Mean released score of a class over all training rows is the mean score: nothing is invented."""
    scores = np.random.default_rng(1).dirichlet([0.3] * 4, 500)
    assert encode(scores, make_codebook(scores, 1)).mean(axis=0) == pytest.approx(scores.mean(axis=0))


def test_a_codebook_needs_the_protocol_that_it_protects() -> None:
    with pytest.raises(BadInput, match="expected a model trained by the protocol that `protect` returned"):
        Codebook().release(LogisticRegression(), LogisticRegression().fit(*_small()), None)


def test_watching_the_training_does_not_change_the_model() -> None:
    plain = LogisticRegression().fit(*_small())
    seen = Codebook().protect(LogisticRegression()).fit(*_small())
    assert all(np.array_equal(a, b) for a, b in zip(plain.arrays().values(), seen.arrays().values(), strict=True))


@pytest.mark.parametrize(("classes", "hidden"), [(2, 1), (3, 1), (6, 3), (11, 5)])
def test_the_purifier_has_half_as_many_hidden_units_as_classes(classes: int, hidden: int) -> None:
    made = train(np.random.default_rng(0).dirichlet([0.5] * classes, 30))
    assert made.encode.shape == (classes, hidden)
    assert made.decode.shape == (hidden, classes)


def test_a_purifier_of_two_classes_passes_real_scores_nearly_unchanged() -> None:
    """One number carries two scores that add up to 1, so here there is nothing to purify."""
    scores = np.random.default_rng(0).dirichlet([0.5] * 2, 300)
    assert np.abs(train(scores)(scores) - scores).max() < 0.02


def test_both_ways_to_train_a_purifier_differ_and_are_known() -> None:
    table = made_table(classes=4)
    one, two = (Purifier(trained_on=how) for how in ("real", "random"))
    first, second = (released(defended(defence, table=table)) for defence in (one, two))
    assert not np.allclose(first, second)
    layers = one.known()[KnownPurifier].layers
    assert layers is not None
    assert layers[0].shape == (4, 2)


def test_rounding_keeps_most_classes_but_not_all() -> None:
    """Two scores that differ after the digit become equal, and the first of them wins: so accuracy may change."""
    plain, rounded = (np.argmax(released(defended(d)), axis=1) for d in (NoDefence(), Rounding(digits=1)))
    assert 0.8 < np.mean(plain == rounded) < 1


def _small() -> tuple[np.ndarray, np.ndarray, int, np.random.Generator]:
    table = made_table()
    assert table.label is not None
    return table.values, table.label, 3, np.random.default_rng(0)


def test_verification_withholds_every_row_with_a_certain_branch_and_no_other() -> None:
    """What remains of a tree's answers fixes no side of a hidden value, whatever path is drawn."""
    for sides in ("certain", "path"):
        log = defended(Verification(sides=sides), "decision_tree", unknown=0.4)
        plain = PathRestriction().run(view_of(defended(NoDefence(), "decision_tree", unknown=0.4), NoDefence()), RNG)
        assert plain.branches is not None
        leaks = known_branch(plain.branches, sides)
        withheld = np.isnan(released(log)).any(axis=1)
        assert 0 < leaks.sum() < len(leaks)
        assert np.array_equal(withheld, leaks)
        left = PathRestriction().run(view_of(log, NoDefence()), RNG).branches
        assert left is not None
        assert not known_branch(left, sides)[~withheld].any()


def test_a_certain_side_is_that_of_every_path_that_is_left() -> None:
    view = view_of(defended(NoDefence(), "decision_tree", unknown=0.4), NoDefence())
    drawn = [PathRestriction().run(view, np.random.default_rng(seed)).branches for seed in range(40)]
    claims = np.stack([one.paths[one.chosen] for one in drawn if one is not None])
    certain = drawn[0].certain if drawn[0] is not None else None
    assert certain is not None
    assert ((claims[:, certain] == claims[0][certain]) & (claims[:, certain] > 0)).all()
    few = drawn[0].candidates <= 3  # of which forty draws have seen every path
    assert not (certain[few] != ((claims[:, few] == claims[0][few]) & (claims[:, few] > 0)).all(axis=0)).any()


def test_verification_imitates_whoever_may_collude() -> None:
    """Every choice of the parties that collude; each only ever withholds more."""
    table = made_table()
    federation = split(table, {"a": ["c0", "c1", "c2"], "b": ["c3", "c4", "c5"], "c": ["c6", "c7"]}, "a")
    protocol = small("decision_tree")
    model = protocol.fit(federation.values, federation.label, 3, np.random.default_rng(0))
    others, rows = federation.rows(np.arange(200)), federation.rows(np.arange(200, 400))

    def withheld(*threats: Threat) -> np.ndarray:
        release = Verification(sides="path").facing(threats, others).release(protocol, model, rows)
        assert release is not None
        return np.isnan(release(model.scores(rows.values), rows)).any(axis=1)

    alone, collusion = withheld(LUO2021), THREATS["collusion"]
    parts = [withheld(threat) for threat in imitated([collusion], federation.passive)]
    assert [threat.colluding for threat in imitated([collusion], federation.passive)] == [("b",), ("c",)]
    assert np.array_equal(withheld(LUO2021, collusion), alone | parts[0] | parts[1])
    assert (parts[0] | parts[1]).sum() > alone.sum()


def test_rows_of_other_people_are_none_that_are_asked_about() -> None:
    federation = split(made_table(), {"a": ["c0", "c1"], "b": ["c2", "c3"]}, "a")
    apart = _strangers(federation.rows(np.arange(50)), federation.rows(np.arange(30, 60)))
    assert np.array_equal(apart.values, federation.values[:30])


def test_whom_verification_faces_is_part_of_its_identity() -> None:
    plain = Verification()
    assert plain.facing([THREATS["active"]]).identified() == plain.identified() == "Verification(limit=0.01)"
    assert plain.facing([THREATS["active"], THREATS["collusion"]]).identified() != plain.identified()
    assert Verification(sides="path").identified() == "Verification(limit=0.01, sides='path')"
