"""Lines through the grid: all hidden cells of a row but one are fixed, and the scores are solved for that one.

A network is nearly linear along a line. So of thousands of values on it a handful is scored: ends, middle, then the value where
the straight line between two values of different sign would meet the released score, until they are next to each other. The
value that was released is one of the two. All lines of many rows go together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumbob.attacks._common.differentiable_models import logits_of
from plumbob.attacks.scores.equation_solving import SMALLEST_SCORE
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import Tensor, torch
from plumbob.threats import View

TOGETHER = 8192  # rows of cells that are scored at once
CLOSER = 24  # rounds until two neighbours are found
NODES, NEARLY_ALL = (3, 5, 9, 17), 0.99  # values of a line that may show its sign changes, and how many they must show
ERRORS, ERRORS_SHORT = (
    64.0,
    2.0,
)  # equations are met within so many units of the last digit: of doubles, of shorter scores


class RowLogits:
    """Logits of a view's rows with given hidden cells; what a row's own cells contribute is computed once."""

    def __init__(self, view: View) -> None:
        if view.model is None or view.ranges is None:
            raise BadInput("grid enumeration needs the model (white box) and the ranges of the unknown columns")
        self.low, high = view.ranges.T
        self.span = high - self.low
        self.scored = 0  # how many rows of cells were scored
        self._score = _network(view) if view.protocol == "neural_network" else _any_model(view)

    def __call__(self, rows: IntArray, unit: FloatArray) -> FloatArray:
        """Logits (rows x classes) of these rows with these hidden cells in unit ranges."""
        parts = []
        self.scored += len(rows)
        with torch.no_grad():
            for begin in range(0, len(rows), TOGETHER):
                part = slice(begin, begin + TOGETHER)
                parts.append(self._score(rows[part], self.low + self.span * unit[part]).numpy())
        return np.concatenate(parts) if parts else np.zeros((0, 2))


def _network(view: View) -> Callable[[IntArray, FloatArray], Tensor]:
    assert view.model is not None
    depth = len(view.model) // 2
    weights = [torch.tensor(np.asarray(view.model[f"w{i}"], dtype=np.float64)) for i in range(depth)]
    biases = [torch.tensor(np.asarray(view.model[f"b{i}"], dtype=np.float64)) for i in range(depth)]
    first = torch.tensor(view.own) @ weights[0][torch.tensor(view.known)] + biases[0]
    hidden = weights[0][torch.tensor(view.unknown)]

    def score(rows: IntArray, cells: FloatArray) -> Tensor:
        x = torch.addmm(first[torch.from_numpy(rows)], torch.from_numpy(cells), hidden)
        for weight, bias in zip(weights[1:], biases[1:], strict=True):
            x = torch.addmm(bias, x.relu_(), weight)
        return x

    return score


def _any_model(view: View) -> Callable[[IntArray, FloatArray], Tensor]:
    assert view.model is not None
    logits = logits_of(view.protocol, view.model, torch.float64)
    width = len(view.known) + len(view.unknown)

    def score(rows: IntArray, cells: FloatArray) -> Tensor:
        whole = np.empty((len(rows), width))
        whole[:, view.known], whole[:, view.unknown] = view.own[rows], cells
        return logits(torch.from_numpy(whole))

    return score


def differences(logits: FloatArray) -> FloatArray:
    """Of neighbouring logits: what scores tell exactly."""
    return np.asarray(logits[:, :-1] - logits[:, 1:])


def answers_of(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The differences that released scores tell, and how exactly."""
    double = float(np.finfo(np.float64).eps)
    digits = float(np.finfo(scores.dtype).eps) if scores.dtype.kind == "f" else double
    logs = np.log(np.maximum(scores.astype(np.float64), SMALLEST_SCORE))
    error = ERRORS * double if digits <= double else ERRORS_SHORT * digits
    return -np.diff(logs, axis=1), error * (1.0 + np.abs(logs[:, :-1]) + np.abs(logs[:, 1:]))


