"""How the parties' answers reach whoever combines them (luo2021, Section III: nothing but the scores need be revealed).

    clear      each answer as it is
    shared     z_p 2^50 + s_p modulo 2^64, masks s_p of pairs of parties that add up to 0: the collector opens the sum alone
    paillier   the coordinator's key; the active party adds up the ciphertexts, its own among them, and the coordinator opens
               the sum: nobody holds both the key and a single answer
Scores of sums are those of answers in the clear but for the rounding to 2^-50.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from plumbob.bundle import Array
from plumbob.crypto import paillier
from plumbob.crypto.encoding import Packing
from plumbob.crypto.masking import fixed_point, from_system, opened_sum, pairwise_masks
from plumbob.crypto.plain import as_bytes
from plumbob.errors import BadInput, suggest
from plumbob.federation import FloatArray, IntArray
from plumbob.transcript import COORDINATOR, Transcript

SUM_FRACTION_BITS = 50  # after the binary point
SLOT = 64  # bits of one number in a ciphertext
TOO_LARGE = "joint prediction: an answer is too large to be added in 64 bits; use 'sums: clear'"
SUM_MESSAGES = MappingProxyType(
    {
        "public key": "a public key",
        "masked answer": "a party’s contribution for each row, under masks that cancel in the sum",
        "encrypted answer": "a party’s contribution for each row, encrypted",
        "encrypted sum": "the sum of all contributions for each row, encrypted",
    }
)


class Gathering:
    """Answers in the clear, for one prediction."""

    encryption: ClassVar[str] = ""  # in words; empty where nothing is hidden
    key_bits: ClassVar[int] = 0

    def begin(self, log: Transcript, parties: Sequence[str], active: str, collector: str) -> None:
        """Before the first row is asked about."""
        self.log, self.parties, self.active, self.collector = log, tuple(parties), active, collector
        self.answers: dict[str, Array] = {}

    def send(self, party: str, turn: int, answer: Array) -> None:
        """One party's answer leaves it."""
        if party != self.collector:
            answer = self.log.send(party, self.collector, "predict", turn, "answer", answer)
        self.answers[party] = answer

    def opened(self, turn: int) -> dict[str, Array]:
        """What there is to combine when all have answered: each answer, or their sum."""
        return self.answers


class SharedSums(Gathering):
    """Masks that cancel, from the system's randomness; the parties agree on them in pairs."""

    encryption = "as masked sums"

    def send(self, party: str, turn: int, answer: Array) -> None:
        fixed = fixed_point(answer, SUM_FRACTION_BITS, TOO_LARGE)
        if party == self.parties[0]:
            self._masks = pairwise_masks(self.parties, fixed.shape, from_system)
        masked: IntArray = fixed + self._masks[party]
        self.answers[party] = self.log.send(party, self.collector, "predict", turn, "masked answer", masked)

    def opened(self, turn: int) -> dict[str, Array]:
        return {"sum": opened_sum(list(self.answers.values()), SUM_FRACTION_BITS)}


class PaillierSums(Gathering):
    """Several numbers to a ciphertext; the active party adds them up and cannot open them."""

    key_bits = paillier.RECOMMENDED_KEY
    encryption = f"Paillier, {key_bits:,}-bit key"

    def begin(self, log: Transcript, parties: Sequence[str], active: str, collector: str) -> None:
        super().begin(log, parties, active, collector)
        self._pair = paillier.generate(self.key_bits)
        key = self._pair.public
        for party in parties:
            log.send(COORDINATOR, party, "setup", 0, "public key", as_bytes([key.n, key.h]))
        slot = SLOT + (len(parties) - 1).bit_length()
        self._packing = Packing([SLOT] * ((key.largest.bit_length() - 1) // slot), additions=len(parties))

    def send(self, party: str, turn: int, answer: Array) -> None:
        self._shape, key = answer.shape, self._pair.public
        numbers = fixed_point(answer, SUM_FRACTION_BITS, TOO_LARGE).ravel()
        width = len(self._packing.widths)
        padded = np.pad(numbers, (0, -len(numbers) % width)).reshape(-1, width)
        sent = key.encrypt(self._packing.pack(padded.tolist())).to_array()
        if party != self.active:
            sent = self.log.send(party, self.active, "predict", turn, "encrypted answer", sent)
        self.answers[party] = sent

    def opened(self, turn: int) -> dict[str, Array]:
        key = self._pair.public
        total, *rest = [key.ciphertexts(answer) for answer in self.answers.values()]
        for one in rest:
            total = total + one
        sent = self.log.send(self.active, COORDINATOR, "predict", turn, "encrypted sum", total.to_array())
        numbers = self._packing.unpack(self._pair.decrypt(key.ciphertexts(sent)))
        flat: FloatArray = np.ldexp(np.array(numbers, dtype=np.float64).ravel(), -SUM_FRACTION_BITS)
        return {"sum": flat[: int(np.prod(self._shape))].reshape(self._shape)}


GATHERINGS: dict[str, type[Gathering]] = {"clear": Gathering, "shared": SharedSums, "paillier": PaillierSums}


def gathering_named(what: str, sums: object) -> str:
    """The setting, if there is such a way; `what` protocol it is of."""
    if not isinstance(sums, str) or sums not in GATHERINGS:
        known = list(GATHERINGS)
        raise BadInput(f"{what}: sums: expected {', '.join(known)}, got {sums!r}{suggest(str(sums), known)}")
    return sums
