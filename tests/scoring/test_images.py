"""Measures of pictures, against values known beforehand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from plumbob.attacks.base import Guess
from plumbob.federation import Column, Feature
from plumbob.scoring.images import CAP, image_score, mse, psnr, ssim, tiles_of
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from tests.worlds import made_table, picture_world, world

SEEDS = st.integers(0, 2**32 - 1)


def setting(**shape: int):
    log = picture_world(**shape)
    view = cut(log, THREATS["coordinator"])
    return view, truth_of(log, view)


def judged(values: np.ndarray, **guess):
    view, truth = setting()
    return score(Guess(truth.names, values, **guess), truth, view, np.random.default_rng(0))


def pictures(seed: int, shape: tuple[int, ...] = (3, 2, 12, 14)) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def test_a_known_error_has_a_known_psnr() -> None:
    assert psnr(np.array([1.0, 0.1, 0.01, 1e-4])).tolist() == pytest.approx([0, 10, 20, 40])


def test_no_error_is_the_cap_and_nothing_is_above_it() -> None:
    assert psnr(np.array([0.0, 1e-300, 1e-10])).tolist() == [CAP] * 3


def test_guesses_beyond_black_and_white_are_clipped() -> None:
    truth = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert mse(np.array([[-3.0, 7.0], [0.6, 0.4]]), truth).tolist() == pytest.approx([0, 0.01])


@given(SEEDS, st.integers(1, 14), st.integers(1, 14))
@settings(max_examples=40, deadline=None)
def test_a_picture_is_like_itself_and_likeness_is_mutual(seed: int, height: int, width: int) -> None:
    one, other = pictures(seed, (2, 1, height, width)), pictures(seed + 1, (2, 1, height, width))
    assert ssim(one, one) == pytest.approx(1)
    assert ssim(one, other) == pytest.approx(ssim(other, one))
    assert (np.abs(ssim(one, other)) <= 1 + 1e-9).all()


def test_more_noise_is_less_alike() -> None:
    truth = np.broadcast_to(np.linspace(0, 1, 28), (5, 1, 28, 28))
    noise = np.random.default_rng(0).normal(size=truth.shape)
    levels = [ssim(truth + size * noise, truth).mean() for size in (0.0, 0.05, 0.2, 0.5)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] < 0.5


def test_ssim_is_that_of_the_formula_with_a_filter_of_scipy() -> None:
    """Five pixels each way of scipy's Gaussian are the window of 11, where it lies inside as a whole."""
    guess, truth = pictures(0, (16, 20)), pictures(1, (16, 20))

    def local(values: np.ndarray) -> np.ndarray:
        return gaussian_filter(values, 1.5, truncate=3.4)[5:-5, 5:-5]

    g, t = local(guess), local(truth)
    both = local(guess * truth) - g * t
    spread = local(guess**2) - g**2 + local(truth**2) - t**2
    expected = (2 * g * t + 1e-4) * (2 * both + 9e-4) / ((g**2 + t**2 + 1e-4) * (spread + 9e-4))
    assert float(ssim(guess[None, None], truth[None, None])[0]) == pytest.approx(expected.mean(), rel=1e-9)


def test_one_constant_against_another_has_the_luminance_term_alone() -> None:
    low, high = np.full((1, 1, 4, 4), 0.2), np.full((1, 1, 4, 4), 0.6)
    assert float(ssim(low, high)[0]) == pytest.approx((2 * 0.12 + 1e-4) / (0.04 + 0.36 + 1e-4))


def test_the_truth_is_exact() -> None:
    _, truth = setting()
    found = judged(truth.values)
    assert found.images is not None
    assert (found.images.psnr, found.images.psnr_of_mean_mse, found.images.picture_psnr) == (CAP, CAP, CAP)
    assert (found.images.exact, found.images.mse) == (1, 0)
    assert found.images.ssim == pytest.approx(1)
    assert found.attack_accuracy is None


def test_half_of_the_tiles_exact_and_half_off_by_a_tenth() -> None:
    _, truth = setting()
    values = truth.values.copy()
    for tile in truth.tiles[:2]:
        cells = values[:, tile.pixels]
        values[:, tile.pixels] = cells + np.where(cells > 0.5, -0.1, 0.1)
    images = judged(values).images
    assert images is not None
    assert images.psnr == pytest.approx((CAP + 20) / 2)
    assert images.psnr_quantiles == pytest.approx((20, 20, 60, CAP, CAP))
    assert (images.psnr_of_mean_mse, images.picture_psnr) == pytest.approx((-10 * np.log10(0.005),) * 2)
    assert images.exact == 0.5
    assert images.psnr_by_party == pytest.approx({"tile_1": 20, "tile_2": 20, "tile_3": CAP, "tile_4": CAP})


