"""ye2022: how what was found is measured."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.papers.ye2022.federations import agreement_either_way, attack_accuracy, with_sums

pytestmark = pytest.mark.nodata


def test_the_papers_accuracy_counts_an_opposite_as_wrong() -> None:
    column = np.array([[1.0], [1.0], [0.0], [0.0], [1.0]])
    near = np.array([[1.0], [0.0], [0.0], [0.0], [1.0]])
    assert attack_accuracy(near, column).tolist() == [[0.8]]
    assert attack_accuracy(1 - column, column).tolist() == [[0.0]]
    assert agreement_either_way(1 - column, column).tolist() == [[1.0]]


def test_a_vector_of_nothing_is_right_in_half_of_the_rows_at_least_either_way_but_not_as_the_paper_counts() -> None:
    rng = np.random.default_rng(0)
    columns, vectors = ((rng.random((2_000, 4)) < 0.5) * 1.0 for _ in range(2))
    assert attack_accuracy(vectors, columns).min() < 0.5 <= agreement_either_way(vectors, columns).min()


def test_sums_of_codes_count_too() -> None:
    codes = np.eye(3)[np.array([0, 1, 2, 0, 1])]
    assert attack_accuracy((codes[:, :1] + codes[:, 2:]), with_sums(codes)).max() == 1.0


def test_without_a_vector_there_is_no_accuracy() -> None:
    assert attack_accuracy(np.zeros((5, 0)), np.ones((5, 2))).shape == (0, 2)
