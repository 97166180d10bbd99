"""What is known before anything is trained."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.auditing.planning.pre_training_check import precheck
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
