"""The same regression without a coordinator: each party has its own key, and what others decrypt is masked.

D is the sum of parts that the parties hold in clear, D_l = T_l X_l (and the label's part), so X_k' D = sum over l of X_k' D_l.
The own term is computed in clear. For every other party l, in one round:
    1  l sends k its part under l's own key, [[D_l]]_l                                                "share"
    2  k sends back [[X_k' D_l + r]]_l with a fresh r, random over almost the whole range of the key  "masked gradient"
    3  l opens that and returns the numbers, from which k takes r off                                 "opened gradient"

Who sees what: l sees X_k' D_l + r, which is random to it (within 2^-600 for keys of 1,024 bits). k sees ciphertexts of l, and
X_k' D_l: one number for each own column and round. The coordinator holds no key and gets no message: to corrupt it gives
nothing. The active party never learns the passive weights, nor a product T X of a single row, as long as a batch has more
rows than the party has columns (with a bias); smaller batches are refused, and all batches are
made equally large. Parties that collude pool what they see.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plumbob.crypto.plain import as_bytes, integers, key_pair
from plumbob.errors import BadInput
from plumbob.federation import IntArray
from plumbob.protocols.base import note
from plumbob.protocols.shared.taylor_regression import BigIntegers, Schedule
from plumbob.transcript import Transcript

if TYPE_CHECKING:
    from plumbob.crypto.plain import KeyPair
    from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression, WorkingParty

_SPARE = 8  # bits of a key that a masked number leaves free for its sum


def run_masked(
    protocol: EncryptedLogisticRegression, log: Transcript, parties: Sequence[WorkingParty], schedule: Schedule
) -> None:
    """All rounds; every party's gradients come from its own work and stay with it."""
    from plumbob.protocols.sums.encrypted_logistic_regression import key_bytes

    _refuse_small_batches(parties, schedule)
    pairs = {party.name: key_pair(protocol.key_bits) for party in parties}
    for sender in parties:
        for receiver in parties:
            if sender is not receiver:
                key = key_bytes(pairs[sender.name].public)
                log.send(sender.name, receiver.name, "setup", 0, "public key", key)
    own: list[list[int]] = [[] for _ in parties]
    for turn, rows in enumerate(schedule.rows):
        gradients = [_gradient(log, turn, party, parties, pairs, rows) for party in parties]
        for party, gradient, kept in zip(parties, gradients, own, strict=True):
            kept += gradient.ravel().tolist()
            party.step(gradient, len(rows), schedule.epoch(turn))
    note(log, parties[0].name, "own gradients", as_bytes(own[0]))
    for party, kept in zip(parties[1:], own[1:], strict=True):
        note(log, party.name, f"own gradients/{party.name}", as_bytes(kept))


def _gradient(
    log: Transcript,
    turn: int,
    party: WorkingParty,
    parties: Sequence[WorkingParty],
    pairs: dict[str, KeyPair],
    rows: IntArray,
) -> BigIntegers:
    """X' D of one party: its own part in clear, the others' by their help."""
    gradient: BigIntegers = party.share(rows) @ party.columns[rows]
    for other in parties:
        if other is not party:
            gradient = gradient + _helped(log, turn, party, other, pairs[other.name], rows)
    return gradient


def _helped(
    log: Transcript, turn: int, party: WorkingParty, other: WorkingParty, pair: KeyPair, rows: IntArray
) -> BigIntegers:
    key = pair.public
    share = key.encrypt(other.share(rows).ravel()).to_array()
    received = key.ciphertexts(log.send(other.name, party.name, "train", turn, "share", share))
    masks = [secrets.randbits(key.bits - _SPARE) for _ in range(party.weights.size)]
    masked = (party.encrypted_gradient(received, rows) + masks).rerandomised().to_array()
    arrived = key.ciphertexts(log.send(party.name, other.name, "train", turn, "masked gradient", masked))
    numbers = as_bytes(pair.decrypt(arrived))  # type: ignore[arg-type]  # a batch of this very key
    answer = integers(log.send(other.name, party.name, "train", turn, "opened gradient", numbers))
    return party.shaped([number - mask for number, mask in zip(answer, masks, strict=True)])


def _refuse_small_batches(parties: Sequence[WorkingParty], schedule: Schedule) -> None:
    """As many equations X_k' D_l as rows would give D_l away, row by row."""
    smallest = min(len(rows) for rows in schedule.rows)
    widest = max(party.columns.shape[1] for party in parties)
    if smallest <= widest:
        raise BadInput(
            f"masked regression: the smallest batch has {smallest:,} rows, and a party has {widest:,} columns with its "
            f"bias, which would open each row; take larger batches"
        )
