"""What a release says of the scores behind it."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks._common.release_likelihood import SCORE_RELEASES, Meaning, meaning, noise_width
from plumbob.defences.scores.codebook import encode, make_codebook
from plumbob.defences.scores.label_only import one_hot
from plumbob.defences.scores.noise import as_scores
from plumbob.defences.scores.purifier import Autoencoder, train
from plumbob.defences.scores.rounding import round_down, round_to_nearest
from plumbob.known_defences import (
    KnownCodebook,
    KnownDefence,
    KnownDefences,
    KnownDpScores,
    KnownDropout,
    KnownHideModel,
    KnownLabelOnly,
    KnownNoise,
    KnownPurifier,
    KnownRandomisedResponse,
    KnownRounding,
    KnownVerification,
)


def drawn(seed: int, rows: int = 40, classes: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.7), rows)


@cache
def learnt() -> tuple[np.ndarray, Autoencoder]:
    """A codebook and a purifier of four classes."""
    return make_codebook(drawn(99, 200), 3), train(drawn(98, 200))


def releases(scores: np.ndarray) -> dict[str, tuple[np.ndarray, Meaning]]:
    """What each deterministic defence tells of scores, and what it means."""
    words, purify = learnt()
    known: dict[str, tuple[np.ndarray, KnownDefence]] = {
        "rounding": (round_down(scores, 2), KnownRounding(2)),
        "rounding to the nearest": (round_to_nearest(scores, 2), KnownRounding(2, nearest=True)),
        "label_only": (one_hot(scores), KnownLabelOnly()),
        "codebook": (encode(scores, words), KnownCodebook(3, words)),
        "purifier": (purify(scores), KnownPurifier(**vars(purify))),
    }
    return {
        name: (told, read)
        for name, (told, has) in known.items()
        if (read := meaning(KnownDefences.of(has))) is not None
    }


def misfit(read: Meaning, scores: np.ndarray, told: np.ndarray) -> np.ndarray:
    return read.misfit(torch.tensor(scores), torch.tensor(told)).numpy()


def noise(sigma: float, clip: bool, repeats: int = 1) -> KnownDefences:
    return KnownDefences.of(KnownNoise(sigma, clip, repeats))


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_true_scores_fit_their_release_and_others_do_not(seed: int) -> None:
    scores = drawn(seed)
    for name, (told, read) in releases(scores).items():
        assert misfit(read, scores, told) == pytest.approx(np.zeros(len(scores)), abs=1e-20), name
        other = misfit(read, np.roll(scores, 1, axis=0), told)
        differ = np.any(np.roll(told, 1, axis=0) != told, axis=1)
        assert (other[differ] > 0).all(), name


@pytest.mark.parametrize("name", ["rounding", "rounding to the nearest", "label_only", "codebook"])
def test_the_middle_fits_and_has_a_logarithm(name: str) -> None:
    told, read = releases(drawn(1))[name]
    middle = read.middle(torch.tensor(told)).numpy()
    assert misfit(read, middle, told).max() < 1e-20
    assert middle.sum(axis=1) == pytest.approx(np.ones(len(told)))
    assert (middle > 0).all()


def test_rounding_is_the_distance_to_the_interval() -> None:
    read = meaning(KnownDefences.of(KnownRounding(1)))
    assert read is not None
    found = misfit(read, np.array([[0.55, 0.45], [0.75, 0.25], [0.3, 0.7]]), np.tile([0.5, 0.4], (3, 1)))
    assert found == pytest.approx([0.0, 0.15**2 + 0.15**2, 0.2**2 + 0.2**2])


def test_rounding_to_the_nearest_is_the_distance_to_the_interval_around() -> None:
    read = meaning(KnownDefences.of(KnownRounding(1, nearest=True)))
    assert read is not None
    found = misfit(read, np.array([[0.54, 0.46], [0.75, 0.25], [0.45, 0.55]]), np.tile([0.5, 0.5], (3, 1)))
    assert found == pytest.approx([0.0, 0.2**2 + 0.2**2, 0.0], abs=1e-12)


def test_label_only_is_the_lead_of_another_class() -> None:
    read = meaning(KnownDefences.of(KnownLabelOnly()))
    assert read is not None
    assert misfit(read, np.array([[0.2, 0.5, 0.3]]), np.array([[1.0, 0.0, 0.0]])) == pytest.approx([0.3**2])


def test_codebook_is_never_more_than_the_distance_to_the_word_and_has_a_slope_outside() -> None:
    told, read = releases(drawn(2))["codebook"]
    points = torch.tensor(drawn(3), requires_grad=True)
    found = read.misfit(points, torch.tensor(told))
    assert (found.detach().numpy() <= ((points.detach().numpy() - told) ** 2).sum(axis=1) + 1e-12).all()
    (slope,) = torch.autograd.grad(found.sum(), points)
    outside = found.detach() > 1e-12
    assert outside.any()
    assert (slope[outside].abs().sum(dim=1) > 0).all()


def test_averaging_k_answers_leaves_a_kth_of_the_variance() -> None:
    assert noise_width(KnownNoise(0.3, False, 9)) == pytest.approx(0.1)
    assert noise_width(KnownNoise(0.3, False)) == 0.3


def test_the_mean_of_many_clipped_answers_is_read_without_its_bias() -> None:
    rng, scores, sigma = np.random.default_rng(0), np.tile([0.85, 0.13, 0.02], (2, 1)), 0.1
    answers = sum(as_scores(scores + sigma * rng.standard_normal(scores.shape)) for _ in range(4_000)) / 4_000
    read = meaning(noise(sigma, True, 4_000))
    assert read is not None
    middle = read.middle(torch.tensor(answers)).numpy()
    assert np.abs(middle - scores).max() < 0.4 * np.abs(answers - scores).max()


def test_a_noisy_score_below_zero_has_a_middle_above_it() -> None:
    read = meaning(noise(0.1, False))
    assert read is not None
    middle = read.middle(torch.tensor([[1.1, -0.3], [0.5, 0.5]], dtype=torch.float64))
    assert ((middle > 0) & (middle < 1)).all()
    assert middle[1].tolist() == pytest.approx([0.5, 0.5])


def test_laplace_noise_is_read_by_its_likelihood() -> None:
    """-2 log likelihood in units of the width, up to a constant; the middle is the mean of all scores, weighted by it."""
    read = meaning(KnownDefences.of(KnownDpScores(5.0)))
    assert read is not None
    scores, told = np.array([[0.3, 0.7], [0.9, 0.1]]), np.array([[0.5, 0.6], [1.4, -0.2]])
    likelihood = -np.abs(told - scores).sum(axis=1) / 0.4
    assert -0.5 * misfit(read, scores, told) / read.width**2 == pytest.approx(likelihood)
    grid = np.linspace(0, 1, 20_001)
    weight = np.exp(-np.abs(told[:, :, None] - grid) / 0.4)
    mean = (weight * grid).sum(axis=2) / weight.sum(axis=2)
    middle = read.middle(torch.tensor(told)).numpy()
    assert middle == pytest.approx(mean / mean.sum(axis=1, keepdims=True), abs=1e-4)


def test_a_class_named_at_random_is_read_by_its_odds() -> None:
    read = meaning(KnownDefences.of(KnownRandomisedResponse(2.0)))
    assert read is not None
    found = misfit(read, np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]), np.array([[1.0, 0.0, 0.0]] * 2))
    assert found == pytest.approx([0.0, 2 * 2.0], abs=1e-4)
    middle = read.middle(torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)).numpy()[0]
    assert middle.sum() == pytest.approx(1.0)
    assert middle[0] - middle[1] == pytest.approx(0.5 * (np.e**2 - 1) / (np.e**2 + 2))


def test_scores_that_nobody_changed_have_no_other_meaning() -> None:
    assert meaning(KnownDefences()) is None
    assert meaning(KnownDefences.of(KnownDropout(0.5), KnownVerification(0.01), KnownHideModel())) is None


def test_of_several_defences_the_coarsest_counts() -> None:
    both = KnownDefences.of(KnownRounding(2)) | noise(0.1, False)
    read = meaning(both)
    assert read is not None
    assert not read.hard  # noise comes before the digits are cut: nothing is certain
    assert read.width == pytest.approx(0.11)
    labelled = meaning(both | KnownDefences.of(KnownLabelOnly()))
    assert labelled is not None
    assert labelled.width == np.inf


@pytest.mark.parametrize("kind", KnownDefence.__subclasses__())
def test_attacks_declare_every_release_that_has_a_meaning(kind: type[KnownDefence]) -> None:
    number = {"int": 1, "float": 0.5, "bool": True}
    needed = {one.name: number[str(one.type)] for one in fields(kind) if one.default is MISSING}
    assert meaning(KnownDefences.of(kind(**needed))) is None or kind in SCORE_RELEASES
