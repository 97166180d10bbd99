"""Metrics of recovered images: PSNR, SSIM and MSE, tile by tile and row by row.

A tile is what one party holds of every picture. Guesses are clipped to [0, 1] first, as a screen does. jin2021's figure (its
authors' code) is the mean over tiles and rows of the tile's PSNR. A mean of logarithms is kind to an attack that is exact on
some tiles and blind on others, so the PSNR of the mean squared error stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbob.federation import Feature, FloatArray, IntArray, shape_of

CAP = 100.0  # dB
HALF_GREY = 0.5 / 255  # a pixel this close is the same of 256 grey levels
WINDOW, SIGMA = 11, 1.5  # of SSIM's Gaussian
C1, C2 = 0.01**2, 0.03**2  # SSIM's constants for values in [0, 1]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Five = tuple[float, float, float, float, float]


@dataclass(frozen=True)
class Tile:
    """What one party holds of every picture: its pixels, channel by channel and row by row, among the unknown columns."""

    party: str
    pixels: IntArray
    shape: tuple[int, int, int]  # channels, height, width

    @property
    def name(self) -> str:
        """
        >>> Tile("tile_1", np.arange(4), (1, 2, 2)).name
        'tile_1 (2 x 2 pixels)'
        """
        channels, height, width = self.shape
        colours = f", {channels} channels" if channels > 1 else ""
        return f"{self.party} ({height} x {width} pixels{colours})"


@dataclass(frozen=True)
class ImageScore:
    """Quality of the recovered images. PSNR in dB; means and quantiles are over one value per tile and row."""

    psnr: float  # mean over tiles and rows: jin2021's figure
    psnr_quantiles: Five  # 5, 25, 50, 75, 95 %
    psnr_of_mean_mse: float  # the harsher one: no exact tile makes up for a blind one
    picture_psnr: float  # mean over rows of the PSNR over all unknown pixels of the row
    exact: float  # share of tiles with every pixel within half a grey level
    ssim: float
    ssim_quantiles: Five
    mse: float
    psnr_by_party: dict[str, float]
    constant_psnr: float  # `psnr` of guessing every pixel's true mean
    path: tuple[tuple[int, float], ...] = ()  # of an attack by steps: iteration and `psnr` there


def tiles_of(features: Sequence[Feature]) -> tuple[Tile, ...]:
    """The parties' tiles, if all these columns are pixels and every party's make up a rectangle; else none."""
    owners = np.array([feature.party for feature in features])
    tiles = []
    for party in dict.fromkeys(owners.tolist()):
        shape = shape_of([feature.column for feature in features if feature.party == party])
        if shape is None:
            return ()
        tiles.append(Tile(party, np.flatnonzero(owners == party), shape))
    return tuple(tiles)


def mse(guess: FloatArray, truth: FloatArray) -> FloatArray:
    """Mean squared error of each picture (row), the guess clipped to [0, 1]."""
    return np.asarray(np.mean((np.clip(guess, 0.0, 1.0) - truth) ** 2, axis=1))


def psnr(errors: FloatArray | float) -> FloatArray:
    """10 log10(1 / MSE), at most 100 dB: an exact tile's is infinite and would swamp every mean.

    >>> psnr(np.array([0.01, 0.0])).tolist()
    [20.0, 100.0]
    """
    return np.asarray(-10.0 * np.log10(np.maximum(errors, 10.0 ** (-CAP / 10.0))))


def ssim(guess: FloatArray, truth: FloatArray) -> FloatArray:
    """Structural similarity (Wang et al. 2004) of pictures in (..., channels, height, width), mean over the channels.

    Gaussian window of 11 x 11 and sigma 1.5, moved where it fits as a whole; on smaller pictures the largest odd size
    that fits. K1 = 0.01, K2 = 0.03, values in [0, 1].
    """
    guess = np.clip(guess, 0.0, 1.0)
    height, width = truth.shape[-2:]
    size = min(WINDOW, height, width)
    size -= 1 - size % 2
    down, across = _blur(height, size), _blur(width, size).T

    def local(values: FloatArray) -> FloatArray:
        return np.asarray(down @ (values @ across))

    mean_g, mean_t = local(guess), local(truth)
    var_g, var_t = local(guess**2) - mean_g**2, local(truth**2) - mean_t**2
    both = local(guess * truth) - mean_g * mean_t
    likeness = (2 * mean_g * mean_t + C1) * (2 * both + C2)
    likeness /= (mean_g**2 + mean_t**2 + C1) * (var_g + var_t + C2)
    return np.asarray(likeness.mean(axis=(-3, -2, -1)))


def image_score(
    guess: FloatArray, truth: FloatArray, tiles: Sequence[Tile], path: Sequence[tuple[int, FloatArray]] = ()
) -> ImageScore:
    """Judge the recovered pictures, one per row; columns as in `tiles`."""
    errors = _tile_errors(guess, truth, tiles)
    levels = psnr(errors)
    alike = np.stack(
        [ssim(*(side[:, tile.pixels].reshape(-1, *tile.shape) for side in (guess, truth))) for tile in tiles], axis=1
    )
    close = np.abs(np.clip(guess, 0.0, 1.0) - truth) <= HALF_GREY + 1e-12
    exact = np.stack([close[:, tile.pixels].all(axis=1) for tile in tiles], axis=1)
    whole = mse(guess, truth)
    constant = np.broadcast_to(truth.mean(axis=0), truth.shape)
    return ImageScore(
        psnr=float(levels.mean()),
        psnr_quantiles=_five(levels),
        psnr_of_mean_mse=float(psnr(float(whole.mean()))),
        picture_psnr=float(psnr(whole).mean()),
        exact=float(exact.mean()),
        ssim=float(alike.mean()),
        ssim_quantiles=_five(alike),
        mse=float(whole.mean()),
        psnr_by_party={tile.party: float(levels[:, i].mean()) for i, tile in enumerate(tiles)},
        constant_psnr=float(psnr(_tile_errors(constant, truth, tiles)).mean()),
        path=tuple((int(step), float(psnr(_tile_errors(at, truth, tiles)).mean())) for step, at in path),
    )


def _tile_errors(guess: FloatArray, truth: FloatArray, tiles: Sequence[Tile]) -> FloatArray:
    """Rows x tiles."""
    squared = (np.clip(guess, 0.0, 1.0) - truth) ** 2
    return np.stack([squared[:, tile.pixels].mean(axis=1) for tile in tiles], axis=1)


def _blur(length: int, size: int) -> FloatArray:
    """The Gaussian window as a matrix, one row for each place at which all of it lies inside."""
    offsets = np.arange(size) - size // 2
    weights = np.exp(-(offsets**2) / (2 * SIGMA**2))
    weights /= weights.sum()
    matrix = np.zeros((length - size + 1, length))
    for place in range(len(matrix)):
        matrix[place, place : place + size] = weights
    return matrix


def _five(values: FloatArray) -> Five:
    low, quarter, middle, upper, high = np.quantile(values, QUANTILES)
    return float(low), float(quarter), float(middle), float(upper), float(high)
