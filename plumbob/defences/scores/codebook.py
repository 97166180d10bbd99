"""Codebook (ours): of every row only one of a few public score vectors is released, with the same predicted class.

For each predicted class the training rows' scores are cut into `levels` cells (k-means) and every cell is named by its mean.
A release is the mean of the cell that a row's scores fall in. Its class is the row's, so accuracy is untouched; it is a mean
of real scores, so confidence stays calibrated per cell; and it tells at most log2(classes x levels) bits of a row,
however many columns there are. With one level it tells what the label tells, and not more.
"""

from __future__ import annotations

import warnings

import numpy as np

from plumbob.defences.base import Defence, training_scores, watched
from plumbob.errors import BadInput
from plumbob.federation import Federation, FloatArray
from plumbob.known_defences import KnownCodebook, KnownDefences
from plumbob.lazy_imports import sklearn
from plumbob.protocols.base import Model, PredictionProtocol, Protocol, Release


def make_codebook(scores: FloatArray, levels: int) -> FloatArray:
    """Codewords (words x classes), each with a clear largest entry; a class that is never predicted gets one of its own."""

    classes = scores.shape[1]
    label = np.argmax(scores, axis=1)
    words = []
    for k in range(classes):
        mine = scores[label == k]
        if len(mine) == 0:
            words.append(np.full((1, classes), 0.5 / classes) + 0.5 * np.eye(classes)[k])
            continue
        count = min(levels, len(np.unique(mine, axis=0)))
        if count == 1:
            words.append(mine.mean(axis=0, keepdims=True))
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer distinct rows than cells: the cells that exist are used
            words.append(sklearn.cluster.KMeans(count, n_init=1, random_state=0).fit(mine).cluster_centers_)
    return np.vstack(words)


def encode(scores: FloatArray, codebook: FloatArray) -> FloatArray:
    """The nearest codeword of each row's own predicted class; a withheld row stays withheld."""
    told = np.asarray(~np.isnan(scores).any(axis=1))
    safe = np.where(told[:, None], scores, 0.0)
    # |v - w|^2 less |v|^2, in float64; words of another class are out of reach
    distance = (codebook**2).sum(axis=1) - 2.0 * safe @ codebook.T
    other = np.argmax(safe, axis=1)[:, None] != np.argmax(codebook, axis=1)
    nearest = np.argmin(np.where(other, np.inf, distance), axis=1)
    return np.where(told[:, None], codebook[nearest], np.nan)


class Codebook(Defence):
    """Scores replaced by one of `levels` mean score vectors of their predicted class."""

    name = "codebook"
    identity = "Codebook(levels)"
    summary = "ours: each row's scores are replaced by mean scores of training rows with the same predicted class"
    point = "scores"
    paper = "plumbob"

    _codebook: FloatArray | None = None

    def __init__(self, *, levels: int = 1) -> None:
        if isinstance(levels, bool) or not isinstance(levels, int) or levels < 1:
            raise BadInput(f"codebook: expected at least 1 level, got {levels}")
        self.levels = levels

    def protect(self, protocol: Protocol) -> Protocol:
        return watched(protocol)

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        codebook = self._codebook = make_codebook(training_scores(self.name, model), self.levels)
        return lambda scores, _: encode(scores, codebook)

    def known(self) -> KnownDefences:
        return KnownDefences.of(KnownCodebook(levels=self.levels, words=self._codebook))
