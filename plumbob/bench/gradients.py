"""The benchmark of gradient peeling: processor time until pictures are as good as jin2021's, against CAFE's descent."""

from __future__ import annotations

from collections.abc import Iterator

from plumbob.attacks.cafe import Cafe
from plumbob.attacks.gradient_peeling import GradientPeeling
from plumbob.bench.timing import Measured, result
from plumbob.papers.jin2021_search import TABLE_2
from plumbob.papers.jin2021_worlds import Size, attacked, trained

ROWS, BATCH = 40, 8
GOAL = 100
TRIED = (20, 120)  # iterations whose difference tells what one costs


def peeling_against_cafe() -> Iterator[Measured]:
    """On the same transcript, four workers: CAFE gets as many iterations as the goal's time allows, and is asked at 40 points
    of its last step whether it has reached the paper's PSNR. Where it has not the ratio is a lower bound, and says so.
    """
    for name in ("mnist", "cifar10"):
        log = trained(name, Size(ROWS, BATCH, 64, 0), 4, 0)
        ours = attacked(log, GradientPeeling(), 0)
        paper = TABLE_2["cafe"][name]
        assert ours.psnr >= paper
        few, more = (attacked(log, Cafe.for_data(name, iterations=n), 0).seconds for n in TRIED)
        iterations = int(1.1 * GOAL * ours.seconds / ((more - few) / (TRIED[1] - TRIED[0])))
        cafe = attacked(log, Cafe.for_data(name, iterations=iterations), 0)
        reached = next((i for i, psnr in cafe.images.path if psnr >= paper), None)
        part = 1.0 if reached is None else (2 + reached / iterations) / 3  # Steps I and II count in full
        said = f"after {iterations:,} iterations of each step CAFE is at {cafe.psnr:.1f} dB"
        said += ", so this is a lower bound" if reached is None else f"; it was there at {reached:,} of Step III"
        size = f"{ROWS} pictures of {name}, K={BATCH}, M=4, to {paper} dB: ours {ours.psnr:.1f} dB; {said}"
        yield result(f"peeling against CAFE, {name}", part * cafe.seconds / ours.seconds, GOAL, size, ours.seconds)
