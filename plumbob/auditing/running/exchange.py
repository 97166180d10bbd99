"""What a run told and what the curious know, as one hash: two runs with the same hash differ in nothing that can be read.

It covers the messages but for keys and ciphertexts, which are others in every run, the model, the answers about rows of other
people, and the grants that a defence left the threat. A defence under which it is the same as without changed nothing.
"""

from __future__ import annotations

import hashlib

import numpy as np

from plumbob import bundle
from plumbob.bundle import Array
from plumbob.protocols.base import Protocol
from plumbob.threats import Threat
from plumbob.transcript import COORDINATOR, Transcript

UNREADABLE = ("masked ", "encrypted ", "public key")
# Beside the model, of what the coordinator seals.
OUTCOMES = ("other scores", "predicted scores", "test accuracy", "training loss")


def exchange_of(log: Transcript, protocol: Protocol) -> str:
    """The hash of a run, whoever looks at it."""
    whole = hashlib.sha256()
    unread = (*protocol.masked_messages, *protocol.key_messages)
    for message in log.messages:
        if message.name not in unread and not message.name.startswith(UNREADABLE):
            _add(whole, message.header, message.payload)
    for key, array in log.sealed(COORDINATOR).items():
        if key.startswith(("model/", "other answers/", "predicted answers/")) or key in OUTCOMES:
            _add(whole, key, array)
    return whole.hexdigest()[:32]


def known_by(exchange: str, threat: Threat) -> str:
    """The same together with what the threat is granted."""
    parts = [exchange, *(repr(grant) for grant in threat.grants)]
    return hashlib.sha256(bundle.canonical(parts).encode()).hexdigest()[:32]


def _add(whole: hashlib._Hash, name: object, array: Array) -> None:
    whole.update(bundle.canonical([name, str(array.dtype), list(array.shape)]).encode())
    whole.update(np.ascontiguousarray(array).tobytes())
