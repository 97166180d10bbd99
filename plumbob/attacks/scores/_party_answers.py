"""The parties' answers as equations of their own columns: f(x_p; phi_p) = z_p, one system for each party.

A linear part (no hidden layer) is linear algebra: all parties' equations together, the rest filled with a posterior mean in the
box (`posterior_mean.py`). Of a network, where the columns are no more than the equations, every solution is looked for
(`_solutions_in_box.py`). Of several, the one whose cells lie on their columns' grids is taken (decimals are granted with the
schema), else the likeliest, under a Gaussian of complete rows: auxiliary ones, else those with one solution. More columns than
equations: Gauss-Newton in the box under a prior, as for scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.scores._boxed_gauss_newton import NonlinearEquations
from plumbob.attacks.scores._column_prior import Places, components, from_complete_rows
from plumbob.attacks.scores._solutions_in_box import ARRIVED, SolvedRows, solutions
from plumbob.attacks.scores.equation_solving import SMALLEST_SCORE
from plumbob.attacks.scores.linearised_posterior import fitted_prior, solved_rows, trust_in_learning
from plumbob.attacks.scores.posterior_mean import solve as solve_linear
from plumbob.attacks.scores.posterior_mean import solve_with_rows
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.scores.split_models import LocalModel
from plumbob.threats import View

ON_GRID = 0.02  # largest distance from a grid point, in its steps, of a solution that lies on the grid
CLOSE = 1e-3  # a stand-in that misses by more says what is likely, and nothing exact
RANK = 1e-9  # singular values below this share of the largest are 0
FEWEST_COMPLETE = 20  # rows with one solution below which they say too little of the others


@dataclass(frozen=True)
class AnsweringParty:
    """One party's model, where its columns stand among the unknown ones, and what it answered."""

    name: str
    places: IntArray
    model: LocalModel
    answers: FloatArray
    miss: float = 0.0  # how far the model is from the party's own, in units of the answers' spread

    @property
    def linear(self) -> bool:
        return len(self.model.weights) == 1

    @property
    def basis(self) -> FloatArray:
        """Directions of the answers that vary at all, classes x equations: two classes are one equation."""
        _, values, right = np.linalg.svd(self.model.weights[-1])
        kept = int((values > RANK * max(float(values.max(initial=0.0)), 1e-300)).sum())
        return np.asarray(right[:kept].T)

    @property
    def equations(self) -> int:
        widths = [int(weights.shape[1]) for weights in self.model.weights]
        return min(int(self.basis.shape[1]), *widths)

    @property
    def determined(self) -> bool:
        return len(self.places) <= self.equations and self.miss < CLOSE


@dataclass(frozen=True)
class SolvedAnswers:
    """Values of the unknown columns, and how many solutions each row had at the parties that were solved for all of them."""

    values: FloatArray
    counts: Mapping[str, NDArray[np.intp]]


def answers_received(view: View) -> dict[str, FloatArray]:
    """By sender, the answers about every row that reached a curious party from others; in the order of the parties."""
    found: dict[str, list[FloatArray]] = {}
    for message in view.messages:
        others = message.sender not in view.curious and message.receiver in view.curious
        if others and message.phase == "predict" and message.name == "answer":
            found.setdefault(message.sender, []).append(np.asarray(message.payload, dtype=np.float64))
    joined = {sender: np.concatenate(parts) for sender, parts in found.items()}
    return {sender: answers for sender, answers in joined.items() if len(answers) == len(view.own)}


def solved(view: View, parties: Sequence[AnsweringParty], starts: int, rng: np.random.Generator) -> SolvedAnswers:
    """What the answers say of all unknown columns; those of parties that did not answer get what the others suggest."""
    told = np.flatnonzero(np.isfinite(np.hstack([party.answers for party in parties])).all(axis=1))
    covered = sum(len(party.places) for party in parties) == len(view.unknown)
    if all(party.linear for party in parties):
        return SolvedAnswers(_linear(view, parties, told, rng), {})
    counts = {}
    if covered and all(party.determined for party in parties):
        values = np.full((len(view.own), len(view.unknown)), 0.5)
    else:
        values = _posterior(view, parties, told, rng)
    for party in parties:
        if party.determined:
            found = every_solution(party, told, starts, rng)
            values[np.ix_(told, party.places)] = likeliest(view, party, told, found)
            counts[party.name] = found.counts
    return SolvedAnswers(values, counts)


def every_solution(party: AnsweringParty, told: NDArray[np.intp], starts: int, rng: np.random.Generator) -> SolvedRows:
    """Solutions of the rows that were answered; a stand-in's are those that come as close as it comes to the party's model."""
    basis = party.basis
    begin = np.vstack([np.full((1, len(party.places)), 0.5), rng.random((starts - 1, len(party.places)))])
    answers = party.answers[told] @ basis
    close = max(ARRIVED, 30 * party.miss)
    return solutions(
        lambda x: party.model.outputs(x) @ basis,
        lambda x: np.einsum("nkd,km->nmd", party.model.slopes(x), basis),
        answers,
        begin,
        close,
    )


