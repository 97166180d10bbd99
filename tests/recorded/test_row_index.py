"""Rows are found by their cells, exactly, whatever their type."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.recorded.row_index import UNKNOWN, RowIndex


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_])
def test_every_row_is_found_in_any_order(kind: type) -> None:
    rng = np.random.default_rng(0)
    table = np.unique(rng.integers(0, 2, (300, 30)), axis=0).astype(kind)
    order = rng.permutation(len(table))
    found = RowIndex(table).find(table[order])
    assert np.array_equal(found.rows, order)
    assert found.sure.all()


def test_whole_numbers_in_64_bits_do_not_collide() -> None:
    """Their bits end in dozens of zeros, which a sum of products alone would keep."""
    table = np.stack(np.meshgrid(np.arange(400.0), np.arange(400.0)), axis=-1).reshape(-1, 2)
    found = RowIndex(table).find(table)
    assert found.sure.all()


def test_a_row_that_differs_in_the_last_bit_is_not_found() -> None:
    table = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    other = table[:1].copy()
    other[0, 2] = np.nextafter(other[0, 2], np.float32(9))
    assert RowIndex(table).find(other).rows.tolist() == [UNKNOWN]


def test_zero_and_minus_zero_are_the_same_and_nan_is_found() -> None:
    table = np.array([[0.0, 1.0], [np.nan, 2.0]])
    assert RowIndex(table).find(np.array([[np.nan, 2.0], [-0.0, 1.0]])).rows.tolist() == [1, 0]


def test_twins_are_named_in_turn_and_never_sure() -> None:
    index = RowIndex(np.array([[1.0], [2.0], [1.0], [1.0]]))
    first, second = index.find(np.array([[1.0], [1.0]])), index.find(np.array([[1.0], [2.0]]))
    assert sorted([*first.rows, second.rows[0]]) == [0, 2, 3]
    assert not first.sure.any()
    assert second.sure.tolist() == [False, True]


def test_a_batch_of_another_width_is_unknown() -> None:
    assert RowIndex(np.ones((3, 2))).find(np.ones((2, 3))).rows.tolist() == [UNKNOWN, UNKNOWN]
