"""What the active party of `split_network` has of the others' columns: their embeddings, and how noisy it knows them to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.known_defences import (
    KnownDeeperCut,
    KnownGaussianMasking,
    KnownLeftOut,
    KnownMasquerade,
    KnownQuantisedEmbeddings,
    KnownRankReduction,
)
from plumbob.threats import View

ADDED_NOISE = (KnownGaussianMasking, KnownQuantisedEmbeddings)
BLURRING = (
    *ADDED_NOISE,
    KnownMasquerade,
    KnownRankReduction,
    KnownDeeperCut,
    KnownLeftOut,
)


@dataclass(frozen=True)
class Embedding:
    """One party's embedding of all rows, or the sum of all parties' (`sender` is then empty)."""

    sender: str
    cells: FloatArray  # n x k
    sd: float  # of the noise that a defence is known to put on every cell; 0 for none


def embeddings(view: View) -> list[Embedding]:
    """Of every party that is not curious, or their sum where only that was opened."""
    sd = noise(view)
    if "embeddings" in view.notes:
        # Each party's numbers were of 32 bits, or rounded to fixed point, before they were added up.
        summed = len({message.sender for message in view.messages if message.name == "masked embeddings"})
        return [Embedding("", view.notes["embeddings"].astype(np.float32), sd * float(np.sqrt(max(1, summed))))]
    parts: dict[str, list[FloatArray]] = {}
    for message in view.messages:
        if message.name == "embeddings" and message.sender not in view.curious:
            parts.setdefault(message.sender, []).append(message.payload)
    if not parts:
        raise BadInput("this view holds no message 'embeddings'")
    return [Embedding(sender, np.concatenate(payloads), sd) for sender, payloads in parts.items()]


def noise(view: View) -> float:
    """The noise of every cell, from what is known of the defence."""
    masking, quantised = view.defence.get(KnownGaussianMasking), view.defence.get(KnownQuantisedEmbeddings)
    variance = 0.0 if masking is None else masking.sigma**2
    if quantised is not None:
        step = 2 * quantised.reach / (2**quantised.bits - 1)
        variance += step**2 / (6 if quantised.dither else 12)
    return float(np.sqrt(variance))


def blurred(view: View) -> bool:
    """Whether a defence keeps columns from lying in the span exactly, as far as is known."""
    return any(kind in view.defence for kind in BLURRING)
