"""All solutions of a few nonlinear equations in the box: Levenberg-Marquardt from many starts, for all rows at once.

f(x_i) = z_i with x_i in [0, 1]^d. From each start, with r = z - f(x) and J the slopes of f,
    x <- clip(x + (J'J + mu I)^-1 J'r),   cells that lie on a border and would leave the box held for this step
where |r| falls, and a larger mu where it does not. Starts that arrive at the same point count once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.federation import FloatArray

Function = Callable[[FloatArray], FloatArray]

LEVENBERG_ROUNDS = 80
PROBLEMS_TOGETHER = 16_384  # rows times starts: few enough to stay in the cache
ARRIVED = 1e-9  # largest miss of an answer, of the answers' spread
APART = 1e-4  # solutions that differ by less in every cell are one
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-14, 1e7


@dataclass(frozen=True)
class SolvedRows:
    """The distinct solutions of each row, and the closest miss where there is none."""

    points: FloatArray  # rows x starts x columns
    distinct: NDArray[np.bool_]  # rows x starts: one for each solution
    closest: FloatArray  # rows x columns: the point with the smallest miss

    @property
    def counts(self) -> NDArray[np.intp]:
        """How many solutions each row has."""
        return np.asarray(self.distinct.sum(axis=1))


def solutions(
    outputs: Function, tangents: Function, answers: FloatArray, starts: FloatArray, arrived: float = ARRIVED
) -> SolvedRows:
    """Solutions of every row: what misses no answer by more than `arrived` of the spread. All rows have the same `starts`."""
    rows, (count, columns) = len(answers), starts.shape
    spread = np.maximum(answers.std(axis=0), 1e-12 + 1e-3 * float(answers.std(axis=0).max(initial=0.0)))
    points, misses = np.empty((rows, count, columns)), np.empty((rows, count))
    step = max(1, PROBLEMS_TOGETHER // count)
    for begin in range(0, rows, step):
        some = answers[begin : begin + step]
        first = np.tile(starts, (len(some), 1))
        found, missed = descended(outputs, tangents, np.repeat(some, count, axis=0), first, spread)
        points[begin : begin + step] = found.reshape(len(some), count, columns)
        misses[begin : begin + step] = missed.reshape(len(some), count)
    there = misses <= arrived
    closest = points[np.arange(rows), misses.argmin(axis=1)]
    return SolvedRows(points, _first_of_each(points, there), closest)


def descended(
    outputs: Function,
    tangents: Function,
    answers: FloatArray,
    start: FloatArray,
    spread: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Where each problem ends, and the largest miss there in units of the spread."""
    here, damping = start.copy(), np.full(len(start), FIRST_DAMPING)
    misses = (answers - outputs(here)) / spread
    todo = np.arange(len(start))
    for _ in range(LEVENBERG_ROUNDS):
        todo = todo[(np.abs(misses[todo]).max(axis=1) > ARRIVED) & (damping[todo] < MOST_DAMPING)]
        if not len(todo):
            break
        point = here[todo]
        moved = np.clip(point + _step(tangents(point), misses[todo], point, damping[todo], spread), 0.0, 1.0)
        missed = (answers[todo] - outputs(moved)) / spread
        better = (missed**2).sum(axis=1) < (misses[todo] ** 2).sum(axis=1)
        here[todo[better]], misses[todo[better]] = moved[better], missed[better]
        damping[todo] = np.maximum(np.where(better, damping[todo] / 10, damping[todo] * 5), LEAST_DAMPING)
    return here, np.asarray(np.abs(misses).max(axis=1))


def _step(
    slopes: FloatArray, misses: FloatArray, point: FloatArray, damping: FloatArray, spread: FloatArray
) -> FloatArray:
    slopes = slopes / spread[:, None]
    pull = np.einsum("nmd,nm->nd", slopes, misses)
    held = ((point <= 0.0) & (pull < 0)) | ((point >= 1.0) & (pull > 0))
    slopes = np.where(held[:, None, :], 0.0, slopes)
    gram = slopes.transpose(0, 2, 1) @ slopes
    size = np.einsum("ndd->nd", gram).max(axis=1)
    gram += (damping * size + 1e-300)[:, None, None] * np.eye(gram.shape[1])
    return np.asarray(np.linalg.solve(gram, np.where(held, 0.0, pull)[:, :, None])[:, :, 0])


def _first_of_each(points: FloatArray, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of each row's points that fit, the first of those that are the same."""
    first = there.copy()
    for place in range(1, points.shape[1]):
        near = np.abs(points[:, :place] - points[:, place, None]).max(axis=2) < APART
        first[:, place] &= ~(near & first[:, :place]).any(axis=1)
    return first
