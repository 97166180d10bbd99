"""What is known before anything is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbob import audit
from plumbob.auditing.planning.pre_training_check import label_stand_ins, precheck, tells
from plumbob.federation import Column, Federation, Party


def federation(hidden: np.ndarray) -> Federation:
    rng = np.random.default_rng(0)
    own = rng.random((200, 2))
    own[:, 0] = rng.integers(0, 2, 200)
    values = np.column_stack([hidden(own), rng.random(200)])
    parties = (
        Party("bank", (Column("smoker"), Column("age")), own),
        Party("shop", (Column("nonsmoker"), Column("visits")), values),
    )
    return Federation(parties, "bank", rng.integers(0, 2, 200), ("0", "1"))


@pytest.mark.parametrize("secure", [False, True])
def test_a_column_that_the_curious_party_holds_already_is_named(secure: bool) -> None:
    (caution,) = precheck(federation(lambda own: 1 - own[:, 0]), secure=secure)
    assert caution.words == (
        "'bank' holds 1 of the columns of 'shop' already, up to scale and sign, whatever is trained: nonsmoker"
    )


@pytest.mark.parametrize("secure", [False, True])
def test_a_column_that_is_only_near_correlates(secure: bool) -> None:
    def near(own: np.ndarray) -> np.ndarray:
        flipped = own[:, 0].copy()
        flipped[:5] = 1 - flipped[:5]
        return flipped

    (caution,) = precheck(federation(near), secure=secure)
    assert caution.words == "1 of 2 columns of 'shop' correlate at 0.7 or more with a column of 'bank': nonsmoker"


def told(hidden: np.ndarray, label: np.ndarray) -> list[str]:
    """The warnings for a shop that holds this column and another one."""
    rng = np.random.default_rng(1)
    parties = (
        Party("bank", (Column("age"),), rng.random((len(label), 1))),
        Party("shop", (Column("x"), Column("visits")), np.column_stack([hidden, rng.random(len(label))])),
    )
    classes = tuple(str(k) for k in range(int(label.max()) + 1))
    return [caution.words for caution in label_stand_ins(Federation(parties, "bank", label, classes))]


LABEL = np.random.default_rng(2).integers(0, 2, 300)
THREE = np.random.default_rng(3).integers(0, 3, 300)
NOISE = np.random.default_rng(4).random(300)


@pytest.mark.parametrize(
    ("hidden", "label"),
    [
        (1.0 - LABEL, LABEL),
        (0.5 * LABEL + 0.4 * NOISE, LABEL),
        (np.where(np.arange(300) < 5, 1 - LABEL, LABEL) * 1.0, LABEL),
        (((THREE + 1) % 3) / 2, THREE),
        ((THREE == 1) * 0.5 + 0.3 * NOISE + 0.2 * (THREE == 2) * (NOISE > 2), (THREE == 1).astype(np.int64)),
    ],
    ids=["turned", "a limit", "a few wrong", "renamed classes", "one of three"],
)
def test_a_column_that_stands_for_the_label_is_named(hidden: np.ndarray, label: np.ndarray) -> None:
    assert told(hidden, label) == [
        "party 'shop': column 'x' stands for the label: whoever learns it learns the label, and 'shop' knows the label already"
    ]


@pytest.mark.parametrize(
    ("hidden", "label"),
    [
        (NOISE, LABEL),
        (np.where(np.arange(300) < 30, 1 - LABEL, LABEL) * 1.0, LABEL),
        (LABEL + 0.8 * np.random.default_rng(5).normal(size=300), LABEL),
        ((THREE > 0) * 1.0, THREE),
        (np.arange(300) / 299, LABEL),
        (NOISE, np.zeros(300, dtype=np.int64)),
    ],
    ids=["nothing", "1 in 10 wrong", "it hangs together", "two of three classes", "row numbers", "one class"],
)
def test_a_column_that_only_hangs_together_with_the_label_is_not(hidden: np.ndarray, label: np.ndarray) -> None:
    assert told(hidden, label) == []


def test_several_columns_of_one_party_share_a_sentence() -> None:
    parties = (
        Party("bank", (), np.zeros((300, 0))),
        Party("shop", (Column("x"), Column("y")), np.column_stack([LABEL, 1 - LABEL]) * 1.0),
        Party("post", (Column("z"),), NOISE[:, None]),
    )
    (caution,) = label_stand_ins(Federation(parties, "bank", LABEL, ("0", "1")))
    assert (caution.party, caution.reason) == ("shop", "label")
    assert "columns 'x', 'y' stand for the label: whoever learns one of them" in caution.words


def test_what_holds_by_chance_among_few_is_not_named() -> None:
    """Columns of noise, a rare class: in 400 draws none stands for it."""
    rng = np.random.default_rng(0)
    for _ in range(400):
        label = (np.arange(60) < rng.integers(1, 30)).astype(np.int64)
        assert not tells(rng.choice([rng.random(60), rng.integers(0, 4, 60) / 3.0]), label)


def test_the_notes_of_an_audit_name_it(tmp_path: Path) -> None:
    ids = {"id": np.arange(300)}
    bank, shop = pd.DataFrame(ids | {"age": NOISE, "paid": LABEL}), pd.DataFrame(ids | {"x": LABEL, "visits": THREE})
    options = {
        "protocols": "logistic_regression",
        "attacks": ["equation_solving"],
        "trials": 1,
        "out": tmp_path / "out",
    }
    result = audit(bank=bank, shop=shop, id="id", label="paid", **options)
    assert any("party 'shop': column 'x' stands for the label" in note for note in result.notes)
