"""The Chebyshev centre: what a general solver finds, never worse than the relaxation promises, and always in the box."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from plumbob.attacks import attack_named
from plumbob.attacks.scores import _relaxed_centre
from plumbob.attacks.scores._box_equations import reduce
from plumbob.attacks.scores._relaxed_centre import relaxed_centre
from plumbob.attacks.scores.equation_solving import equations
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, cut
from tests.worlds import world


def problem(equations_: int, columns: int, rows: int, skewed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Equations with orthonormal rows, and points of the box; skewed ones lie near its border."""
    rng = np.random.default_rng([equations_, columns, skewed])
    left = rng.normal(size=(equations_, columns)) * (rng.exponential(size=columns) ** 3 if skewed else 1.0)
    matrix, _ = reduce(left, np.zeros((1, equations_)))
    return matrix, rng.random((rows, columns)) ** (4 if skewed else 1)


def most_variance(matrix: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """The mean x of the most variance, over x and a factor of S, by a general solver."""
    basis = np.linalg.svd(matrix, full_matrices=True)[2][len(matrix) :].T
    free = basis.shape[1]
    lower = np.tril_indices(free)

    def room(z: np.ndarray) -> np.ndarray:
        x, factor = inside + basis @ z[:free], np.zeros((free, free))
        factor[lower] = z[free:]
        return x * (1.0 - x) - ((basis @ factor) ** 2).sum(axis=1)

    rng, best = np.random.default_rng(0), None
    for _ in range(3):
        start = np.concatenate([np.zeros(free), 0.1 * rng.normal(size=len(lower[0]))])
        solved = minimize(
            lambda z: -(z[free:] ** 2).sum(),
            start,
            constraints={"type": "ineq", "fun": room},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        if room(solved.x).min() > -1e-8 and (best is None or solved.fun < best.fun):
            best = solved
    assert best is not None
    return np.asarray(inside + basis @ best.x[:free])


@pytest.mark.parametrize(("equations_", "columns"), [(1, 4), (2, 4), (3, 6)])
@pytest.mark.parametrize("skewed", [False, True])
def test_the_centre_is_the_one_a_general_solver_finds(equations_: int, columns: int, skewed: bool) -> None:
    matrix, inside = problem(equations_, columns, 2, skewed)
    found = relaxed_centre(matrix, inside @ matrix.T)
    for row in range(2):
        assert found[row] == pytest.approx(most_variance(matrix, inside[row]), abs=1e-5)


@pytest.mark.parametrize(("equations_", "columns"), [(1, 6), (5, 22)])
def test_where_the_projection_of_one_half_is_certified_the_newton_steps_find_it_too(
    equations_: int, columns: int
) -> None:
    matrix, inside = problem(equations_, columns, 30, skewed=False)
    basis = np.linalg.svd(matrix, full_matrices=True)[2][equations_:].T
    half = inside + (0.5 - inside) @ basis @ basis.T
    certified = _relaxed_centre._projection_is_best(matrix, half)
    assert certified.any()
    assert _relaxed_centre._by_barrier(basis, inside)[certified] == pytest.approx(half[certified], abs=1e-5)


def test_one_open_direction_gives_the_middle_of_the_segment() -> None:
    matrix, targets = reduce(np.array([[1.0, -2.0]]), np.array([[0.2], [-1.5], [1.0]]))
    ends = [[(0.2, 0.0), (1.0, 0.4)], [(0.0, 0.75), (0.5, 1.0)], [(1.0, 0.0), (1.0, 0.0)]]
    assert relaxed_centre(matrix, targets) == pytest.approx(np.mean(ends, axis=1), abs=1e-6)


def test_rows_that_fix_cells_at_the_border_are_solved() -> None:
    """x + y = 0 leaves no room for two of four columns; x + y = 2 none either; the others meet z - w = 0.5."""
    matrix, targets = reduce(np.array([[1.0, 1, 0, 0], [0, 0, 1, -1]]), np.array([[0.0, 0.5], [2.0, 0.5]]))
    expected = np.array([[0.0, 0, 0.75, 0.25], [1.0, 1, 0.75, 0.25]])
    assert relaxed_centre(matrix, targets) == pytest.approx(expected, abs=1e-4)


def test_equations_that_no_point_fits_get_a_nearest_point() -> None:
    matrix, targets = reduce(np.array([[1.0, 1, 1]]), np.array([[9.0], [-4.0]]))
    assert relaxed_centre(matrix, targets) == pytest.approx(np.array([[1.0] * 3, [0.0] * 3]), abs=1e-4)


def test_rows_of_many_columns_are_given_points_that_fit() -> None:
    matrix, inside = problem(2, 120, 5, skewed=True)
    found = relaxed_centre(matrix, inside @ matrix.T)
    assert np.abs((found - inside) @ matrix.T).max() < 1e-6
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize("unknown", [2, 3, 5])
def test_the_guess_fits_the_scores_and_the_ranges(unknown: int) -> None:
    log = world(unknown=unknown)
    view = cut(log, LUO2021)
    values = attack_named("chebyshev_centre").run(view, np.random.default_rng(0)).values
    assert values is not None
    assert values.min() >= 0
    assert values.max() <= 1
    system = equations(view)
    assert np.abs(values @ system.left.T - system.right).max() < 1e-6
    if unknown == 2:  # as many equations as columns
        assert values == pytest.approx(truth_of(log, view).values, abs=1e-8)
