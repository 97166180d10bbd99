"""How many fake gradients to choose from (jin2021, Appendix F has nu = 1,000): 2, 100 and 1,000 beside each other (P24).

A smaller network than the paper's, of which 1,000 candidates fit into memory: what CAFE and ours recover, and how the loss
falls. And of the paper's own network, candidate by candidate, how far each is from one true gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from plumbob.attacks.gradients.cafe import Cafe
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.auditing.running.run import generator
from plumbob.defences.gradients.fake_gradients import FakeGradients
from plumbob.federation import FloatArray
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.papers.jin2021.federations import JinSize, attacked, pictures, table_9
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.scoring.intervals import mean_and_margin
from plumbob.transcript import COORDINATOR, Transcript

COUNTS = (2, 100, 1_000)
SIGMAS = {"the paper's sigma": 1.1, "a sigma that trains": 0.003}
ROOM_MB = 200  # for 1,000 candidates of the smaller network
FAKED: dict[Scale, JinSize] = {"smoke": JinSize(8, 4, 4, 60), "paper": JinSize(20, 5, 8, 300)}
FAKED_SEEDS: dict[Scale, int] = {"smoke": 2, "paper": 5}
FAKED_ROUNDS: dict[Scale, int] = {"smoke": 40, "paper": 400}
STREAMED: dict[Scale, int] = {"smoke": 20, "paper": 300}
LARGE: dict[Scale, tuple[str, int]] = {"smoke": ("mnist", 8), "paper": ("cifar10", 64)}  # the paper's network
MOST_DB, MOST_LOSS = 1.0, 0.1  # mean differences that count as alike


def _run(sigma: float, count: int, scale: Scale, seed: int, **settings: Any) -> Transcript:
    size = FAKED[scale]
    plain = SplitTraining(batch_size=size.batch, width=size.width, **settings)
    protocol = FakeGradients(sigma=sigma, count=count, room_mb=ROOM_MB).protect(plain)
    assert isinstance(protocol, SplitTraining)
    return protocol.train(*pictures("mnist", size.rows, 4, seed), generator(seed, "faked"))


def _tried(words: str, count: int, scale: Scale, seed: int) -> Part:
    """PSNR that is left, of CAFE and of ours, which knows the defence; where training is possible the loss at the end."""
    size, sigma = FAKED[scale], SIGMAS[words]
    still = _run(sigma, count, scale, seed)
    searched = attacked(still, Cafe(**table_9("mnist", size, scale, earlier=None)), seed)
    found: dict[str, Any] = {"CAFE": searched.psnr, "ours": attacked(still, GradientPeeling(), seed).psnr}
    if sigma < 1:
        moving = {"optimizer": "sgd", "learning_rate": 0.1, "rounds": FAKED_ROUNDS[scale], "archive_mb": 1}
        losses = _run(sigma, count, scale, seed, **moving).sealed(COORDINATOR)["training loss"]
        found["loss"] = float(np.mean(losses[-(len(losses) // 10) :]))
    return Part(found, [])


def candidates_compared(scale: Scale, seed: int) -> CheckResult:
    """Network by network the differences between 2 candidates and more."""
    size, answers = FAKED[scale], list[bool | None]()
    measured: dict[str, object] = {
        "size": f"{size.rows} pictures of mnist, batches of {size.batch}, networks of width {size.width}, loss of the last tenth "
        f"of {FAKED_ROUNDS[scale]} rounds of SGD at 0.1"
    }
    for words in SIGMAS:
        found = {count: _of_all_seeds(words, count, scale, seed) for count in COUNTS}
        for count, values in found.items():
            told = {key: _interval(one) for key, one in values.items()}
            measured[f"{words}, {count:,} candidates"] = told
        for count, key in ((c, k) for c in COUNTS[1:] for k in found[2]):
            change = [more - few for more, few in zip(found[count][key], found[2][key], strict=True)]
            measured[f"{words}, {key}: {count:,} less 2"] = _interval(change)
            most = MOST_LOSS if key == "loss" else MOST_DB
            answers.append(_within(change, most))
    measured["distances"] = part("distances", partial(_distances, scale, seed)).measured
    expected = (
        f"differences within {MOST_DB:g} dB and {MOST_LOSS:g} of loss; distances at the paper's size nearly equal"
    )
    why = (
        "a sorted sample of so many numbers is close to the quantiles of the normal distribution, and so is every other: the "
        "nearest of many candidates is hardly nearer than any"
    )
    return CheckResult(every(answers), measured, expected, FAKED_SEEDS[scale], why)


def _of_all_seeds(words: str, count: int, scale: Scale, seed: int) -> dict[str, list[float]]:
    seeds = [1_000 * seed + number for number in range(FAKED_SEEDS[scale])]
    done = [part(f"{words}, {count}, {s}", partial(_tried, words, count, scale, s)).measured for s in seeds]
    return {key: [float(one[key]) for one in done] for key in done[0]}


def _within(change: Sequence[float], most: float) -> bool | None:
    """Whether the interval of the mean lies within the bound; False if it lies outside."""
    mean, margin = mean_and_margin(change)
    return True if abs(mean) + margin < most else False if abs(mean) - margin > most else None


def _interval(values: Sequence[float]) -> str:
    mean, margin = mean_and_margin(values)
    return f"{mean:.3f} ± {margin:.3f}"


def _distances(scale: Scale, seed: int) -> Part:
    """From one worker's true gradient, sorted, to candidates that are drawn one at a time and not kept."""
    data, width = LARGE[scale]
    protocol = SplitTraining(batch_size=4, width=width, rounds=1)
    log = protocol.train(*pictures(data, 8, 4, seed), generator(seed, "one gradient"))
    true = [
        np.sort(message.payload.ravel().astype(np.float64))[::-1]
        for message in log.messages
        if message.name.startswith("gradient/tile_1/")
    ]
    measured: dict[str, Any] = {}
    for words, sigma in SIGMAS.items():
        rng = generator(seed, "candidates", words)
        far = np.array([_distance(true, sigma, rng) for _ in range(STREAMED[scale])])
        measured[words] = {
            "parameters": sum(map(len, true)),
            "standard deviation of the distances": f"{far.std() / far.mean():.3%} of their mean",
            "nearest of all less nearest of 2": f"{1 - far.min() / _nearest_of_two(far):.3%}",
        }
    return Part(measured, [])


def _nearest_of_two(far: FloatArray) -> float:
    return float(np.minimum(far[0::2], far[1::2]).mean())


def _distance(true: Sequence[FloatArray], sigma: float, rng: np.random.Generator) -> float:
    off = 0.0
    for layer in true:
        fake = sigma * np.sort(rng.standard_normal(len(layer), dtype=np.float32))[::-1]
        off += float(((fake - layer) ** 2).sum())
    return float(off**0.5)


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P24", "fake gradients", "2 candidates protect and train like 1,000", candidates_compared),
)
