"""Model completion (fu2022, Section 4.1): a head on a passive party's own outputs, learnt from a few labels and all other rows.

    head = batch norm, ReLU, linear         loss = cross-entropy(mixed labelled)  +  w (mixed guesses of the others)^2
Guesses are sharpened to the power 1 / T, rows are mixed in pairs by a draw of Beta(alpha, alpha) (MixMatch without changes of
pictures), w rises with the steps, and the answer is that of an average of the heads of all steps. As in the authors' code for
Criteo the bottom stays as it was trained; rows are mixed behind it.
"""

from __future__ import annotations

import numpy as np

from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import nn, torch

RATE, DECAY = (
    2e-3,
    0.999,
)  # of Adam, and of the average: run_model_completion.bat and model_completion.py of the authors
SHARPNESS, MIXING, WEIGHT = 0.8, 0.75, 50.0  # T, alpha, and w at the end


def completed(
    cells: FloatArray, known: IntArray, classes: int, steps: int, batch: int, seed: int, weight: float = WEIGHT
) -> IntArray:
    """The class of every row; `known` holds -1 where it is not known. `weight` is that of the other rows, at the end."""
    rng = np.random.default_rng(seed)
    labelled, rest = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
    rows = torch.tensor((cells - cells.mean(axis=0)) / (cells.std(axis=0).max() + 1e-12), dtype=torch.float32)
    wanted = torch.eye(classes)[torch.tensor(np.where(known < 0, 0, known))]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**62)))
        head, mean = (_head(rows.shape[1], classes) for _ in range(2))
    optimiser = torch.optim.Adam(head.parameters(), lr=RATE)
    mean.load_state_dict(head.state_dict())
    for step in range(steps):
        one, other = (rng.choice(some, batch) for some in (labelled, rest))
        loss = _loss(head, rows[one], wanted[one], rows[other], rng, weight * (step + 1) / steps)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimiser.step()
        _average(mean, head, min(DECAY, (step + 1) / (step + 10)))
    mean.eval()
    with torch.no_grad():
        found: IntArray = mean(rows).argmax(1).numpy()
    return np.where(known >= 0, known, found)


def _loss(
    head: torch.nn.Module,
    labelled: torch.Tensor,
    wanted: torch.Tensor,
    rest: torch.Tensor,
    rng: np.random.Generator,
    weight: float,
) -> torch.Tensor:
    with torch.no_grad():
        sharp = torch.softmax(head(rest), dim=1) ** (1 / SHARPNESS)
    every = torch.vstack([labelled, rest])
    targets = torch.vstack([wanted, sharp / sharp.sum(dim=1, keepdim=True)])
    share = float(rng.beta(MIXING, MIXING))
    share = max(share, 1 - share)
    paired = torch.tensor(rng.permutation(len(every)))
    said = head(share * every + (1 - share) * every[paired])
    targets = share * targets + (1 - share) * targets[paired]
    count = len(labelled)
    known = -(torch.log_softmax(said[:count], dim=1) * targets[:count]).sum(dim=1).mean()
    guessed: torch.Tensor = ((torch.softmax(said[count:], dim=1) - targets[count:]) ** 2).mean()
    return known + weight * guessed


def _head(width: int, classes: int) -> torch.nn.Module:
    return nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, classes))


def _average(mean: torch.nn.Module, head: torch.nn.Module, decay: float) -> None:
    with torch.no_grad():
        for one, other in zip(mean.state_dict().values(), head.state_dict().values(), strict=True):
            if one.is_floating_point():
                one.mul_(decay).add_(other, alpha=1 - decay)
            else:
                one.copy_(other)