def likeliest(view: View, party: AnsweringParty, told: NDArray[np.intp], found: SolvedRows) -> FloatArray:
    """One of each row's solutions; the closest point where it has none."""
    counts = found.counts
    far_off = _off_grid(view, party, found.points)
    first = found.points[np.arange(len(told)), found.distinct.argmax(axis=1)]
    chosen = np.where((counts > 0)[:, None], first, found.closest)
    several = np.flatnonzero(counts > 1)
    if not len(several):
        return chosen
    own, single = view.own[told], counts == 1
    if view.auxiliary is not None:
        known, unknown = view.auxiliary[:, view.known], view.auxiliary[:, view.unknown[party.places]]
    else:
        known, unknown = own[single], chosen[single]
    centres, inverse = np.full((len(several), len(party.places)), 0.5), np.eye(len(party.places))
    if len(known) >= FEWEST_COMPLETE:
        centres, left = from_complete_rows(own[several], known, unknown)
        inverse = np.linalg.inv(left + 1e-9 * np.trace(left) * np.eye(len(left)) + 1e-12 * np.eye(len(left)))
    gaps = found.points[several] - centres[:, None]
    far = np.einsum("nsd,de,nse->ns", gaps, inverse, gaps, optimize=True)
    far = np.where(found.distinct[several], far, np.inf)
    off = np.where(found.distinct[several], far_off[several], np.inf)
    on_grid = (off < ON_GRID).sum(axis=1) == 1  # one alone: where several are, the grid is too fine to tell
    best = np.where(on_grid, off.argmin(axis=1), far.argmin(axis=1))
    chosen[several] = found.points[several, best]
    return chosen


def _off_grid(view: View, party: AnsweringParty, points: FloatArray) -> FloatArray:
    """Of each point, the distance of its cells from their grids in steps, the largest; infinite where no column has a grid."""
    steps = np.zeros(len(party.places)) if view.steps is None else view.steps[party.places]
    if not (steps > 0).any():
        return np.full(points.shape[:2], np.inf)
    whole = points[:, :, steps > 0] / steps[steps > 0]
    return np.asarray(np.abs(whole - np.rint(whole)).max(axis=2))


def _linear(
    view: View, parties: Sequence[AnsweringParty], told: NDArray[np.intp], rng: np.random.Generator
) -> FloatArray:
    """All parties' linear equations in one system."""
    left = np.zeros((sum(party.model.weights[0].shape[1] for party in parties), len(view.unknown)))
    begin = 0
    for party in parties:
        weights = party.model.weights[0]
        left[begin : begin + weights.shape[1], party.places] = weights.T
        begin += weights.shape[1]
    right = np.hstack([party.answers - party.model.biases[0] for party in parties])[told]
    low, high = np.zeros(len(view.unknown)), np.ones(len(view.unknown))
    values = np.full((len(view.own), len(view.unknown)), 0.5)
    if view.auxiliary is None:
        places = Places(view.known, view.unknown)
        values[told] = solve_linear(left, right, view.own[told], low, high, places, rng)
    else:
        known, unknown = view.auxiliary[:, view.known], view.auxiliary[:, view.unknown]
        values[told] = solve_with_rows(left, right, view.own[told], low, high, known, unknown)
    return values


def _posterior(
    view: View, parties: Sequence[AnsweringParty], told: NDArray[np.intp], rng: np.random.Generator
) -> FloatArray:
    """Gauss-Newton in the box on the answers of all parties together."""
    bases = [party.basis for party in parties]
    answers = np.hstack([party.answers @ basis for party, basis in zip(parties, bases, strict=True)])

    def outputs(own: FloatArray, unit: FloatArray) -> FloatArray:
        each = zip(parties, bases, strict=True)
        return np.hstack([party.model.outputs(unit[:, party.places]) @ basis for party, basis in each])

    def slopes(own: FloatArray, unit: FloatArray) -> FloatArray:
        found, begin = np.zeros((len(unit), answers.shape[1], len(view.unknown))), 0
        for party, basis in zip(parties, bases, strict=True):
            part = np.einsum("nkd,km->nmd", party.model.slopes(unit[:, party.places]), basis)
            found[:, begin : begin + part.shape[1], party.places] = part
            begin += part.shape[1]
        return found

    system = NonlinearEquations(outputs, slopes)
    if view.auxiliary is not None:
        known, unknown = view.auxiliary[:, view.known], view.auxiliary[:, view.unknown]
        centres, covariance = from_complete_rows(view.own, known, unknown)
        return solved_rows(system, view.own, answers, told, covariance, np.clip(centres, 0.0, 1.0))
    scores = np.asarray(view.received("scores"), dtype=np.float64)
    logs = -np.diff(np.log(np.maximum(scores, SMALLEST_SCORE)), axis=1)
    prior = fitted_prior(view, system, answers, told, trust_in_learning(view, logs, told, rng))
    return solved_rows(
        system, view.own, answers, told, prior.covariance, prior.rows(components(view.own, len(view.unknown)))
    )
