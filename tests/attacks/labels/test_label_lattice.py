"""Label lattice: own gradients of encrypted regression give the labels away, batch by batch or over redrawn batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks.labels._sign_lattice import exact_signs, likely_signs
from plumbob.attacks.labels.label_lattice import LabelLattice
from plumbob.errors import BadInput
from plumbob.federation import IntArray, halves, split_at_random
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.threats import THREATS, View, cut
from tests.worlds import made_table


def seen(rows: int = 160, classes: int = 2, **settings: object) -> tuple[View, IntArray]:
    """What a passive party with ten columns sees, and the labels."""
    rng = np.random.default_rng(3)
    federation = split_at_random(made_table(rows=rows, columns=16, classes=classes, seed=3), 10, rng)
    train, others = halves(federation.label, rng)
    trainer = federation.rows(train)
    protocol = EncryptedLogisticRegression(**{"key_bits": 0, "open_all": False} | settings)  # type: ignore[arg-type]  # by name
    return cut(protocol.train(trainer, federation.rows(others), rng), THREATS["passive-training"]), trainer.label


def right(view: View, label: IntArray) -> float:
    return float(np.mean(LabelLattice().run(view, np.random.default_rng(0)).labels == label))


@pytest.mark.parametrize("returns", ["gradients", "coefficients"])
def test_batches_of_three_times_the_columns_are_solved(returns: str) -> None:
    view, label = seen(rows=120, batch_size=30, epochs=4, returns=returns)
    assert right(view, label) == 1.0


def test_batches_drawn_anew_are_solved_by_regression_alone() -> None:
    view, label = seen(rows=240, batch_size=60, epochs=20, batches="epoch")
    assert right(view, label) == 1.0


def test_several_classes_are_read_model_by_model() -> None:
    view, label = seen(rows=80, classes=3, batch_size=20, epochs=2)
    assert right(view, label) == 1.0


def test_masking_hides_no_label_from_a_party_that_has_its_own_gradients() -> None:
    view, label = seen(rows=32, batch_size=16, epochs=1, key_bits=1_024, masked=True)
    assert right(view, label) == 1.0


def test_one_exact_sum_of_signs_is_solved_as_a_knapsack() -> None:
    rng = np.random.default_rng(0)
    columns = np.array([[int(x)] for x in rng.integers(1 << 60, size=24)], dtype=object)
    signs = rng.choice([-1, 1], 24)
    found = exact_signs(columns, np.array(signs.astype(object) @ columns), np.full(24, 0.5), rng)
    assert found is not None
    assert (found.signs == signs).all()
    assert found.odds < -20


def test_sums_of_too_many_signs_are_not_called_solved() -> None:
    rng = np.random.default_rng(0)
    sums_by = np.linalg.qr(rng.normal(size=(60, 3)))[0].T
    found = likely_signs(sums_by, sums_by @ rng.choice([-1.0, 1.0], 60), np.full(60, 0.5), rng)
    assert found is None or found.odds > 0


def test_repeated_rows_and_a_batch_of_all_rows_are_answered() -> None:
    view, label = seen(rows=60, batch_size=500, epochs=2)
    repeated = replace(view, own=np.tile(view.own[:1], (len(view.own), 1)))
    assert len(LabelLattice().run(repeated, np.random.default_rng(0)).labels) == len(label)


def test_without_gradients_one_sentence_says_so() -> None:
    view, _ = seen(batch_size=30, epochs=1)
    silent = replace(view, messages=tuple(m for m in view.messages if m.name != "gradients"))
    with pytest.raises(BadInput, match="expected gradients or coefficients"):
        LabelLattice().run(silent, np.random.default_rng(0))
