"""No column is called safe in which the floor (`complete_rows`) finds a leak: on no protocol, under no defence.

`none` is said where attacks find nothing and the ceiling leaves no room for more than the limit. What the floor finds counts
wherever it is run; and no ceiling lies below what it shows from twenty known people, on any protocol and under any defence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plumbob.attacks.auxiliary.complete_rows import CompleteRows
from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.planning import sweep
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import open_source
from plumbob.defences import Defence, defence_named
from plumbob.federation import halves, split_at_random
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.base import training
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
