"""The form of a message is what its bytes or our own code show; the names in a run of others are what somebody says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.costs import made
from plumbob.auditing.running.data_flows import CLEAR, ENCRYPTED, HIDDEN, SAID_ENCRYPTED, SAID_HIDDEN, flows_of
from plumbob.bundle import Array
from plumbob.crypto.paillier import generate
from plumbob.crypto.plain import as_bytes
from plumbob.federation import split
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.transcript import COORDINATOR, Transcript
from tests.worlds import made_table

KEY = generate(1_024).public
SECRET = KEY.encrypt(list(range(8))).to_array()
WIDTH = KEY.width


def run(*sent: tuple[str, str, str, Array]) -> Transcript:
    log = Transcript("toy", "bank", ("bank", "shop", "club"), (), ("no", "yes"))
    for sender, receiver, name, payload in sent:
        log.send(sender, receiver, "train", 0, name, payload)
    return log


def form(log: Transcript, *, recorded: bool) -> str:
    """Of the last message."""
    return flows_of(log, recorded=recorded)[-1].form


def key(sender: str = "bank", receiver: str = "shop", n: int = KEY.n) -> tuple[str, str, str, Array]:
    return sender, receiver, "key", as_bytes([n])


@pytest.mark.parametrize("name", ["psi rows", "psi request", "encrypted sums"])
def test_numbers_that_are_called_encrypted_are_said_to_be(name: str) -> None:
    log = run(key(), ("shop", "bank", name, np.linspace(0, 1, 8)))
    assert form(log, recorded=True) == SAID_ENCRYPTED
    assert form(log, recorded=False) == CLEAR  # no protocol of ours sends numbers under such a name


@pytest.mark.parametrize("name", ["masked x", "masked outputs", "opened gradient"])
def test_numbers_that_are_called_masked_are_said_to_be(name: str) -> None:
    log = run(("shop", "bank", name, np.linspace(0, 1, 8)))
    assert form(log, recorded=True) == SAID_HIDDEN
    assert form(log, recorded=False) == CLEAR


@pytest.mark.parametrize("recorded", [False, True])
def test_ciphertexts_of_a_key_at_both_ends_are_encrypted_whatever_their_name(recorded: bool) -> None:
    assert form(run(key(), ("shop", "bank", "answer", SECRET)), recorded=recorded) == ENCRYPTED
    assert form(run(key(), ("bank", "shop", "answer", SECRET)), recorded=recorded) == ENCRYPTED
    helped = (key(COORDINATOR, "bank"), key(COORDINATOR, "shop"))
    assert form(run(*helped, ("shop", "bank", "answer", SECRET)), recorded=recorded) == ENCRYPTED


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "sent",
    [
        (("shop", "bank", "answer", SECRET), key()),  # the key came later
        (key(), ("shop", "club", "answer", SECRET)),  # the club has no key
        (key(), ("shop", "bank", "answer", np.hstack([SECRET, SECRET]))),  # wider
        (key(), ("shop", "bank", "answer", SECRET[:, :-1])),  # narrower
        (key(), ("shop", "bank", "answer", SECRET.astype(np.int64))),
        (key(n=(1 << 63) + 1), ("shop", "bank", "answer", SECRET[:, :16])),  # no key that hides anything
        (("bank", "shop", "key", np.zeros((1, 8), np.uint8)), ("shop", "bank", "answer", np.zeros((4, 784), np.uint8))),
    ],
)
def test_bytes_beside_a_key_are_no_ciphertexts_by_that(sent: tuple, recorded: bool) -> None:
    found = {flow.name: flow.form for flow in flows_of(run(*sent), recorded=recorded)}
    assert found["answer"] == CLEAR


@pytest.mark.parametrize(
    "cells",
    [
        np.tile(np.arange(WIDTH, dtype=np.uint8), (4, 1)),
        np.random.default_rng(0).integers(0, 16, (4, WIDTH), dtype=np.uint8),  # a picture in few shades
        np.full((1, WIDTH), 255, dtype=np.uint8),  # above n^2
        np.repeat(SECRET[:1], 3, axis=0),
    ],
)
def test_a_recorded_picture_as_wide_as_a_ciphertext_is_a_picture(cells: Array) -> None:
    assert form(run(key(), ("shop", "bank", "answer", cells)), recorded=True) == CLEAR


def test_masked_training_sends_shares_under_keys_and_opened_gradients_under_masks() -> None:
    federation, _ = made(120, 6, 2).deal(0.5, np.random.default_rng(0))
    rows, others = federation.rows(np.arange(60)), federation.rows(np.arange(60, 120))
    protocol = EncryptedLogisticRegression(key_bits=1_024, epochs=1, masked=True)
    found = {flow.name: flow.form for flow in flows_of(protocol.train(rows, others, np.random.default_rng(0)))}
    assert (found["share"], found["masked gradient"]) == (ENCRYPTED, ENCRYPTED)
    assert found["opened gradient"] == HIDDEN
    assert found["public key"] == CLEAR


def test_masked_outputs_of_our_own_network_are_masked_and_of_a_recording_said_to_be() -> None:
    table = made_table(rows=40, columns=6, classes=2)
    owners = {"a": list(table.names[:2]), "b": list(table.names[2:4]), "c": list(table.names[4:])}
    federation = split(table, owners, "a")
    log = SplitNetwork(epochs=1, aggregation="masked", hidden=[4, 4]).train(
        federation, federation, np.random.default_rng(0)
    )
    for recorded, expected in ((False, HIDDEN), (True, SAID_HIDDEN)):
        found = {flow.name: flow.form for flow in flows_of(log, recorded=recorded)}
        assert {found["masked outputs"], found["masked embeddings"]} == {expected}
        assert found["output gradients"] == CLEAR
