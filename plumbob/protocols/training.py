"""Protocols whose training is the exchange: every message of it crosses the channel and stands in the transcript.

What a party works out for itself from what it got (an opened ciphertext, a code it hid in its own numbers) is no message.
It is sealed as a note of that party, `notes/<name>`, and reaches a view only if that party is among the curious.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from plumbob.bundle import Array
from plumbob.federation import Federation
from plumbob.identity import Identified
from plumbob.transcript import COORDINATOR, Transcript

IN_THE_CLEAR, MASKED = "in the clear", "as masked sums"  # what protocols without ciphertexts say of their messages
SAID_MASKED = "as masked sums, by what the recording says"
KEYS = (0, 1_024, 2_048, 3_072)  # bits of Paillier keys; 0 is no encryption


class TrainingProtocol(Identified, ABC):
    """One way to train together. Settings go to the constructor, data to `train`."""

    @abstractmethod
    def train(self, federation: Federation, others: Federation, rng: np.random.Generator) -> Transcript:
        """Train on the federation's rows; `others` are rows of other people, for the test accuracy and auxiliary rows.

        `rng` draws what needs no secrecy (batches, first weights); keys and masks come from the system.
        """

    key_bits: int  # of the Paillier key; 0 for none

    def ready(self, rows: int) -> None:
        """Refuse, in one sentence, what cannot be trained on so many rows, or on this machine."""
        return

    @property
    def learns(self) -> bool:
        """Whether parameters change; if not, accuracy says nothing."""
        return True

    @property
    def encryption(self) -> str:
        """What ciphertexts it uses, in words."""
        return f"Paillier, {self.key_bits:,}-bit key" if self.key_bits else "none"


def opened(name: str, federation: Federation, others: Federation) -> Transcript:
    """A transcript of these parties, with the columns sealed for scoring and the other rows for auxiliary-row grants."""
    parties = tuple(party.name for party in federation.parties)
    log = Transcript(name, federation.active, parties, federation.features, federation.classes)
    for party in federation.parties:
        log.seal(party.name, "columns", party.values)
    log.seal(federation.active, "label", federation.label)
    log.seal(COORDINATOR, "other rows", others.values)
    log.seal(COORDINATOR, "other labels", others.label)
    return log


def note(log: Transcript, party: str, name: str, array: Array) -> None:
    """Keep something that a party knows by its own work."""
    log.seal(party, f"notes/{name}", array)
