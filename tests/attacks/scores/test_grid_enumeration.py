"""Grid enumeration: whole rows of whole numbers from the scores of networks, and honest means where none is found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.attacks.scores._grid_lines import crossings
from plumbob.attacks.scores._grid_posterior import Weighed
from plumbob.attacks.scores.grid_enumeration import GridEnumeration
from plumbob.attacks.scores.posterior_mean import without_scores
from plumbob.errors import BadInput
from plumbob.federation import Column, Table
from plumbob.known_defences import KnownDefences, KnownLabelOnly, KnownRounding
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, View, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table, world


def whole_numbers(levels: int = 20, **made: int) -> Table:
    """A table of whole numbers from 0 to `levels`."""
    table = made_table(**made)
    columns = tuple(Column(column.name, step=1.0 / levels) for column in table.columns)
    return replace(table, columns=columns, values=np.rint(table.values * levels) / levels)


@cache
def usual(protocol: str = "neural_network", classes: int = 2) -> tuple[Transcript, View, np.ndarray]:
    log = world(protocol, whole_numbers(rows=120, classes=classes), unknown=3)
    view = cut(log, LUO2021)
    return log, view, truth_of(log, view).values


def guess(view: View, **settings: int) -> np.ndarray:
    values = GridEnumeration(**({"rows": 30, "scored": 150_000} | settings)).run(view, np.random.default_rng(0)).values
    assert values is not None
    return values


def found(view: View, truth: np.ndarray, **settings: int) -> np.ndarray:
    """Which of the rows that were worked on are right in every cell."""
    rows = np.unique(np.linspace(0, len(truth) - 1, 30).astype(int))
    return np.asarray((np.abs(guess(view, **settings) - truth) < 1e-9).all(axis=1)[rows])


def released(view: View, scores: np.ndarray, *known: KnownRounding | KnownLabelOnly) -> View:
    messages = tuple(replace(m, payload=scores) if m.name == "scores" else m for m in view.messages)
    return replace(view, messages=messages, defence=KnownDefences.of(*known))


@pytest.mark.parametrize(("protocol", "classes"), [("neural_network", 2), ("neural_network", 3), ("split_models", 2)])
def test_one_score_tells_three_whole_numbers(protocol: str, classes: int) -> None:
    _, view, truth = usual(protocol, classes)
    assert found(view, truth).mean() >= 0.95


def test_scores_of_seven_digits_tell_them_too() -> None:
    _, view, truth = usual()
    short = released(view, view.received("scores").astype(np.float32))
    assert found(short, truth).mean() >= 0.5


def test_known_rounding_leaves_some_gain_with_rows_of_other_people() -> None:
    log, _, truth = usual()
    view = replace(cut(log, LUO2021), auxiliary=truth_rows(log)[:40])
    one = released(view, np.floor(10 * view.received("scores")) / 10, KnownRounding(digits=1, nearest=False))
    error = [((values - truth) ** 2).mean() for values in (guess(one), without_scores(one))]
    assert error[0] < 0.95 * error[1]


def truth_rows(log: Transcript) -> np.ndarray:
    """Complete rows in the order of the joint model."""
    view = cut(log, LUO2021)
    rows = np.empty((len(view.own), len(view.known) + len(view.unknown)))
    rows[:, view.known], rows[:, view.unknown] = view.own, truth_of(log, view).values
    return rows


def test_columns_without_a_grid_are_left_to_others() -> None:
    view = cut(world("neural_network", made_table(rows=120), unknown=3), LUO2021)
    assert GridEnumeration().run(view, np.random.default_rng(0)).untried


def test_a_label_alone_and_a_withheld_row_give_finite_guesses() -> None:
    _, view, _ = usual()
    scores = np.eye(2)[view.received("scores").argmax(axis=1)]
    scores[3] = np.nan
    values = guess(released(view, scores, KnownLabelOnly()))
    assert np.isfinite(values).all()
    assert values.min() >= 0
    assert values.max() <= 1


def test_a_budget_too_small_to_search_is_refused_in_one_sentence() -> None:
    with pytest.raises(BadInput, match="scored: expected a whole number from 1,000"):
        GridEnumeration(scored=10)


def test_every_crossing_of_a_bent_line_is_found() -> None:
    def miss(lines: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.abs(values - 0.5) - 0.25 * (lines + 1.0)  # at 0.25 and 0.75, then at both ends

    met = crossings(miss, 2, 0.01, 5, np.full(2, 1e-12))
    assert sorted(set(zip(met.line.tolist(), met.value.round(9).tolist(), strict=True))) >= [(0, 0.25), (0, 0.75)]
    assert {(1, 0.0), (1, 1.0)} <= set(zip(met.line.tolist(), met.value.round(9).tolist(), strict=True))


def test_a_cell_is_put_on_its_value_only_where_that_is_nearly_certain() -> None:
    weighed = Weighed(np.array([4, 4, 7, 7]), np.array([[0.0], [1.0], [0.0], [1.0]]), np.log([0.05, 0.95, 0.4, 0.6]))
    rows, values = weighed.means()
    assert rows.tolist() == [4, 7]
    assert values.ravel() == pytest.approx([1.0, 0.6])
