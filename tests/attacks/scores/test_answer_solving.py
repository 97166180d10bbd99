"""Answer solving: what parties send without a coordinator is solved for each party's row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.attacks.scores._solutions_in_box import solutions
from plumbob.attacks.scores.answer_solving import AnswerSolving, said
from plumbob.federation import Federation, Table, split
from plumbob.protocols.base import Protocol, column_positions, predict
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.protocols.scores.split_models import LocalModel, SplitModels
from plumbob.threats import LUO2021, THREATS, Threat, View, WhiteBox, cut
from tests.worlds import made_table

COLUMNS = 12


def parties(hidden: tuple[int, ...], table: Table) -> Federation:
    names = [column.name for column in table.columns]
    ends = [0, *np.cumsum(hidden)]
    owners = {f"p{i}": names[ends[i] : ends[i + 1]] for i in range(len(hidden))}
    return split(table, {"active": names[ends[-1] :]} | owners, "active")


def seen(
    hidden: tuple[int, ...], threat: Threat = LUO2021, classes: int = 4, rows: int = 80, **settings: object
) -> tuple[View, np.ndarray]:
    """What a threat sees of a prediction without a coordinator, and the truth."""
    federation = parties(hidden, made_table(rows=400, columns=COLUMNS, classes=classes))
    protocol = SplitModels(**({"epochs": 5, "coordinator": False} | settings))
    trainer, target = federation.rows(np.arange(200)), federation.rows(np.arange(200, 200 + rows))
    blocks = list(column_positions(federation).values())
    model = protocol.fit(trainer.values, trainer.label, classes, np.random.default_rng(0), blocks)
    view = cut(predict(protocol, model, target, trainer, batch=33), threat)
    return view, target.values[:, view.unknown]


def recovered(view: View, truth: np.ndarray, **settings: object) -> float:
    guess = attack_named("answer_solving", **settings).run(view, np.random.default_rng(0)).values
    assert guess is not None
    return float((np.abs(guess - truth).max(axis=1) < 1e-3).mean())


@pytest.mark.parametrize("hidden", [(3,), (2, 3), (3, 2, 2)])
@pytest.mark.parametrize("settings", [{"layers": 0}, {"layers": 1}, {"layers": 2, "activation": "tanh"}])
def test_every_partys_rows_are_solved(hidden: tuple[int, ...], settings: dict[str, object]) -> None:
    assert recovered(*seen(hidden, **settings)) >= 0.98


def test_scores_do_not_say_it() -> None:
    """Two parties of three columns: their answers do, their sum does not."""
    view, truth = seen((3, 3))
    assert recovered(view, truth) >= 0.98
    alone = attack_named("gradient_inversion", steps=300, rate=0.01).run(view, np.random.default_rng(0)).values
    assert alone is not None
    assert (np.abs(alone - truth).max(axis=1) < 1e-3).mean() < 0.05


def test_two_classes_are_one_equation() -> None:
    """The answer fixes one column; of two it says no more than a curve."""
    assert recovered(*seen((1,), classes=2)) >= 0.95
    assert recovered(*seen((2,), classes=2)) < 0.2


def test_more_columns_than_equations_are_better_than_the_scores_alone() -> None:
    view, truth = seen((6,))
    guess = attack_named("answer_solving").run(view, np.random.default_rng(0)).values
    scores = attack_named("linearised_posterior").run(view, np.random.default_rng(0)).values
    assert guess is not None
    assert scores is not None
    assert ((guess - truth) ** 2).mean() < ((scores - truth) ** 2).mean()


def test_a_colluding_partys_columns_are_known_and_the_others_solved() -> None:
    view, truth = seen((3, 3), THREATS["collusion"])
    assert len(view.unknown) == 3
    assert recovered(view, truth) >= 0.98


def test_the_decimals_tell_several_solutions_apart() -> None:
    """8 |x - 0.52| and 8 |x - 0.575| have two solutions each, of which one lies on the grid of elevenths."""
    view, _ = seen((2,))
    truth = np.rint(view.own[:, :2] * 11) / 11
    even = LocalModel(
        np.array([0, 1]),
        (
            np.array([[8.0, -8.0, 0, 0], [0, 0, 8.0, -8.0]]),
            np.array([[1.0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]]),
        ),
        (np.array([-4.16, 4.16, -4.6, 4.6]), np.zeros(4)),
        "relu",
    )
    assert view.model is not None
    model = {name: array for name, array in view.model.items() if not name.startswith("1/")}
    model |= {f"1/{name}": array for name, array in even.arrays().items()} | {"1/columns": view.model["1/columns"]}
    begins, messages = 0, []
    for message in view.messages:
        if message.name == "answer":
            end = begins + len(message.payload)
            message, begins = replace(message, payload=even.outputs(truth[begins:end])), end
        messages.append(message)
    told = replace(view, model=model, messages=tuple(messages), steps=np.full(2, 1 / 11))
    guess = AnswerSolving().run(told, np.random.default_rng(0))
    assert guess.values == pytest.approx(truth, abs=1e-6)
    assert "several" in guess.certificate


def test_all_solutions_in_the_box_are_found_once() -> None:
    """x^2 = 1/4 has one in the box; (x - 1/2)^2 = 1/16 has two; x = 2 has none."""
    starts = np.linspace(0.05, 0.95, 7)[:, None]
    cases = ((lambda x: x**2, lambda x: 2 * x, 0.25, 1), (lambda x: (x - 0.5) ** 2, lambda x: 2 * x - 1, 1 / 16, 2))
    for function, slope, answer, count in cases:
        found = solutions(function, lambda x, s=slope: s(x)[:, :, None], np.array([[answer], [answer]]), starts)
        assert found.counts.tolist() == [count, count]
    missed = solutions(lambda x: x, lambda x: np.ones((len(x), 1, 1)), np.array([[2.0]]), starts)
    assert missed.counts.tolist() == [0]
    assert missed.closest.tolist() == [[1.0]]


def test_slopes_are_those_of_the_outputs() -> None:
    rng = np.random.default_rng(3)
    for activation in ("sigmoid", "tanh", "relu"):
        sizes = ((3, 5), (5, 4), (4, 2))
        model = LocalModel(
            np.arange(3),
            tuple(rng.normal(size=s) for s in sizes),
            tuple(rng.normal(size=b) for _, b in sizes),
            activation,
        )
        x, step = rng.random((6, 3)), 1e-6
        for j in range(3):
            moved = np.eye(3)[j] * step
            numeric = (model.outputs(x + moved) - model.outputs(x - moved)) / (2 * step)
            assert model.slopes(x)[:, :, j] == pytest.approx(numeric, abs=1e-6)


@pytest.mark.parametrize(
    ("protocol", "threat", "reason"),
    [
        (SplitModels(coordinator=False), LUO2021, None),
        (SplitModels(), LUO2021, "go to the coordinator"),
        (SplitModels(sums="shared"), LUO2021, "added up unseen"),
        (SplitModels(), replace(THREATS["corrupted-coordinator"], grants=(WhiteBox(),)), None),
        (LogisticRegression(), LUO2021, None),  # by name it does not apply
    ],
)
def test_it_applies_where_answers_reach_the_curious(protocol: Protocol, threat: Threat, reason: str | None) -> None:
    why = AnswerSolving().why_not_here(protocol, threat)
    assert (why is None) if reason is None else reason in str(why)


def test_a_view_without_answers_is_no_guess() -> None:
    view, _ = seen((3,), coordinator=True)
    assert "coordinator" in AnswerSolving().run(view, np.random.default_rng(0)).untried


def test_what_is_said_adds_up() -> None:
    counts = {"a": np.array([1, 1, 2, 0]), "b": np.array([1, 3, 1, 1])}
    assert said(counts) == "of 4 rows 1 have one solution, 2 several, 1 none that was found"
