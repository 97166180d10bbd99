"""What the active party of `split_network` has of the others' columns: their embeddings, and how noisy it knows them to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.threats import View


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
    known = view.defence
    variance = float(known["gaussian_masking/sigma"]) ** 2 if "gaussian_masking/sigma" in known else 0.0
    if "quantised_embeddings/on" in known:
        step = 2 * float(known["quantised_embeddings/reach"]) / (2 ** int(known["quantised_embeddings/bits"]) - 1)
        variance += step**2 / (6 if bool(known["quantised_embeddings/dither"]) else 12)
    return float(np.sqrt(variance))


def blurred(view: View) -> bool:
    """Whether a defence keeps columns from lying in the span exactly, as far as is known."""
    changing = ("gaussian_masking", "quantised_embeddings", "masquerade", "rank_reduction", "deeper_cut", "left_out")
    return any(f"{name}/on" in view.defence for name in changing)
