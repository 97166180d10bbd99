"""Encrypted logistic regression: ciphertexts compute what integers compute, integers what doubles compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.crypto import plain
from plumbob.crypto.plain import integers
from plumbob.errors import BadInput
from plumbob.federation import Federation, split
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.shared.taylor_regression import Rule, members, partition
from plumbob.protocols.sums.encrypted_logistic_regression import (
    EncryptedLogisticRegression,
    opened_batch,
    plaintext_taylor,
)
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.worlds import made_table


def parties(rows: int = 60, passive: int = 1, classes: int = 2, seed: int = 0) -> tuple[Federation, Federation]:
    table = made_table(rows=rows + 20, columns=3 + 2 * passive, classes=classes, seed=seed)
    owners = {"active": table.names[:3]}
    owners |= {f"p{i}": table.names[3 + 2 * i : 5 + 2 * i] for i in range(passive)}
    whole = split(table, owners, "active")
    return whole.rows(np.arange(rows)), whole.rows(np.arange(rows, rows + 20))


def run(passive: int = 1, classes: int = 2, rows: int = 60, **choices: object) -> Transcript:
    made = {"key_bits": 0, "batch_size": 20, "epochs": 3, "learning_rate": 0.3} | choices
    return EncryptedLogisticRegression(**made).train(*parties(rows, passive, classes), np.random.default_rng(3))


def weights(log: Transcript) -> np.ndarray:
    sealed = log.sealed(COORDINATOR)
    return np.vstack([sealed["model/weights"], sealed["model/bias"]])


@pytest.mark.parametrize(("passive", "classes"), [(1, 2), (2, 3)])
@pytest.mark.parametrize("choice", [{}, {"returns": "coefficients"}, {"masked": True}], ids=str)
def test_ciphertexts_give_the_very_integers_of_a_run_without_a_key(
    passive: int, classes: int, choice: dict[str, object]
) -> None:
    one = run(passive, classes, penalty=0.01, decay=0.1)
    two = run(passive, classes, penalty=0.01, decay=0.1, key_bits=1_024, **choice)
    assert (weights(one) == weights(two)).all()
    if not choice.get("masked"):
        note = "notes/opened residuals"
        assert integers(one.sealed(COORDINATOR)[note]) == integers(two.sealed(COORDINATOR)[note])


@pytest.mark.parametrize("classes", [2, 4])
def test_integers_give_the_weights_of_double_precision(classes: int) -> None:
    protocol = EncryptedLogisticRegression(
        key_bits=0, batch_size=16, epochs=30, learning_rate=0.2, penalty=0.01, decay=0.05
    )
    trained, others = parties(classes=classes)
    log = protocol.train(trained, others, np.random.default_rng(3))
    plainly = plaintext_taylor(trained, protocol, np.random.default_rng(3))
    assert np.abs(weights(log) - np.vstack([plainly.weights, plainly.bias])).max() < 1e-6
    assert log.sealed(COORDINATOR)["test accuracy"][0] == plainly.accuracy(others.values, others.label)


@given(st.integers(1, 3), st.sampled_from([2, 3]), st.integers(8, 60), st.integers(0, 99), st.booleans())
@settings(max_examples=15, deadline=None)
def test_gradients_are_exact_integers(passive: int, classes: int, bits: int, seed: int, told: bool) -> None:
    """Every gradient that is returned is X' (X T - 2^(2f+1) y) to the last bit, with weights that follow from the rule."""
    trained, others = parties(40, passive, classes, seed)
    returns = "coefficients" if told else "gradients"
    protocol = EncryptedLogisticRegression(
        key_bits=0, batch_size=15, epochs=2, learning_rate=0.3, penalty=0.02, fraction_bits=bits, returns=returns
    )
    log = protocol.train(trained, others, np.random.default_rng(seed))
    rule = protocol.rule
    batches = members(partition(len(trained), 15, np.random.default_rng(seed)))
    joint = {p.name: rule.encode(p.values) for p in trained.parties}
    joint["active"] = np.hstack([joint["active"], np.full((len(trained), 1), 1 << bits, dtype=object)])
    models = 1 if classes == 2 else classes
    current = {name: np.zeros((models, x.shape[1]), dtype=object) for name, x in joint.items()}
    for turn in range(2 * len(batches)):
        rows = batches[turn % len(batches)]
        signs = np.stack(
            [np.where(trained.label[rows] == one, 1, -1) for one in ([1] if models == 1 else range(models))]
        )
        slopes = sum(current[name] @ x[rows].T for name, x in joint.items()) - signs.astype(object) * 2 ** (
            2 * bits + 1
        )
        for name, x in joint.items():
            gradient = slopes @ x[rows]
            current[name] = rule.stepped(current[name], gradient, len(rows), turn // len(batches), name == "active")
            sent = next(m for m in log.messages if (m.name, m.round, m.receiver) == (returns, turn, name))
            assert integers(sent.payload) == (current[name] if told else gradient).ravel().tolist()


def test_a_step_rounds_to_the_nearest_integer() -> None:
    rule = Rule(0.5, 0.0, 0.25, 8)
    stepped = rule.stepped(
        np.array([[100, 100]], dtype=object), np.array([[12 << 18, -(13 << 18)]], dtype=object), 1, 0, True
    )
    assert stepped.tolist() == [[100 - 19, 100 + 6]]  # 18.5 and -6.5 are rounded up; the bias is not penalised


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=40))
@settings(max_examples=10, deadline=None)
def test_packed_opening_reads_what_opening_reads(numbers: list[int]) -> None:
    pair = _KEY
    assert opened_batch(pair, pair.public.encrypt(numbers), 72) == numbers


