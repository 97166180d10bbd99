"""An auditor finds every code; a passive party finds one in the second gradients of the first tree."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.crypto import plain
from plumbob.defences.sums._gradient_audit import audit_gradients, equal_second_gradients
from plumbob.errors import BadInput
from plumbob.protocols.sums._hidden_codes import LabelledGroups, MagicNumbers
from tests.protocols.sums.test_secure_boost import trained


@pytest.mark.parametrize("packed", [True, False])
def test_honest_gradients_are_explained_to_the_last_bit(packed: bool) -> None:
    assert all(tree.honest and tree.sums for tree in audit_gradients(trained(trees=3, packed=packed)))


@pytest.mark.parametrize("code", [MagicNumbers(base=4), LabelledGroups()], ids=repr)
def test_a_code_is_found(code: MagicNumbers) -> None:
    for tree in audit_gradients(trained(code=code, packed=False)):
        assert not tree.honest
        assert 0 < tree.bits <= code.bits + 1


def test_sums_changed_by_a_defence_are_refused() -> None:
    with pytest.raises(BadInput, match="a defence has changed"):
        audit_gradients(trained(blinding=True))


@pytest.mark.parametrize("bits", [0, 1_024])
def test_unequal_second_gradients_are_noticed(bits: int) -> None:
    key = plain.key_pair(bits)
    assert equal_second_gradients(key.public.encrypt([7] * 12), key)
    assert not equal_second_gradients(key.public.encrypt([7] * 11 + [7 + 2**40]), key)


def test_an_opening_cannot_be_forged() -> None:
    key = plain.paillier.generate(1_024)
    batch = key.public.encrypt([5, -3])
    masks = key.masks(batch)
    assert key.public.opens(batch, [5, -3], masks)
    assert not key.public.opens(batch, [5, -2], masks)
    assert not key.public.opens(batch, [5, -3], masks[::-1])
    assert np.all([mask > 1 for mask in masks])
