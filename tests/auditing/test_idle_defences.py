"""Every defence changes something, or is never listed as tried: over all protocols and defences, and in an audit."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from plumbob.app import run_audit
from plumbob.auditing.concluding.defence_frontier import frontiers
from plumbob.auditing.concluding.idle_defences import effective, idle
from plumbob.auditing.planning.sweep import fits
from plumbob.auditing.running.exchange import exchange_of, known_by
from plumbob.defences import DEFENCES, Defence
from plumbob.federation import halves, split_at_random
from plumbob.protocols import PROTOCOLS, PredictionProtocol
from plumbob.protocols.base import Protocol, column_positions, predict, training
from plumbob.threats import THREATS, Threat
from tests.report.samples import column, finding
from tests.worlds import made_table

SMALL = {name: kind.preset("small") for name, kind in DEFENCES.items()}
KINDS: dict[str, Protocol] = {
    name: kind.preset("small") for name, kind in PROTOCOLS.items() if name != "xgboost_columns"
}
KINDS |= {
    "split_models of linear parts": PROTOCOLS["split_models"].preset("small", layers=0),
    "split_models without a coordinator": PROTOCOLS["split_models"].preset("small", coordinator=False),
    "neural_network without hidden layers": PROTOCOLS["neural_network"].preset("small", hidden=()),
}


# Only a run can tell: leaves of one class have scores of 0 and 1, no row is recovered, no column has two values.
IDLE_HERE = {
    *((name, "decision_tree") for name in ("codebook", "label_only", "rounding")),
    ("left_out", "split_network"),
}


@cache
def run(protocol: str, defence: str, classes: int) -> str:
    """The exchange of one run; all of a protocol have the same seed."""
    kind, guard = KINDS[protocol], SMALL[defence]
    rng = np.random.default_rng(0)
    federation = split_at_random(made_table(rows=160, classes=classes), 0.5, rng)  # as secure aggregation asks
    train, rest = halves(federation.label, rng)
    trainer, target = federation.rows(train), federation.rows(rest)
    guarded = guard.protect(kind)
    rng = np.random.default_rng(1)
    if not isinstance(guarded, PredictionProtocol):
        return exchange_of(training(guarded).train(trainer, target, rng), guarded)
    blocks = list(column_positions(federation).values())
    model = guarded.fit(trainer.values, trainer.label, len(federation.classes), rng, blocks)
    release = guard.release(guarded, model, target) if fits(guard, kind) else None
    log = predict(guarded, model, target, trainer, release=release, defence=guard.known())
    return exchange_of(log, guarded)


def left(defence: Defence, threat: Threat) -> Threat:
    return defence.threat(threat)


@pytest.mark.parametrize("protocol", list(KINDS))
@pytest.mark.parametrize("defence", [name for name in DEFENCES if name != "none"])
def test_a_defence_that_is_listed_changes_something_and_one_that_is_not_does_not(protocol: str, defence: str) -> None:
    threats = [one for one in THREATS.values() if ("training" in one.name) == (KINDS[protocol].phase == "training")]
    classes = SMALL[defence].most_classes or 3
    guarded, bare = run(protocol, defence, classes), run(protocol, "none", classes)
    same = all(known_by(guarded, left(SMALL[defence], threat)) == known_by(bare, threat) for threat in threats)
    assert same == (not fits(SMALL[defence], KINDS[protocol]) or (defence, protocol) in IDLE_HERE)


def cell(defence: str, exchange: str, **changed: object):
    return finding([column("a", 0.01, np.random.default_rng(0))], defence=defence, exchange=exchange, **changed)


def test_what_changed_nothing_in_any_run_is_left_out_and_said() -> None:
    runs = [cell("none", f"{t}", trial=t) for t in (0, 1)] + [cell("verification", f"{t}", trial=t) for t in (0, 1)]
    assert {one.defence for one in effective(runs)} == {"none"}
    (said,) = idle(runs)
    assert "it changes nothing here" in said.words
    assert said.what == f"verification on {runs[0].protocol}"


@pytest.mark.parametrize(
    "runs",
    [
        [cell("none", "a"), cell("none", "b", trial=1), cell("verification", "a"), cell("verification", "c", trial=1)],
        [cell("none", "a"), cell("verification", "c")],
        [cell("verification", "a")],  # nothing to compare with
        [cell("none", ""), cell("verification", "")],  # of an earlier version
        [cell("none", "a", trial=1), cell("verification", "a")],
        [cell("none", "a", threat="x"), cell("verification", "a", threat="y")],
    ],
)
def test_what_changed_some_run_or_cannot_be_compared_stays(runs: list) -> None:
    assert effective(runs) == runs
    assert not idle(runs)


def test_an_audit_says_what_changed_nothing_and_lists_it_nowhere_as_tried(tmp_path: Path) -> None:
    """A tree tells its class alone, which rounding leaves as it is."""
    result = run_audit(
        {
            "data": {"name": "breast", "sample": 200},
            "protocols": ["decision_tree"],
            "attacks": ["path_restriction"],
            "defences": ["none", "rounding", "randomised_response"],
            "unknown": 0.2,
            "trials": 1,
            "rows": 60,
        },
        tmp_path / "out",
    )
    told = {one.defence.partition(" ")[0] for one in result.findings}
    listed = [option.defence.partition(" ")[0] for front in frontiers(result.findings) for option in front.options]
    assert (told, listed) == ({"none", "randomised_response"}, ["none", "randomised_response"])
    assert any("rounding" in note and "changes nothing here" in note for note in result.notes)
    assert "changes nothing here" in (tmp_path / "out" / "assessment.html").read_text()
