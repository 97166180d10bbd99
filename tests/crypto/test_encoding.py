"""Packing: exact both ways, and no slot ever carries into the next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbob.crypto.encoding import Packing
from plumbob.crypto.paillier import generate
from plumbob.errors import BadInput


@given(st.data())
def test_sums_of_packed_numbers_unpack_to_sums(data: st.DataObject) -> None:
    widths = data.draw(st.lists(st.integers(2, 70), min_size=1, max_size=5))
    additions = data.draw(st.integers(1, 9))
    slots = [st.integers(1 - 2 ** (width - 1), 2 ** (width - 1) - 1) for width in widths]
    extremes = [st.sampled_from([1 - 2 ** (width - 1), 2 ** (width - 1) - 1]) for width in widths]
    rows = data.draw(st.lists(st.tuples(*slots) | st.tuples(*extremes), min_size=1, max_size=additions))
    packing = Packing(widths, additions)
    total = sum(packing.pack(rows))
    assert abs(total) < 2**packing.bits
    assert packing.unpack([total]) == [[sum(column) for column in zip(*rows, strict=True)]]


@pytest.mark.parametrize("value", [8, -8, 1_000])
def test_a_value_that_would_carry_is_refused(value: int) -> None:
    with pytest.raises(BadInput, match=f"packing: {value} needs more than 4 bits"):
        Packing([4, 4]).pack([[0, value]])


def test_a_number_with_too_many_additions_in_its_last_slot_is_refused() -> None:
    packing = Packing([4], additions=2)
    with pytest.raises(BadInput, match="more than 2 additions"):
        packing.unpack([5 * packing.pack([[7]])[0]])


def test_packing_that_cannot_be_is_refused() -> None:
    for attempt, words in (
        (lambda: Packing([]), "at least one width"),
        (lambda: Packing([1]), "width of a packed number"),
        (lambda: Packing([8], additions=0), "additions of packed numbers"),
        (lambda: Packing([8]).pack([[0.5]]), "expected whole numbers, got 0.5"),
        (lambda: Packing([8, 8]).pack([[1]]), "expected 2 values in a row, got 1"),
    ):
        with pytest.raises(BadInput, match=words):
            attempt()


def test_arrays_are_packed_row_by_row() -> None:
    packing = Packing([10, 10])
    assert packing.unpack(packing.pack(np.array([[1, -2], [3, 4]]))) == [[1, -2], [3, 4]]


def test_packed_numbers_are_summed_under_encryption() -> None:
    key, packing = generate(1_024), Packing([20] * 37, additions=100)
    rows = np.random.default_rng(0).integers(1 - 2**19, 2**19, (100, 37))
    assert packing.bits < key.public.largest.bit_length() - 1
    total = key.public.encrypt(packing.pack(rows)).sum()
    assert packing.unpack(key.decrypt(total)) == [rows.sum(axis=0).tolist()]
