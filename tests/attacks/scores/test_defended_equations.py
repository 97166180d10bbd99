"""The attacker who knows of the defence: its draws against closed forms, its guesses against ESA's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import truncnorm

from plumbob.attacks.base import Attack
from plumbob.attacks.scores._defended_equations import adapted, read, sample
from plumbob.attacks.scores.equation_solving import EquationSolving, equations
from plumbob.attacks.scores.posterior_mean import PosteriorMean
from plumbob.defences import Defence, NoDefence
from plumbob.defences.scores.codebook import Codebook
from plumbob.defences.scores.label_only import LabelOnly
from plumbob.defences.scores.noise import Noise
from plumbob.defences.scores.purifier import Purifier
from plumbob.defences.scores.rounding import Rounding
from plumbob.known_defences import KnownDefences, KnownLabelOnly, KnownNoise
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, THREATS
from tests.defences.worlds import defended, view_of
from tests.worlds import built_in, made_table


def errors(defence: Defence, data: str, attack: Attack, seed: int) -> tuple[float, float]:
    """MSE and R^2 of one attack on one defended prediction."""
    table = built_in(data)
    few = np.random.default_rng(seed).permutation(len(table.values))[:600]
    log = defended(defence, table=table.rows(few), seed=seed, rows=60)
    view = view_of(log, defence)
    guess = attack.run(view, np.random.default_rng(seed))
    judged = score(guess, truth_of(log, view), view, np.random.default_rng(0))
    return judged.error, judged.r2


def test_without_a_defence_the_equations_are_esas_and_no_number_is_drawn() -> None:
    view = view_of(defended(NoDefence()), NoDefence())
    rng = np.random.default_rng(0)
    one, two = adapted(view, rng), equations(view)
    assert one.right.tobytes() == two.right.tobytes()
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_a_label_of_two_classes_cuts_a_normal_in_two() -> None:
    """t = (d, -d) / 2 with d ~ N(m, s^2), of which only the side is told: a truncated normal."""
    count, mean, scale, known = 2_000, 0.4, 1.5, -0.7
    told = read(np.tile([1.0, 0.0], (count, 1)), KnownDefences.of(KnownLabelOnly()))
    assert told is not None
    middle, own = np.tile([mean / 2, -mean / 2], (count, 1)), np.tile([known / 2, -known / 2], (count, 1))
    spread = scale**2 / 4 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    start = np.tile([1.0, -1.0], (count, 1))
    _, average, scatter = sample(told, own, start, middle, spread, 60, np.random.default_rng(0))
    exact = truncnorm((-known - mean) / scale, np.inf, mean, scale)
    found = average[:, 0] - average[:, 1]
    assert found.mean() == pytest.approx(exact.mean(), abs=0.04)
    assert (scatter[0, 0] / count) * 4 + np.var(found) == pytest.approx(exact.var(), rel=0.06)


def test_gaussian_noise_on_almost_linear_scores_is_a_gaussian_posterior() -> None:
    """Two classes and a narrow prior: scores are linear in d, so the posterior mean is the precision-weighted one."""
    rng = np.random.default_rng(1)
    count, scale, sigma = 1_500, 0.05, 0.01
    truth = scale * rng.standard_normal(count)
    scores = np.stack([0.5 + truth / 4, 0.5 - truth / 4], axis=1) + sigma * rng.standard_normal((count, 2))
    told = read(scores, KnownDefences.of(KnownNoise(sigma, clip=False)))
    assert told is not None
    spread = scale**2 / 4 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    zeros = np.zeros((count, 2))
    _, average, _ = sample(told, zeros, zeros, zeros, spread, 90, rng)
    seen, noise = 2 * (scores[:, 0] - scores[:, 1]), 8 * sigma**2
    exact = seen * scale**2 / (scale**2 + noise)
    found = average[:, 0] - average[:, 1]
    assert np.polyfit(exact, found, 1)[0] == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("defence", [Rounding(digits=9), Noise(sigma=1e-7)], ids=repr)
def test_a_defence_that_hardly_changes_scores_gives_nearly_esas_equations(defence: Defence) -> None:
    table = made_table(classes=3, seed=2)
    exact = equations(view_of(defended(NoDefence(), table=table), NoDefence()))
    close = adapted(view_of(defended(defence, table=table), defence), np.random.default_rng(0))
    assert np.median(np.abs(close.right - exact.right)) < 1e-4


@pytest.mark.needs_data(parameter="data")
@pytest.mark.parametrize("data", ["satellite", "breast"])
@pytest.mark.parametrize("digits", [1, 2, 3])
def test_who_knows_of_the_rounding_beats_esa(digits: int, data: str) -> None:
    pairs = [
        [errors(Rounding(digits=digits), data, attack, seed)[0] for attack in (PosteriorMean(), EquationSolving())]
        for seed in range(2)
    ]
    ours, theirs = np.array(pairs).T
    assert (ours < theirs).all()


@pytest.mark.needs_data("satellite")
def test_the_coarser_the_release_the_less_is_learnt() -> None:
    ladder = (NoDefence(), Rounding(digits=3), Rounding(digits=1), LabelOnly())
    r2 = [np.mean([errors(d, "satellite", PosteriorMean(), seed)[1] for seed in range(2)]) for d in ladder]
    assert all(finer > coarser for finer, coarser in pairwise(r2))


@pytest.mark.needs_data("satellite")
@pytest.mark.parametrize("clip", [False, True])
def test_noise_that_is_drawn_anew_is_averaged_away(clip: bool) -> None:
    """The leak grows with the number of questions, and comes near to that of full scores."""
    ladder = (*(Noise(sigma=0.1, clip=clip, repeats=k) for k in (1, 30, 1_000)), NoDefence())
    r2 = [np.mean([errors(d, "satellite", PosteriorMean(), seed)[1] for seed in range(2)]) for d in ladder]
    assert all(more > less + 0.05 for less, more in pairwise(r2))
    assert r2[2] - r2[0] > 0.5 * (r2[3] - r2[0])


@pytest.mark.needs_data("satellite")
def test_one_level_of_codebook_tells_what_the_label_tells() -> None:
    gaps = [
        errors(Codebook(), "satellite", PosteriorMean(), s)[1] - errors(LabelOnly(), "satellite", PosteriorMean(), s)[1]
        for s in range(3)
    ]
    assert abs(np.mean(gaps)) < 0.05


@pytest.mark.parametrize(
    "defence", [Rounding(), LabelOnly(), Codebook(levels=2), Noise(), Noise(clip=True), Purifier()], ids=repr
)
@pytest.mark.parametrize("case", ["two classes", "one row", "one unknown", "constant columns", "auxiliary rows"])
def test_awkward_views_are_survived(defence: Defence, case: str) -> None:
    table = made_table(classes=2 if case == "two classes" else 4, rows=300)
    if case == "constant columns":
        table.values[:, ::2] = 0.0
    log = defended(
        defence, table=table, rows=1 if case == "one row" else 30, unknown=0.125 if case == "one unknown" else 0.5
    )
    view = view_of(log, defence, THREATS["active-auxiliary"] if case == "auxiliary rows" else LUO2021)
    one, two = (PosteriorMean().run(view, np.random.default_rng(0)).values for _ in range(2))
    assert one is not None
    assert two is not None
    assert np.array_equal(one, two)
    assert ((one >= 0) & (one <= 1)).all()
