"""Data flows: who sent what to whom in which phase, how often, how many bytes, and in what form; taken from a transcript.

A form is read off the message: a ciphertext is exactly as wide as the square of a public key that crossed before it and that both
ends know. What else a message is, the code of our own protocols decides by the name it gives; the names in a recorded run of
others are what somebody says, and the form says so. The class of a protocol declares which names are keys or masked numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumbob.bundle import Array
from plumbob.crypto.paillier import SMALLEST_KEY
from plumbob.protocols import PROTOCOLS
from plumbob.transcript import Message, Transcript

MATCHING = ("psi request", "psi setup", "psi response")  # points of a curve under secret keys
ENCRYPTED, HIDDEN, CLEAR = "encrypted", "masked", "in the clear"
SAID_ENCRYPTED, SAID_HIDDEN = "said to be encrypted", "said to be masked"
SHUT = (ENCRYPTED, HIDDEN)  # forms that the receiver cannot read as they are
_LOOKED_AT = 1 << 20  # bytes


@dataclass(frozen=True)
class Flow:
    """All messages of one name between two ends in one phase."""

    phase: str
    sender: str
    receiver: str
    name: str
    form: str  # encrypted, masked, in the clear; of a recorded run also what it is said to be
    messages: int
    bytes: int


def flows_of(log: Transcript, *, recorded: bool = False) -> tuple[Flow, ...]:
    """What crossed in a run, in the order of first messages; names that differ after a slash (layers) count as one.

    `recorded` is a run that somebody else wrote down: its names are not believed.

    >>> log = Transcript("toy", "bank", ("bank", "shop"), (), ("no", "yes"))
    >>> for number in range(2):
    ...     _ = log.send("shop", "bank", "predict", number, "answer", np.zeros(4))
    >>> flows_of(log)
    (Flow(phase='predict', sender='shop', receiver='bank', name='answer', form='in the clear', messages=2, bytes=64),)
    """
    own = not recorded and log.protocol in PROTOCOLS
    kinds = [PROTOCOLS[log.protocol]] if own else list(PROTOCOLS.values())
    keys = _Keys(frozenset(name for kind in kinds for name in kind.key_messages))
    masked = frozenset(name for kind in kinds for name in kind.masked_messages)
    form = _said if recorded else _form
    sums: dict[tuple[str, str, str, str, str], list[int]] = {}
    for message in log.messages:
        keys.note(message)
        name = message.name.partition("/")[0]
        place = (message.phase, message.sender, message.receiver, name, form(message, keys, masked))
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


class _Keys:
    """The public keys that crossed so far, in messages of these names, and who knows each."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names, self._known = names, dict[int, set[str]]()

    def note(self, message: Message) -> None:
        """Keep the key of a message that brings one: n first, in bytes, the highest a sign."""
        payload = message.payload
        if message.name in self._names and payload.dtype == np.uint8 and payload.ndim == 2 and len(payload):
            n = int.from_bytes(payload[0].tobytes(), "big", signed=True)
            if n.bit_length() >= SMALLEST_KEY and n % 2:
                self._known.setdefault(n, set()).update((message.sender, message.receiver))

    def square(self, message: Message) -> int:
        """n^2 of a key that both ends know and whose ciphertexts are exactly as wide as the message's rows; 0 without one."""
        payload = message.payload
        if payload.dtype != np.uint8 or payload.ndim != 2:
            return 0
        for n, ends in self._known.items():
            if {message.sender, message.receiver} <= ends and payload.shape[1] == ((n**2).bit_length() + 7) // 8:
                return n**2
        return 0


def _form(message: Message, keys: _Keys, masked: frozenset[str]) -> str:
    """Of our own protocols, whose code gives the names: no other message has them, and with `key_bits: 0` these are numbers."""
    if keys.square(message) or (message.name in MATCHING and message.payload.dtype == np.uint8):
        return ENCRYPTED
    return HIDDEN if message.name in masked and message.payload.dtype.kind in "iu" else CLEAR


def _said(message: Message, keys: _Keys, masked: frozenset[str]) -> str:
    """Of a run of others: a name is what somebody says; bytes that only a ciphertext of a key at both ends can be, prove it."""
    square = keys.square(message)
    if square and _like_ciphertexts(message.payload, square):
        return ENCRYPTED
    if message.name.startswith(("psi ", "encrypted ")):
        return SAID_ENCRYPTED
    return SAID_HIDDEN if message.name.startswith("masked ") or message.name in masked else CLEAR


def _like_ciphertexts(payload: Array, square: int) -> bool:
    """Numbers between 0 and n^2, no two alike, in which nothing repeats that could be packed: pictures and codes can be."""
    rows = [row.tobytes() for row in payload]
    if len(set(rows)) < len(rows) or not all(0 < int.from_bytes(row, "big") < square for row in rows):
        return False
    start = b"".join(rows)[:_LOOKED_AT]
    return len(zlib.compress(start)) >= len(start)
