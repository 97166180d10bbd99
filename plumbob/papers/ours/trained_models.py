"""Attacks on a model that is trained already (jin2021, Section 4.3: "better on an untrained model than a trained one") (P23).

The same pictures, batches and first parameters, before any training and after epochs of Adam at 0.001; parameters stay as they
are while the server looks. CAFE as printed, with fewer iterations, and ours. The paper says which is better and prints no figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from plumbob.attacks.gradients.cafe import Cafe
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import below, every
from plumbob.papers.jin2021.federations import JinSize, attacked, table_9, trained
from plumbob.scoring.intervals import mean_and_margin
from plumbob.transcript import COORDINATOR

EPOCHS: dict[Scale, dict[str, int]] = {
    "smoke": {"untrained": 0, "trained": 40},
    "paper": {"untrained": 0, "trained": 100},
}
LOOKED_AT: dict[Scale, JinSize] = {"smoke": JinSize(8, 4, 8, 100), "paper": JinSize(20, 5, 32, 600)}
EARLIER_STEPS: dict[Scale, int | None] = {"smoke": None, "paper": 8_000}
TRAINED_SETS: dict[Scale, tuple[str, ...]] = {"smoke": ("mnist",), "paper": ("mnist",)}
TRAINED_SEEDS: dict[Scale, int] = {"smoke": 2, "paper": 5}
PAPER_UNTRAINED = {"mnist": 43.15, "cifar10": 31.83}  # Table 2


@dataclass(frozen=True)
class _Case:
    data: str
    state: str
    seed: int


def _looked_at(case: _Case, scale: Scale) -> Part:
    """One network, by both attacks: PSNR of each, labels and exact tiles of ours, and how well it is trained."""
    size = LOOKED_AT[scale]
    log = trained(case.data, size, 4, case.seed, (("warm_up", EPOCHS[scale][case.state]),))
    settings = table_9(case.data, size, scale, earlier=EARLIER_STEPS[scale])
    searched, ours = attacked(log, Cafe(**settings), case.seed), attacked(log, GradientPeeling(), case.seed)
    state = log.sealed(COORDINATOR)
    return Part(
        {
            "CAFE": searched.psnr,
            "ours": ours.psnr,
            "exact": ours.images.exact,
            "labels": ours.labels or 0.0,
            "loss": float(np.mean(state["training loss"])),
            "accuracy": float(state["test accuracy"][0]),
        },
        [],
    )


def better_untrained(scale: Scale, seed: int) -> CheckResult:
    """Whether each attack finds less in the trained network, network by network."""
    size, answers = LOOKED_AT[scale], list[bool | None]()
    measured: dict[str, object] = {
        "size": f"{size.rows} pictures, batches of {size.batch}, {size.iterations:,} iterations of the last step, epochs of "
        + ", ".join(f"{state} {count}" for state, count in EPOCHS[scale].items())
    }
    for data in TRAINED_SETS[scale]:
        found = {state: _found(data, state, scale, seed) for state in EPOCHS[scale]}
        for state, values in found.items():
            measured[f"{data}, {state}"] = {
                "CAFE": _interval(values["CAFE"]),
                "ours": _interval(values["ours"]),
                "tiles exact": round(float(np.mean(values["exact"])), 3),
                "labels": round(float(np.mean(values["labels"])), 3),
                "loss": float(f"{np.mean(values['loss']):.2g}"),
                "test accuracy": round(float(np.mean(values["accuracy"])), 2),
            }
        for who in ("CAFE", "ours"):
            worse = below(found["trained"][who], found["untrained"][who])
            measured[f"{data}, {who} finds less once trained"] = worse
            answers.append(worse)
        measured[f"{data}, CAFE in the paper, untrained"] = PAPER_UNTRAINED[data]
    why = (
        "gradients of rows that the network has learnt are small, so what CAFE starts from outweighs them; ours solves for them, "
        "and loses the rows whose gradients are below what 32 bits hold: most of the others come out as before"
    )
    expected = "both attacks find less in a trained network; the paper prints no figure for one"
    return CheckResult(every(answers), measured, expected, TRAINED_SEEDS[scale], why)


def _found(data: str, state: str, scale: Scale, seed: int) -> dict[str, list[float]]:
    cases = [_Case(data, state, 1_000 * seed + number) for number in range(TRAINED_SEEDS[scale])]
    done = [part(f"{c.data}, {c.state}, {c.seed}", partial(_looked_at, c, scale)).measured for c in cases]
    return {key: [float(one[key]) for one in done] for key in done[0]}


def _interval(values: list[float]) -> str:
    mean, margin = mean_and_margin(values)
    return f"{mean:.2f} ± {margin:.2f} dB"


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P23", "trained models", "attacks on gradients find less in a trained model", better_untrained),
)
