"""One gradient of a batch, taken apart: every row that is claimed is one, and sparse ones are all found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plumbob.attacks.gradients._batch_unmixing import Unmixed, unmixed


def planted(rng: np.random.Generator, rows: int, cells: int, dark: float) -> tuple[np.ndarray, np.ndarray]:
    """Inputs behind a ReLU, zero at a share `dark` of the cells, and the gradients above them."""
    inputs = np.abs(rng.standard_normal((rows, cells))) * (rng.random((rows, cells)) > dark)
    return inputs, rng.standard_normal((rows, 3 * rows)) * np.exp(rng.standard_normal((rows, 1)))


def taken(inputs: np.ndarray, above: np.ndarray, dtype: type = np.float32) -> Unmixed:
    return unmixed((above.T @ inputs).astype(dtype), above.sum(axis=0).astype(dtype), np.random.default_rng(0))


def whose(found: Unmixed, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every direction the row it is nearest to, and how far it is from it."""
    cosines = found.directions @ (inputs / np.linalg.norm(inputs, axis=1, keepdims=True)).T
    return cosines.argmax(axis=1), 1 - cosines.max(axis=1)


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 12), dark=st.floats(0.25, 0.8), seed=st.integers(0, 10**6))
@example(rows=12, dark=0.25, seed=5259)  # the last row takes a dozen programmes
def test_all_rows_come_out_of_one_gradient_with_their_lengths(rows: int, dark: float, seed: int) -> None:
    inputs, above = planted(np.random.default_rng(seed), rows, 600, dark)
    found = taken(inputs, above)
    row, off = whose(found, inputs)
    assert sorted(row) == list(range(rows))
    assert off.max() < 1e-8
    assert np.allclose(found.lengths, np.linalg.norm(inputs, axis=1)[row], rtol=1e-3)


def test_a_batch_of_40_comes_out_too() -> None:
    inputs, above = planted(np.random.default_rng(1), 40, 1_500, 0.4)
    row, off = whose(taken(inputs, above), inputs)
    assert sorted(row) == list(range(40))
    assert off.max() < 1e-8


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(2, 8), cells=st.integers(10, 80), dark=st.floats(0.0, 0.5), seed=st.integers(0, 10**6))
def test_nothing_is_claimed_that_is_no_row(rows: int, cells: int, dark: float, seed: int) -> None:
    """Few cells, few zeros: then few rows are found, but none that is not there."""
    inputs, above = planted(np.random.default_rng(seed), rows, cells, dark)
    kept = (inputs > 0).any(axis=1)
    found = taken(inputs[kept], above[kept], np.float64)
    assert (whose(found, inputs[kept])[1] < 1e-9).all() if kept.any() else len(found.directions) == 0


def test_inputs_without_zeros_are_not_taken_apart() -> None:
    inputs, above = planted(np.random.default_rng(0), 6, 300, 0.0)
    assert len(taken(inputs + 0.1, above).directions) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_one_gradient_between_them_stay_one(dtype: type) -> None:
    """Where two rows have the same v only the sum of their inputs is in the gradient; lengths then are of that sum."""
    inputs, above = planted(np.random.default_rng(2), 5, 800, 0.5)
    above[4] = above[3]
    found = taken(inputs, above, dtype)
    sums = np.vstack([inputs[:3], inputs[3] + inputs[4]])
    row, off = whose(found, sums)
    assert sorted(row) == [0, 1, 2, 3]
    assert off.max() < 1e-8


def test_a_gradient_of_nothing_gives_nothing() -> None:
    assert len(unmixed(np.zeros((4, 9), dtype=np.float32), np.zeros(4), np.random.default_rng(0)).directions) == 0


def test_without_a_bias_lengths_stay_open() -> None:
    inputs, above = planted(np.random.default_rng(3), 4, 500, 0.5)
    found = unmixed((above.T @ inputs).astype(np.float32), None, np.random.default_rng(0))
    assert len(found.directions) == 4
    assert np.isnan(found.lengths).all()