_KEY = plain.key_pair(1_024)


def test_no_part_of_a_private_key_is_in_a_transcript_or_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def remembered(bits: int) -> plain.KeyPair:
        made.append(plain.key_pair(bits))
        return made[-1]

    monkeypatch.setattr("plumbob.protocols.sums.encrypted_logistic_regression.key_pair", remembered)
    monkeypatch.setattr("plumbob.protocols.sums._masked_regression.key_pair", remembered)
    for masked in (False, True):
        log = run(key_bits=1_024, epochs=1, masked=masked)
        log.save(tmp_path / f"{masked}")
        cut(log, THREATS["corrupted-coordinator"]).save(tmp_path / f"{masked} view")
    assert len(made) == 3
    files = b"".join(path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file())
    for pair in made:
        n = pair.public.n.to_bytes(128, "big")
        assert n in files  # what is public is found in this way, so what is private would be
        for secret in (int(pair._p), int(pair._q)):
            for order in ("big", "little"):
                assert secret.to_bytes(64, order) not in files


def test_what_is_sent_twice_looks_different_each_time() -> None:
    log = run(key_bits=1_024, epochs=1, batch_size=60)
    ciphertexts = [
        row.tobytes() for m in log.messages if m.phase == "train" and m.payload.shape[1] == 256 for row in m.payload
    ]
    assert len(set(ciphertexts)) == len(ciphertexts) == 60 + 60 + 6


def test_all_epochs_use_the_same_batches() -> None:
    batches = members(partition(50, 16, np.random.default_rng(0)))
    assert [len(rows) for rows in batches] == [16, 16, 16, 2]
    assert sorted(np.concatenate(batches).tolist()) == list(range(50))
    assert [len(rows) for rows in members(partition(50, 16, np.random.default_rng(0), even=True))] == [13, 12, 13, 12]


@pytest.mark.parametrize("batches", ["epoch", "iteration"])
def test_batches_can_be_drawn_anew(batches: str) -> None:
    log = run(batches=batches, rows=50, batch_size=16)
    told = [m for m in log.messages if m.name == "batch"]
    assert [m.round for m in told] == list(range(12))
    assert "batches" not in {m.name for m in log.messages}
    epochs = [np.concatenate([m.payload for m in told[i : i + 4]]) for i in (0, 4, 8)]
    assert len({rows.tobytes() for rows in epochs}) == 3
    whole = [sorted(rows.tolist()) == list(range(50)) for rows in epochs]
    assert whole == [batches == "epoch"] * 3
    assert all(len(set(m.payload.tolist())) == len(m.payload) for m in told)


@pytest.mark.parametrize("batches", ["epoch", "iteration"])
def test_batches_drawn_anew_give_the_weights_of_double_precision(batches: str) -> None:
    trained, others = parties()
    protocol = EncryptedLogisticRegression(key_bits=0, batch_size=20, epochs=3, decay=0.1, batches=batches)
    log = protocol.train(trained, others, np.random.default_rng(3))
    plainly = plaintext_taylor(trained, protocol, np.random.default_rng(3))
    assert weights(log)[:-1] == pytest.approx(plainly.weights, abs=1e-6)


def test_a_mask_leaves_nothing_to_the_coordinator_and_no_product_of_a_row_in_clear() -> None:
    log = run(key_bits=1_024, masked=True)
    view = cut(log, THREATS["corrupted-coordinator"])
    assert "opened residuals" not in view.notes
    assert {m.name for m in log.messages if COORDINATOR in (m.sender, m.receiver)} == {"settings"}
    opened = [v for m in log.messages if m.name == "opened gradient" for v in integers(m.payload)]
    assert min(value.bit_length() for value in opened) > 900  # masks fill the key; the numbers below have 100 bits


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"key_bits": 512}, "key_bits"),
        ({"returns": "nothing"}, "returns"),
        ({"masked": True}, "needs a key"),
        ({"masked": True, "key_bits": 1_024, "batch_size": 4}, "larger batches"),
        ({"batches": "never"}, "expected one of once, epoch, iteration, got 'never'"),
        ({"masked": True, "key_bits": 1_024, "batches": "iteration"}, "masked needs batches: once, got iteration"),
        ({"learning_rate": 0}, "above 0"),
        ({"penalty": -1}, "at least 0"),
        ({"fraction_bits": 61}, "fraction_bits"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(choice: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        run(**choice)


def test_it_is_listed_and_prints_itself() -> None:
    assert PROTOCOLS["encrypted_logistic_regression"] is EncryptedLogisticRegression
    assert repr(EncryptedLogisticRegression(epochs=7)).startswith(
        "EncryptedLogisticRegression(key_bits=2048, batch_size=64, epochs=7"
    )