@dataclass(frozen=True)
class Crossings:
    """Where lines meet the released score: one entry for each crossing."""

    line: IntArray
    value: FloatArray  # of the column that was solved for: on the grid, the nearer of the two
    root: FloatArray  # between them
    miss: FloatArray  # of the equation at `value`
    slope: FloatArray  # of the equation from one value of the grid to the next; infinite at the end of a line


def crossings(
    score: Callable[[IntArray, FloatArray], FloatArray], lines: int, step: float, nodes: int, exact: FloatArray
) -> Crossings:
    """All sign changes between so many evenly spaced values of a line, followed to two neighbours on the grid.

    `score` gives the misses of lines (by number) at values in 0..1; below `exact` a line's miss is none.
    """
    last = max(1, round(1.0 / step))
    everyone = np.arange(lines)
    places = np.unique(np.rint(np.linspace(0, last, nodes)))
    misses = np.stack([score(everyone, np.full(lines, place * step)) for place in places], axis=1)
    met, at = np.nonzero(np.abs(misses) <= exact[:, None])
    line, left = np.nonzero((misses[:, :-1] <= 0.0) != (misses[:, 1:] <= 0.0))
    low, high = places[left].copy(), places[left + 1].copy()
    below, above = misses[line, left].copy(), misses[line, left + 1].copy()
    _close_in(score, line, step, (low, high), (below, above))
    slope = np.abs(above - below) / (high - low)
    nearer = np.abs(below) <= np.abs(above)
    fall = np.where(above == below, 1.0, below - above)
    root = low + (high - low) * np.where(above == below, 0.5, below / fall)
    return Crossings(
        np.concatenate([line, met]),
        np.concatenate([np.where(nearer, low, high), places[at]]) * step,
        np.concatenate([root, places[at]]) * step,
        np.concatenate([np.where(nearer, below, above), misses[met, at]]),
        np.concatenate([np.maximum(slope, 1e-300), np.full(len(met), np.inf)]),
    )


def _close_in(
    score: Callable[[IntArray, FloatArray], FloatArray],
    line: IntArray,
    step: float,
    ends: tuple[FloatArray, FloatArray],
    misses: tuple[FloatArray, FloatArray],
) -> None:
    """Moves both ends, in place, until they are neighbours: false position with the Illinois rule, halving now and then."""
    (low, high), (below, above) = ends, misses
    bent_low, bent_high = below.copy(), above.copy()
    todo = np.flatnonzero(high - low > 1)
    for turn in range(CLOSER):
        if not len(todo):
            break
        a, b, fa, fb = low[todo], high[todo], bent_low[todo], bent_high[todo]
        guess = np.rint(a + (b - a) * fa / (fa - fb)) if turn % 6 < 4 else np.rint((a + b) / 2)
        guess = np.clip(guess, a + 1, b - 1)
        found = score(line[todo], guess * step)
        same = (found <= 0.0) == (below[todo] <= 0.0)
        rise, fall = todo[same], todo[~same]
        low[rise], below[rise], bent_low[rise] = guess[same], found[same], found[same]
        bent_high[rise] *= 0.5
        high[fall], above[fall], bent_high[fall] = guess[~same], found[~same], found[~same]
        bent_low[fall] *= 0.5
        todo = todo[high[todo] - low[todo] > 1]


def nodes_needed(score: Callable[[IntArray, FloatArray], FloatArray], lines: int, step: float) -> int:
    """How many values of a line show its sign changes: the fewest that show nearly all of those that many show."""
    last = max(1, round(1.0 / step))
    finest = min(last + 1, NODES[-1])
    places = np.unique(np.rint(np.linspace(0, last, finest)))
    everyone = np.arange(lines)
    below = np.stack([score(everyone, np.full(lines, place * step)) for place in places], axis=1) <= 0.0
    every = (below[:, 1:] != below[:, :-1]).sum()
    for nodes in NODES:
        at = np.unique(np.rint(np.linspace(0, len(places) - 1, min(nodes, len(places))))).astype(int)
        if (below[:, at[1:]] != below[:, at[:-1]]).sum() >= NEARLY_ALL * every:
            return nodes
    return NODES[-1]
