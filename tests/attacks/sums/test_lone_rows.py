"""Lone rows and solved errors: what gradients say of single rows without a residual being opened."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.attacks import Guess, attack_named
from plumbob.attacks.sums.solved_errors import solved_rounds
from plumbob.federation import halves, split_at_random
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.threats import THREATS, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table


def trained(batch: int, rate: float = 0.5) -> Transcript:
    rng = np.random.default_rng(0)
    federation = split_at_random(made_table(rows=60, classes=2), 1, rng)
    train, rest = halves(federation.label, rng)
    protocol = EncryptedLogisticRegression(key_bits=0, epochs=6, batch_size=batch, learning_rate=rate)
    return protocol.train(federation.rows(train), federation.rows(rest), rng)


def guess(name: str, threat: str, log: Transcript) -> Guess:
    return attack_named(name).run(cut(log, THREATS[threat]), np.random.default_rng(0))


def test_a_batch_of_one_row_is_that_row_with_its_class() -> None:
    log = trained(1, rate=0.1)
    found = guess("lone_rows", "coordinator", log)
    assert found.people is not None
    assert found.labels is not None
    people = np.hstack([log.sealed(party)["columns"] for party in log.parties])
    apart = np.abs(found.people[:, None] - people[None]).max(axis=2)
    assert sorted(apart.argmin(axis=1)) == list(range(len(people)))
    assert apart.min(axis=1).max() < 1e-6
    assert np.array_equal(found.labels, log.sealed(log.active)["label"][apart.argmin(axis=1)])


def test_sums_over_rows_are_no_people() -> None:
    found = guess("lone_rows", "coordinator", trained(4))
    assert (found.people, bool(found.untried)) == (None, True)


def test_a_batch_no_larger_than_own_columns_gives_the_order_of_its_rows() -> None:
    log = trained(8)
    hidden = log.sealed("passive")["columns"][:, 0]
    rounds, _ = solved_rounds(cut(log, THREATS["active-training"]))
    for one in rounds[1:]:  # in the first round all weights are 0
        assert one is not None
        weight = one.shares[:, 0] / hidden[one.rows]
        assert weight == pytest.approx(weight[0], rel=1e-6)


def test_a_larger_batch_is_said_to_be_one() -> None:
    assert "batches of 15 rows" in guess("solved_errors", "active-training", trained(15)).untried
