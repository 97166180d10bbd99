"""The federations of jin2021: pictures as tiles, a server that asks for batches, and what its attacks get out of them.

jin2021 recovers 800 pictures on two graphics cards. Ours runs at that size here; attacks by descent run on fewer pictures
(`COMPARED`, `SEARCHED`), all of them the same. Its 8,000 iterations of Step III move each of 800 pictures 400 times, which for
50 of them takes 500 iterations. Steps I and II are cheap, and where attacks are compared get the paper's 8,000 (`EARLIER`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.gradients._table_nine import TABLE_9
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import Federation, split_into_tiles
from plumbob.papers.claims import Scale
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.report.pictures import sheet_of
from plumbob.scoring.images import ImageScore
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, AuxiliaryRows, Threat, View, cut
from plumbob.transcript import Transcript

SETS = ("cifar10", "mnist", "linnaeus5")
ROWS_TESTED = 200
SERVER = THREATS["coordinator"]
SERVER_WITH_PICTURES = Threat(
    "coordinator-auxiliary",
    f"the coordinator alone, which has {ROWS_TESTED} pictures of other people",
    (*SERVER.grants, AuxiliaryRows(ROWS_TESTED)),
    corrupted=True,
    active=False,
)


@dataclass(frozen=True)
class JinSize:
    """Rows and batch of a run, the network's width, and the iterations of attacks by descent."""

    rows: int
    batch: int
    width: int
    iterations: int


SOLVED_SIZES: dict[Scale, JinSize] = {"smoke": JinSize(24, 6, 32, 0), "paper": JinSize(800, 40, 64, 0)}
COMPARED: dict[Scale, JinSize] = {"smoke": JinSize(12, 4, 8, 200), "paper": JinSize(50, 40, 64, 300)}
SEARCHED: dict[Scale, JinSize] = {"smoke": JinSize(12, 4, 8, 200), "paper": JinSize(40, 8, 64, 600)}
EARLIER: dict[Scale, int | None] = {"smoke": None, "paper": 8_000}
Settings = tuple[tuple[str, Any], ...]
# jin2021 draws a new batch in every iteration; here so many are drawn, each with all its gradients, and taken in turn.
BATCHES_DRAWN: dict[Scale, Settings] = {"smoke": (), "paper": (("rounds", 150), ("archive_mb", 2_500))}


def sets(scale: Scale) -> tuple[str, ...]:
    """All three at the paper's size; MNIST alone for a quick look."""
    return SETS if scale == "paper" else ("mnist",)


@lru_cache(maxsize=4)
def pictures(name: str, rows: int, tiles: int, seed: int) -> tuple[Federation, Federation]:
    """So many pictures at random to train on, and others."""
    table = registry.load(name)
    order = generator(seed, "pictures", name).permutation(len(table.values))
    federation = split_into_tiles(table.rows(order[: rows + ROWS_TESTED]), tiles)
    count = min(rows, len(order))
    others = np.arange(count, len(federation)) if len(federation) > count else np.arange(count)
    return federation.rows(np.arange(count)), federation.rows(others)


@lru_cache(maxsize=1)  # a run at full size is a gigabyte
def trained(name: str, size: JinSize, tiles: int, seed: int, settings: Settings = ()) -> Transcript:
    """One training, and all that crossed."""
    federation, others = pictures(name, size.rows, tiles, seed)
    protocol = SplitTraining(**{"batch_size": size.batch, "width": size.width, **dict(settings)})
    return protocol.train(federation, others, generator(seed, "training", name, size, tiles))


def table_9(name: str, size: JinSize, scale: Scale, **changed: Any) -> dict[str, Any]:
    """CAFE's settings for a data set in Table 9, but for those that are changed."""
    choice = TABLE_9[name]
    usual = {"iterations": size.iterations, "earlier": EARLIER[scale], "rates": choice.rates, "xi": choice.xi}
    return usual | changed


@dataclass(frozen=True)
class JinRun:
    """One attack on one training."""

    images: ImageScore
    labels: float | None
    seconds: float  # of processors
    waited: float  # by the clock
    log: Transcript
    guess: Guess
    view: View

    @property
    def psnr(self) -> float:
        return self.images.psnr

    @property
    def sheet(self) -> bytes:
        """The first pictures, real above recovered."""
        return sheet_of(self.log, self.view, self.guess)

    @property
    def words(self) -> str:
        """The figures of a run in a line."""
        i = self.images
        return (
            f"{i.psnr:.2f} dB (5 % {i.psnr_quantiles[0]:.1f}, median {i.psnr_quantiles[2]:.1f}; of the mean error "
            f"{i.psnr_of_mean_mse:.1f}), SSIM {i.ssim:.3f}, {i.exact:.1%} of tiles exact"
        )


def attacked(log: Transcript, attack: Attack, seed: int, threat: Threat = SERVER) -> JinRun:
    """What the server alone finds."""
    view = cut(log, threat)
    started, clock = time.process_time(), time.perf_counter()
    guess = attack.run(view, generator(seed, "attack", attack))
    seconds, waited = time.process_time() - started, time.perf_counter() - clock
    judged = score(guess, truth_of(log, view), view, generator(seed, "score"))
    assert judged.images is not None
    return JinRun(judged.images, judged.label_accuracy, seconds, waited, log, guess, view)
