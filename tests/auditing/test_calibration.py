"""Null calibration: nothing is called a leak when nothing leaks, and an exact attack always is one."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.attacks import attacks
from plumbob.auditing.concluding.summarise import summarise
from plumbob.auditing.running.finding import Finding
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, cut
from tests.worlds import built_in, made_table, with_truth_permuted, world

MANY = pytest.mark.parametrize("seeds", [25, pytest.param(100, marks=pytest.mark.slow)])
CLOSED = ("equation_solving", "posterior_mean", "path_restriction")  # quick enough for a hundred seeds


def findings(
    protocol: str, seed: int, unknown: float | int, *, permuted: bool, table=None, only: tuple[str, ...] = CLOSED
) -> list[Finding]:
    """One finding per fitting attack; `permuted` shuffles the true rows after the view was cut."""
    log = world(protocol, table if table is not None else built_in("breast"), unknown, seed)
    view = cut(log, LUO2021)
    if permuted:
        log = with_truth_permuted(log, "passive", np.random.default_rng([seed, 7]))
    found = []
    for name, attack in attacks("fast").items():
        if name in only and attack.why_not(protocol, LUO2021) is None:
            judged = score(
                attack.run(view, np.random.default_rng(seed)), truth_of(log, view), view, np.random.default_rng(seed)
            )
            found.append(
                Finding("k", "d", protocol, "active", name, "none", 0.3, 1, 1, 2, 0, seed, 0.0, 0.0, judged, 0.0, 0.0)
            )
    return found


@MANY
@pytest.mark.parametrize(("protocol", "unknown"), [("logistic_regression", 0.3), ("decision_tree", 0.3)])
def test_permuted_rows_are_no_leak(protocol: str, unknown: float, seeds: int) -> None:
    """For each attack apart: no column is said to leak for at least 95 % of the seeds."""
    quiet: dict[str, int] = {}
    for seed in range(seeds):
        for summary in summarise(findings(protocol, seed, unknown, permuted=True)):
            quiet.setdefault(summary.setting.attack, 0)
            quiet[summary.setting.attack] += not any(v.level.leaks for v in summary.verdicts)
    assert quiet
    assert all(count >= 0.95 * seeds for count in quiet.values()), quiet


OTHERS = [
    (name, attack.protocols[0])
    for name, attack in attacks("fast").items()
    if name not in CLOSED and attack.why_not(attack.protocols[0], LUO2021) is None
]


@pytest.mark.parametrize(("name", "protocol"), OTHERS)
def test_permuted_rows_are_no_leak_for_the_slower_attacks_either(name: str, protocol: str) -> None:
    for seed in range(4):
        (summary,) = summarise(findings(protocol, seed, 0.3, permuted=True, only=(name,)))
        assert not summary.level.leaks


def test_the_same_rows_unpermuted_do_leak() -> None:
    """The calibration would be worthless if the judge said "no leak" to everything."""
    leaks = sum(
        summary.level.leaks
        for seed in range(10)
        for summary in summarise(findings("logistic_regression", seed, 0.3, permuted=False))
    )
    assert leaks >= 18


@MANY
def test_up_to_c_minus_1_unknown_columns_are_recovered_exactly_every_time(seeds: int) -> None:
    """Each seed: another table, another number of unknown columns up to c - 1, both attacks."""
    exact = 0
    for seed in range(seeds):
        table = made_table(rows=300, columns=9, classes=5, seed=seed)
        summaries = summarise(findings("logistic_regression", seed, 1 + seed % 4, permuted=False, table=table))
        assert len(summaries) == 2
        exact += all(v.words == "recovered exactly" for summary in summaries for v in summary.verdicts)
    assert exact == seeds
