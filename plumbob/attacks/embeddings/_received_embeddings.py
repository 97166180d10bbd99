"""What the active party of `split_network` has of the others' columns: their embeddings, and how noisy it knows them to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.embeddings._embedding_span import rounding
from plumbob.attacks.embeddings._training_rounds import batches, largest, linked
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.known_defences import (
    KnownDeeperCut,
    KnownGaussianMasking,
    KnownLeftOut,
    KnownMasquerade,
    KnownQuantisedEmbeddings,
    KnownRankReduction,
)
from plumbob.protocols.shared.row_means import MEAN, TIMES, noted
from plumbob.threats import View

ADDED_NOISE = (KnownGaussianMasking, KnownQuantisedEmbeddings)
BLURRING = (
    *ADDED_NOISE,
    KnownMasquerade,
    KnownRankReduction,
    KnownDeeperCut,
    KnownLeftOut,
)

# Batches in which columns nearly depend on each other tell the rows they hold less exactly: single cells of credit are off by 300
# times the rounding of 32 bits, all by 4 on average.
COMBINED_LOSES = 50.0


@dataclass(frozen=True)
class Embedding:
    """One party's embedding of all rows, or the sum of all parties' (`sender` is then empty)."""

    sender: str
    cells: FloatArray  # n x k
    sd: float  # of the noise that a defence is known to put on every cell; 0 for none
    rows: IntArray | None = None  # the rows it is of, where it is one batch of training
    inexact: float = 0.0  # how far its cells may be off for other reasons than noise and their own last digit
    source: str = ""  # where it comes from, if not from the messages of prediction

    def placed(self, columns: FloatArray, count: int) -> FloatArray:
        """Columns found in it as columns of all rows: of rows that it does not hold only the mean is known."""
        if self.rows is None:
            return columns
        everywhere = np.tile(columns.mean(axis=0), (count, 1))
        everywhere[self.rows] = columns
        return everywhere

    def told(self, words: str) -> str:
        """What was found in it, with where it comes from."""
        return f"{words}; from {self.source}" if self.source else words


def embeddings(view: View, averaged: bool = False) -> list[Embedding]:
    """Of every party that is not curious, or their sum where only that was opened.

    Those of prediction, or `averaged` over them and all rounds of training; without prediction the rounds of training combined.
    """
    last = _predicted(view)
    found = (_averaged(view, last) if averaged else []) or last or _combined(view)
    if not found:
        raise BadInput(
            "this view holds no message 'embeddings', and no batch of 'outputs' with more rows than dimensions"
        )
    return found


def _predicted(view: View) -> list[Embedding]:
    """As prediction told them, with the final parameters."""
    fresh, fixed = noise(view)
    sd = float(np.hypot(fresh, fixed))
    if "embeddings" in view.notes:
        # Each party's numbers were of 32 bits, or rounded to fixed point, before they were added up.
        return [Embedding("", view.notes["embeddings"].astype(np.float32), sd * _summed(view))]
    parts: dict[str, list[FloatArray]] = {}
    for message in view.messages:
        if message.name == "embeddings" and message.sender not in view.curious:
            parts.setdefault(message.sender, []).append(message.payload)
    return [Embedding(sender, np.concatenate(payloads), sd) for sender, payloads in parts.items()]


def _summed(view: View) -> float:
    """The root of the number of parties whose sum was opened."""
    names = ("masked embeddings", "masked outputs")
    return float(np.sqrt(max(1, len({message.sender for message in view.messages if message.name in names}))))


def _averaged(view: View, last: list[Embedding]) -> list[Embedding]:
    """Of every row the mean of all that was told of it: X times the mean of the weights, noise over the root of the rounds."""
    fresh, fixed = noise(view)
    found = []
    for name, mean in view.notes.items():
        first, _, sender = name.partition("/")
        times = view.notes.get(noted(TIMES, sender))
        if first != MEAN or times is None or sender in view.curious or mean.ndim != 2 or times.shape != mean.shape[:1]:
            continue
        same = next((one for one in last if one.sender == sender and one.cells.shape == mean.shape), None)
        total, count = mean * times[:, None], times.astype(np.float64)
        if same is not None:
            total, count = total + same.cells, count + 1
        if not count.all():
            continue
        sd = float(np.sqrt(fresh**2 * np.mean(1 / count) + fixed**2)) * (1.0 if sender else _summed(view))
        words = f"the mean of {count.min():,.0f} messages a row"
        found.append(Embedding(sender, (total / count[:, None]).astype(np.float32), sd, source=words))
    return found


def _combined(view: View) -> list[Embedding]:
    """Rounds of training combined where their batches fix all rows, else the largest batch."""
    fresh, fixed = noise(view)
    sd = float(np.hypot(fresh, fixed))
    if sd:
        return _averaged(view, [])
    found = []
    for sender, some in batches(view).items():
        everything = linked(some, len(view.own))
        if everything is not None:
            inexact = COMBINED_LOSES * rounding(everything)
            found.append(Embedding(sender, everything, 0.0, None, inexact, "the rounds of training combined"))
        elif (one := largest(some)) is not None:
            words = f"one batch of {len(one.rows):,} rows"
            found.append(Embedding(sender, np.asarray(one.cells), 0.0, one.rows, source=words))
    return found


def noise(view: View) -> tuple[float, float]:
    """The deviation of every cell's noise, from what is known of the defence: drawn anew each round, and the same in all."""
    masking, quantised = view.defence.get(KnownGaussianMasking), view.defence.get(KnownQuantisedEmbeddings)
    fresh, fixed = 0.0 if masking is None else masking.sigma**2, 0.0
    if quantised is not None:
        step = 2 * quantised.reach / (2**quantised.bits - 1)
        fresh += step**2 / 6 if quantised.dither else 0.0
        fixed += 0.0 if quantised.dither else step**2 / 12
    return float(np.sqrt(fresh)), float(np.sqrt(fixed))


def blurred(view: View) -> bool:
    """Whether a defence keeps columns from lying in the span exactly, as far as is known."""
    return any(kind in view.defence for kind in BLURRING)
