"""xgboost's federated training as it is: what crosses, what each party has afterwards, and that no process stays."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.planning.plan_fits_data import check_fit
from plumbob.auditing.running.open_data import open_source
from plumbob.errors import BadInput
from plumbob.federation import split, split_at_random
from plumbob.targets.xgboost import _processes as processes
from plumbob.targets.xgboost import xgboost_columns
from plumbob.targets.xgboost.xgboost_columns import XgboostColumns
from plumbob.transcript import COORDINATOR
from tests.worlds import boosted_world, made_table, needs_xgboost


def jobs(label: float = 1.0, rounds: int = 1) -> list[processes.Job]:
    """Two parties with one column each."""
    values = np.linspace(0, 1, 60, dtype=np.float32)[:, None]
    target = np.where(values[:, 0] > 0.4, label, 0.0).astype(np.float32)
    task = {"parameters": {"objective": "binary:logistic", "nthread": 1}, "rounds": rounds, "predict": False}
    return [
        processes.Job("bank", task, {"values": values, "label": target}),
        processes.Job("shop", task, {"values": values[::-1].copy()}),
    ]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """All processes that a test started."""
    found: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen):
        def __init__(self, *args: object, **settings: object) -> None:
            super().__init__(*args, **settings)
            found.append(self)

    monkeypatch.setattr(processes.subprocess, "Popen", Noted)
    return found


@needs_xgboost
def test_every_party_ends_with_the_whole_model() -> None:
    log = boosted_world()
    own, other = (log.sealed(party) for party in ("active", "passive"))
    keys = [key for key in own if key.startswith("notes/model/")]
    assert len(keys) == 7
    assert all(np.array_equal(own[key], other[key]) for key in keys)
    owners = {log.features[i].party for i in own["notes/model/feature"] if i >= 0}
    assert owners == {"active", "passive"}


@needs_xgboost
def test_the_gradients_reach_the_passive_party_in_the_clear() -> None:
    log = boosted_world()
    told = [m.payload for m in log.messages if m.name == "gradients" and m.receiver == "passive"]
    label, rows = log.sealed("active")["label"], len(log.sealed("active")["label"])
    assert len(told) == 4  # one a round
    assert told[0].shape == (rows, 3, 2)
    chances = told[0][:, :, 0] + np.eye(3)[label]  # g = p - y
    assert np.ptp(chances, axis=0).max() < 1e-6  # all rows start from the same chances
    assert np.allclose(chances.sum(axis=1), 1, atol=1e-5)


@needs_xgboost
def test_what_the_server_tells_of_sides_is_what_the_parties_told_it() -> None:
    log = boosted_world()
    up = [m for m in log.messages if m.name == "sides" and m.receiver == COORDINATOR]
    down = [m.payload for m in log.messages if m.name == "sides" and m.receiver == "passive"]
    told = [a.payload | b.payload for a, b in zip(up[::2], up[1::2], strict=True)]
    assert [m.sender for m in up[:2]] == ["active", "passive"]
    assert all(np.array_equal(a, b) for a, b in zip(told, down, strict=True))


@needs_xgboost
def test_the_same_rows_give_the_same_messages(started: list[subprocess.Popen[bytes]]) -> None:
    federation = split_at_random(made_table(rows=80, classes=2), 0.4, np.random.default_rng(0))
    heads = {XgboostColumns(trees=1).train(federation, federation, np.random.default_rng(s)).head for s in (0, 1)}
    assert len(heads) == 1
    assert len(started) == 6  # a server and two workers, twice
    assert all(process.poll() is not None for process in started)


@needs_xgboost
def test_columns_are_numbered_as_in_the_federation_whoever_comes_first() -> None:
    """Three parties, and the label is not with the first: xgboost numbers the label holder's columns first."""
    table = made_table(rows=120, columns=6, classes=2)
    owners = {"a": list(table.names[:2]), "b": list(table.names[2:4]), "c": list(table.names[4:])}
    log = XgboostColumns(trees=3).train(split(table, owners, "b"), split(table, owners, "b"), np.random.default_rng(0))
    values = np.hstack([log.sealed(party)["columns"] for party in log.parties]).astype(np.float32)
    model = log.sealed("c")
    inner = model["notes/model/feature"] >= 0
    for column, threshold in zip(
        model["notes/model/feature"][inner], model["notes/model/threshold"][inner], strict=True
    ):
        assert np.float32(threshold) in values[:, column]  # a threshold is a value that its column holds
    assert float(log.sealed(COORDINATOR)["test accuracy"][0]) > 0.8


@needs_xgboost
def test_a_worker_that_dies_is_one_sentence_without_a_value(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(BadInput, match=r"the worker of 'bank' ended with code 5 \(XGBoostError\)") as error:
        processes.run(jobs(label=7.125), timeout=60)
    assert "7.125" not in str(error.value)
    assert all(process.poll() is not None for process in started)


@needs_xgboost
def test_a_training_without_end_is_ended(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(BadInput, match=r"longer than 2 seconds|did not start in time"):
        processes.run(jobs(rounds=10**6), timeout=2)
    assert len(started) == 3
    assert all(process.poll() is not None for process in started)


@needs_xgboost
def test_no_process_outlives_a_parent_that_is_killed() -> None:
    script = """
from tests.targets.xgboost.test_xgboost_columns import jobs, processes
start = processes._Process.__enter__
def told(self):
    made = start(self)
    print(made._child.pid, flush=True)
    return made
processes._Process.__enter__ = told
processes.run(jobs(rounds=10**6), timeout=300)
"""
    command, root = [sys.executable, "-c", script], Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [os.pidfd_open(int(parent.stdout.readline())) for _ in range(3)]
        parent.kill()
    for child in children:
        assert select.select([child], [], [], 60)[0]  # a pidfd is ready once its process has ended
        os.close(child)


def test_without_xgboost_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xgboost_columns, "installed", lambda: False)
    plan = make_plan(
        {"data": "breast", "protocols": ["xgboost_columns"], "threats": ["passive-training"], "unknown": [0.5]}
    ).filled()
    with pytest.raises(BadInput, match=r"pip install 'plumbob\[boost\]'"):
        check_fit(plan, open_source(plan.data))


@pytest.mark.parametrize("settings", [{"trees": 0}, {"method": "exact"}, {"predict": "yes"}, {"timeout": 0}])
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=f"xgboost: {next(iter(settings))}"):
        XgboostColumns(**settings)
