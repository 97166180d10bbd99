"""Data flows: who sent what to whom in which phase, how often, how many bytes, and in what form; taken from a transcript.

A form is read off the message, not believed: a ciphertext is as wide as the square of the public key that crossed before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumbob.transcript import Message, Transcript

KEYS = ("public key", "key")
MASKED = ("opened gradient",)  # a gradient under its receiver's mask; other names say it themselves
ENCRYPTED, HIDDEN, CLEAR = "encrypted", "masked", "in the clear"


@dataclass(frozen=True)
class Flow:
    """All messages of one name between two ends in one phase."""

    phase: str
    sender: str
    receiver: str
    name: str
    form: str  # encrypted, masked or in the clear
    messages: int
    bytes: int


def flows_of(log: Transcript) -> tuple[Flow, ...]:
    """What crossed in a run, in the order of first messages; names that differ after a slash (layers) count as one.

    >>> log = Transcript("toy", "bank", ("bank", "shop"), (), ("no", "yes"))
    >>> for number in range(2):
    ...     _ = log.send("shop", "bank", "predict", number, "answer", np.zeros(4))
    >>> flows_of(log)
    (Flow(phase='predict', sender='shop', receiver='bank', name='answer', form='in the clear', messages=2, bytes=64),)
    """
    width = _cipher_width(log.messages)
    sums: dict[tuple[str, str, str, str, str], list[int]] = {}
    for message in log.messages:
        name = message.name.partition("/")[0]
        place = (message.phase, message.sender, message.receiver, name, _form(message, width))
        found = sums.setdefault(place, [0, 0])
        found[0] += 1
        found[1] += message.nbytes
    return tuple(Flow(*place, *counts) for place, counts in sums.items())


def flows_from(raw: Iterable[Sequence[Any]]) -> tuple[Flow, ...]:
    """Flows as a findings file keeps them."""
    return tuple(
        Flow(str(phase), str(sender), str(receiver), str(name), str(form), int(messages), int(size))
        for phase, sender, receiver, name, form, messages, size in raw
    )


def _cipher_width(messages: Sequence[Message]) -> int:
    """Bytes of a ciphertext, twice those of the public key (whose first byte is a sign); 0 without a key."""
    keys = [m.payload for m in messages if m.name in KEYS and m.payload.size]
    return max((2 * (int(key.shape[-1]) - 1) for key in keys), default=0)


def _form(message: Message, width: int) -> str:
    payload = message.payload
    if message.name.startswith("psi "):
        return ENCRYPTED
    if width and payload.dtype == np.uint8 and payload.ndim == 2 and payload.shape[1] >= width:
        return ENCRYPTED
    return HIDDEN if message.name.startswith("masked ") or message.name in MASKED else CLEAR