def test_a_pixel_within_half_a_grey_level_is_exact_and_one_beyond_is_not() -> None:
    _, truth = setting()
    inwards = np.where(truth.values > 0.5, -1, 1) / 255
    near = judged(truth.values + 0.49 * inwards).images
    beyond = 0.49 * inwards
    beyond[:30, truth.tiles[0].pixels[3]] *= 0.51 / 0.49
    far = judged(truth.values + beyond).images
    assert near is not None
    assert far is not None
    assert near.exact == 1
    assert far.exact == 1 - 30 / 240


def test_the_mean_picture_reaches_the_constant_psnr() -> None:
    _, truth = setting()
    found = judged(np.broadcast_to(truth.values.mean(axis=0), truth.values.shape))
    assert found.images is not None
    assert found.images.psnr == pytest.approx(found.images.constant_psnr)
    assert found.r2 == pytest.approx(0)


def test_a_path_is_scored_at_every_step_of_it() -> None:
    _, truth = setting()
    start = np.full(truth.values.shape, 0.5)
    images = judged(truth.values, path=((0, start), (10, (start + truth.values) / 2), (20, truth.values))).images
    assert images is not None
    (first, low), (second, middle), (last, high) = images.path
    assert (first, second, last, high) == (0, 10, 20, CAP)
    assert middle - low == pytest.approx(20 * np.log10(2))


@pytest.mark.parametrize(("channels", "words"), [(1, "(4 x 4 pixels)"), (3, "(4 x 4 pixels, 3 channels)")])
def test_columns_are_tiles(channels: int, words: str) -> None:
    view, truth = setting(channels=channels)
    values = np.clip(truth.values + np.random.default_rng(1).normal(0, 0.05, truth.values.shape), 0, 1)
    found = score(Guess(truth.names, values), truth, view, np.random.default_rng(0))
    assert [column.name for column in found.columns] == [f"tile_{i} {words}" for i in range(1, 5)]
    first, pixels = found.columns[0], truth.tiles[0].pixels
    squared = (values - truth.values)[:, pixels] ** 2
    assert first.error == pytest.approx(squared.mean())
    assert first.r2 == pytest.approx(1 - squared.mean() / truth.values[:, pixels].var(axis=0).mean())
    assert first.claims == truth.values[:, pixels].size
    assert found.error == pytest.approx(np.mean([column.error for column in found.columns]))


def test_tiles_of_the_curious_are_not_counted() -> None:
    log = picture_world()
    view = cut(log, THREATS["collusion"])
    truth = truth_of(log, view)
    assert [tile.party for tile in truth.tiles] == ["tile_4"]


def test_columns_without_places_and_pixels_that_are_no_rectangle_are_no_pictures() -> None:
    pixels = [Feature("a", Column(f"p{i}", place=(0, 0, i))) for i in (0, 1, 3)]
    assert tiles_of(pixels) == ()
    assert len(tiles_of(pixels[:2])) == 1
    assert tiles_of([*pixels[:2], Feature("b", Column("age"))]) == ()
    log = world(table=made_table())
    view = cut(log, THREATS["active"])
    truth = truth_of(log, view)
    assert score(Guess(truth.names, truth.values), truth, view, np.random.default_rng(0)).images is None


def test_labels_count_over_all_rows_and_silence_is_wrong() -> None:
    view, truth = setting()
    assert truth.label is not None
    labels = truth.label.copy()
    labels[:15] = -1
    guess = Guess(truth.names, truth.values, labels=labels)
    found = score(guess, truth, view, np.random.default_rng(0))
    assert found.label_accuracy == pytest.approx(45 / 60)
    assert found.label_baseline == pytest.approx(1 / 3)
    knows = replace(view, curious=("server",))
    assert score(guess, truth, knows, np.random.default_rng(0)).label_accuracy is None


def test_pictures_are_put_together_from_any_order_of_rows() -> None:
    """Scores of rows do not depend on each other but for the mean picture."""
    _, truth = setting()
    values = np.random.default_rng(0).random(truth.values.shape)
    order = np.random.default_rng(1).permutation(len(values))
    one = image_score(values, truth.values, truth.tiles)
    other = image_score(values[order], truth.values[order], truth.tiles)
    assert one.psnr == pytest.approx(other.psnr)
    assert one.ssim_quantiles == pytest.approx(other.ssim_quantiles)
