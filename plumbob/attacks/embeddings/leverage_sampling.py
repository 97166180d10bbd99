"""Leverage-score sampling (ye2022, Algorithm 2): the binary column nearest the span of noisy embeddings, by trying 2^r.

r rows are drawn with probabilities p_i = |U_i|^2 / d (U: left singular vectors of A) and scaled by 1 / sqrt(r p_i). For each
x' of 0 and 1 at them: w = argmin |A'w - Dx'|, x = x' at these rows and [Aw >= 1/2] elsewhere. Of all x and of e = (1, 0,
..., 0) the one nearest to the span is the answer; of `runs` draws the best. A is d independent columns of Z, r = d + 1 as in
the paper's experiments.

As printed the distance is |Aw - x|^2, and then e wins whenever there is noise: it is within 1 of any span, while a true
column with noise t on its rows is n t^2 away. With `relative` (ours, the preset `sharp`) it is taken over n var(x).

As printed Z is what prediction told of all rows. With `averaged` (ours) it is the mean of all that was told of a row in
training and prediction: noise that is drawn anew each time falls with the root of the rounds (Section V-A draws it so).
`differences` is that of linear_equations.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.attacks.embeddings._received_embeddings import ADDED_NOISE, embeddings
from plumbob.attacks.embeddings.linear_equations import CANDIDATE_CELLS, candidates, differences, independent_columns
from plumbob.errors import boolean, whole
from plumbob.federation import FloatArray
from plumbob.kinds import Kind
from plumbob.setting_sources import ours, printed
from plumbob.threats import View


class LeverageSampling(Attack):
    """As printed: repeated `runs` times, with at most `most` rows. `relative` and `averaged` are ours."""

    name = "leverage_sampling"
    identity = "LeverageSampling(runs, most, relative)"
    summary = "tries all 2^r binary values at r sampled rows by least squares and keeps the nearest column"
    paper = "ye2022"
    protocols = ("split_network",)
    addresses = (Kind.TWO_VALUED,)
    by_default = False
    knows = ADDED_NOISE
    presets = {
        "sharp": {"relative": True},
        "averaged": {"relative": True, "averaged": True},
        "differences": {"differences": True},
        "small": {"runs": 4, "most": 12, "relative": True},
    }
    sources = {
        "runs": printed("Section VI-D"),
        "most": ours("all dimensions in the paper, whose time doubles with each"),
        "relative": printed("Algorithm 2, line 8"),
        "adaptive": printed("Algorithm 2, which knows of no noise's size"),
        "averaged": printed("Section VI-D, which reads what the trained network tells once"),
        "differences": printed("Algorithm 2, which takes none; Section VII does where there is a bias or other values"),
    }

    def __init__(
        self,
        runs: int = 20,
        most: int = 18,
        relative: bool = False,
        adaptive: bool = False,
        averaged: bool = False,
        differences: bool = False,
    ) -> None:
        self.runs = whole("leverage_sampling: runs", runs, 1, 10_000)
        self.most = whole("leverage_sampling: most", most, 2, 30)
        self.relative = boolean("leverage_sampling: relative", relative)
        self.adaptive = boolean("leverage_sampling: adaptive", adaptive)
        self.averaged = boolean("leverage_sampling: averaged", averaged)
        self.differences = boolean("leverage_sampling: differences", differences)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        parties = embeddings(self.seen(view), self.averaged)
        found, words = [np.zeros((len(view.own), 0))], []
        for one in parties:
            cells = differences(one.cells) if self.differences else one.cells
            rank = min(EmbeddingSpan.of(cells, one.sd, affine=False).rank, len(view.unknown), cells.shape[1])
            if rank == 0:
                words.append("the embeddings are the same for all rows")
                continue
            if rank + 1 > self.most:
                words.append(f"{rank} dimensions are out of reach: 2^{rank + 1} candidates")
                continue
            column, error = nearest(independent_columns(cells, rank), self.runs, rng, self.relative)
            found.append(one.placed(column[:, None], len(view.own)))
            words.append(one.told(f"{'relative ' if self.relative else ''}squared distance {error:.3g} from the span"))
        return Guess(view.unknown_names, vectors=np.hstack(found), certificate="; ".join(words))


def nearest(a: FloatArray, runs: int, rng: np.random.Generator, relative: bool = True) -> tuple[FloatArray, float]:
    """The column of the least squared distance over all runs, and that distance."""
    basis, _ = np.linalg.qr(a)
    leverage = (basis**2).sum(axis=1)
    best = np.zeros(len(a))
    best[0] = 1.0
    least = float(_distances(best[:, None], basis, relative)[0])
    for _ in range(runs):
        column, error = _run(a, basis, leverage / leverage.sum(), rng, relative)
        if error < least:
            best, least = column, error
    return best, float(least)


def _distances(columns: FloatArray, basis: FloatArray, relative: bool) -> FloatArray:
    """Squared distances from the span; of constants infinity."""
    left = columns.sum(axis=0) - ((basis.T @ columns) ** 2).sum(axis=0)
    variances = columns.var(axis=0)
    over = len(columns) * np.maximum(variances, 1e-30) if relative else 1.0
    return np.asarray(np.where(variances > 0, left / over, np.inf))


def _run(
    a: FloatArray, basis: FloatArray, p: FloatArray, rng: np.random.Generator, relative: bool
) -> tuple[FloatArray, float]:
    rows, rank = a.shape
    r = rank + 1
    sampled = rng.choice(rows, size=r, p=p)
    scale = 1 / np.sqrt(r * p[sampled])
    solve = np.linalg.pinv(a[sampled] * scale[:, None]) * scale  # of D A w = D x'
    best, least = np.zeros(rows), np.inf
    for x in candidates(r, max(1, CANDIDATE_CELLS // rows)):
        columns = (a @ (solve @ x) >= 0.5).astype(np.float64)
        columns[sampled] = x
        errors = _distances(columns, basis, relative)
        place = int(errors.argmin())
        if errors[place] < least:
            best, least = columns[:, place].copy(), float(errors[place])
    return best, least
