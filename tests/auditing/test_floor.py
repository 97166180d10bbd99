"""No column is called safe in which the floor (`complete_rows`) finds a leak: on no protocol, under no defence.

`none` is said where attacks find nothing and the ceiling leaves no room for more than the limit. What the floor finds counts
wherever it is run; and no ceiling lies below what it shows from twenty known people, on any protocol and under any defence. So
it is of the label, where the floor is a regression on mean gradients that knows half of the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plumbob.attacks.auxiliary.complete_rows import CompleteRows
from plumbob.auditing.concluding.ceilings import Ceiling
from plumbob.auditing.concluding.conclusion import Standing, combined, conclude
from plumbob.auditing.concluding.judging import LIMIT, Verdict
from plumbob.auditing.concluding.summarise import Situation
from plumbob.auditing.planning import sweep
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import open_source
from plumbob.defences import Defence, defence_named
from plumbob.federation import Column, Table, halves, split_at_random
from plumbob.papers.ours.guarded_cut import _half_known as half_known
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.base import training
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.ceiling import learnable
from plumbob.scoring.leak_levels import Level
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.targets.xgboost.xgboost_columns import installed
from plumbob.threats import THREATS, cut
from plumbob.transcript import Transcript
from tests.defences.worlds import defended
from tests.worlds import made_table, small_training

ROWS = 400
SLACK = 0.05  # of R^2: the ceiling clips tails, and is learnt across folds
THERE = [name for name in PROTOCOLS if name != "xgboost_columns" or installed()]


def defences(protocol: str) -> list[tuple[str, dict[str, Any]]]:
    """Those of a sweep that change anything on a protocol."""
    small = PROTOCOLS[protocol].preset("small")
    return [(name, settings) for name, settings in sweep.every() if sweep.fits(defence_named(name, **settings), small)]


def transcript(protocol: str, defence: Defence) -> Transcript:
    table = made_table(rows=ROWS, columns=6)
    if PROTOCOLS[protocol].phase == "prediction":
        return defended(defence, protocol, table)
    rng = np.random.default_rng(0)
    federation = split_at_random(table, 0.5, rng)
    train, rest = halves(federation.label, rng)
    return training(defence.protect(small_training(protocol))).train(federation.rows(train), federation.rows(rest), rng)


def check(protocol: str, defence: Defence) -> None:
    """R^2 of the floor's guess is within what learners with everybody's rows could reach."""
    log = transcript(protocol, defence)
    view = cut(log, defence.threat(THREATS["active-known-people"]))
    truth = truth_of(log, view)
    judged = score(CompleteRows(trees=12).run(view, np.random.default_rng(0)), truth, view, np.random.default_rng(1))
    ceilings = {one.name: one for one in learnable(view, truth, np.random.default_rng(2))}
    for column in judged.columns:
        ceiling = ceilings[column.name]
        room = max(ceiling.full, ceiling.own + ceiling.high) + SLACK
        assert not ceiling.covers or column.r2 <= room, (column.name, column.r2, ceiling)


@pytest.mark.parametrize(
    ("protocol", "name"),
    [("logistic_regression", "rounding"), ("decision_tree", "none"), ("encrypted_logistic_regression", "none")],
)
def test_no_ceiling_lies_below_what_the_floor_shows(protocol: str, name: str) -> None:
    check(protocol, defence_named(name))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", THERE)
def test_so_it_is_under_every_defence(protocol: str) -> None:
    for name, settings in defences(protocol):
        check(protocol, defence_named(name, **settings))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", THERE)
def test_none_is_never_said_where_the_floor_finds_a_leak(protocol: str) -> None:
    plan = make_plan(
        {
            "data": "breast",
            "protocols": [{"name": protocol, "settings": dict(PROTOCOLS[protocol].presets.get("small", {}))}],
            "defences": [{"name": name, "settings": settings} for name, settings in defences(protocol)],
            "threats": ["active-known-people"],
            "attacks": [{"name": "complete_rows", "preset": "small"}],
            "unknown": [0.3],
            "trials": 1,
            "rows": 150,
        }
    ).filled()
    conclusion = conclude(run(plan, open_source(plan.data)))
    for judged in conclusion.situations:
        levels = {one.verdict.column: one.level for one in judged.standings}
        for summary in judged.summaries:
            for verdict in summary.verdicts:
                assert not verdict.level.leaks or levels[verdict.column] not in (Level.NONE, Level.NOT_TESTED)


LABELS = [
    pytest.param("max_norm_alignment", {}),
    pytest.param("marvell", {"scale": 1.0}),
    pytest.param("label_randomised_response", {"epsilon": 3.0}),
    *(
        pytest.param(name, settings, marks=pytest.mark.slow)
        for name, settings in (
            ("output_gradient_noise", {"scale": 1.0}),
            ("discrete_output_gradients", {"bins": 2}),
            ("sparse_output_gradients", {"share": 0.01}),
            ("lp_mst", {"epsilon": 3.0}),
            ("mid", {"strength": 3.0}),
            ("label_distance_correlation", {"strength": 1.0}),
            ("confusional_autoencoder", {}),
        )
    ),
]


def grouped_table(rows: int = 300) -> Table:
    """Twelve groups of people, each nearly of one class: own columns tell it to whoever knows everybody else's labels."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 12, rows)
    values = np.clip(rng.random((12, 6))[group] + 0.02 * rng.normal(size=(rows, 6)), 0.0, 1.0)
    label = np.where(rng.random(rows) < 0.02, rng.integers(0, 2, rows), group % 2)
    return Table("grouped", tuple(Column(f"c{i}") for i in range(6)), values, label.astype(np.int64), ("a", "b"))


@pytest.mark.parametrize(("name", "settings"), LABELS)
def test_no_label_is_called_safe_that_half_of_the_labels_give_away(name: str, settings: dict[str, Any]) -> None:
    """Even if every attack finds nothing; the gain over everybody else's labels is no more than the limit here."""
    defence = defence_named(name, **settings)
    federation = split_at_random(grouped_table(), 0.5, np.random.default_rng(0))
    network = defence.protect(SplitNetwork(epochs=12, batch_size=32))
    log = training(network).train(federation, federation.rows(np.arange(40)), np.random.default_rng(0))
    view = cut(log, defence.threat(THREATS["passive-training"]))
    one = learnable(view, truth_of(log, view), np.random.default_rng(0))[-1]
    assert one.target == "label"
    assert one.high <= LIMIT < half_known(view, federation.label)
    verdict = Verdict(one.name, Level.NONE, "", unseen=0.0)
    silent = Standing(
        Situation("grouped", "split_network", "passive-training", name), "any", 0.5, "labels", 300, verdict
    )
    ceiling = Ceiling(one.name, one.own, one.full, one.low, one.high, covers=one.covers, room=one.room or 0.0)
    assert combined([silent], ceiling, False, LIMIT).level is Level.UNDECIDED
