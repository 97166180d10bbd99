"""The store: whole files, claims that die with their holder, and audits that are killed or share it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plumbob.app import _claimed, run_audit
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.finding import COSTS, Finding, parted, read_findings
from plumbob.auditing.running.store import Store
from plumbob.errors import BadInput
from plumbob.trust import NO_CODE
from tests.auditing import kills
from tests.commands import Running

PLAN = {
    "data": {"name": "breast", "sample": 150},
    "protocols": ["logistic_regression"],
    "attacks": ["equation_solving"],
    "unknown": [0.1, 0.3],
    "trials": 2,
    "rows": 60,
    "ceiling": False,
}
RESULTS = Path(__file__).parents[2] / "docs" / "results"


def made(folder: Path, store: Path | None = None, **changes: object) -> list[str]:
    """The lines that an audit of the plan, with some changes, ends with."""
    run_audit(PLAN | changes, folder, store=store)
    return (folder / "findings.jsonl").read_text(encoding="utf-8").splitlines()


def test_a_claim_is_for_one_and_is_free_again_when_its_holder_is_killed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store").opened()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, os, sys\n"
            "lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
            "fcntl.flock(lock, fcntl.LOCK_EX)\n"
            "print('held', flush=True)\n"
            "sys.stdin.read()\n",
            str(store.folder / "claims" / "key"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with store.claim("key") as mine:
        assert not mine
    with store.claim("another key") as mine:
        assert mine
    os.kill(holder.pid, signal.SIGKILL)
    store.wait("key")
    holder.communicate()
    with store.claim("key") as mine:
        assert mine
    assert list((store.folder / "claims").iterdir()) == []


def test_what_was_found_and_what_it_cost_lie_apart_and_are_read_together(tmp_path: Path) -> None:
    result = run_audit(PLAN, tmp_path / "out")
    lines = (tmp_path / "out" / "findings.jsonl").read_text(encoding="utf-8").splitlines()
    assert not any(name in json.loads(line) for line in lines for name in COSTS)
    assert read_findings(tmp_path / "out" / "findings.jsonl") == list(result.findings)
    assert all(finding.peak_mb > 0 for finding in result.findings)


def test_a_line_with_its_times_in_it_is_still_read() -> None:
    found = read_findings(RESULTS / "pages" / "scores" / "findings.jsonl")
    assert found
    assert all(finding.seconds > 0 and finding.peak_mb > 0 for finding in found)
    assert Finding.from_line(found[0].to_line()) == found[0]


def key_of(address: str) -> str:
    return parted(address)[0]


def test_a_finding_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    finding = run_audit(PLAN, tmp_path / "out").findings[0]
    store = Store(tmp_path / "out" / "store")
    before = len(store.written())
    store.put(replace(finding, seconds=1e9, withheld=1.0))
    assert store.read(finding.address) == finding
    assert len(store.written()) == before


def test_a_second_plan_computes_only_what_is_new(tmp_path: Path) -> None:
    store = Store(tmp_path / "shared")
    first = made(tmp_path / "one", store.folder)
    more = made(tmp_path / "two", store.folder, attacks=["equation_solving", "posterior_mean"], trials=3)
    assert len(more) == 3 * len(first)
    assert set(first) < set(more)
    assert Counter(map(key_of, store.written())) == Counter(json.loads(line)["key"] for line in more)
    assert more == made(tmp_path / "alone", attacks=["equation_solving", "posterior_mean"], trials=3)


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"rows": 50}, {"train_share": 0.4}, {"data": {"name": "breast", "sample": 140}}]
)
def test_a_changed_setting_meets_no_old_finding(tmp_path: Path, change: dict[str, object]) -> None:
    first = made(tmp_path / "one", tmp_path / "shared")
    other = made(tmp_path / "two", tmp_path / "shared", **change)
    assert {json.loads(line)["key"] for line in first}.isdisjoint(json.loads(line)["key"] for line in other)


def test_names_that_a_finding_carries_are_part_of_its_key(tmp_path: Path) -> None:
    """The same numbers under other column names are other findings: a shared store must not mix up who is named."""
    from plumbob.auditing.planning.plan_file import make_plan
    from plumbob.auditing.running.expand import keyed
    from plumbob.auditing.running.open_data import open_source

    plan = make_plan(PLAN).filled()
    source = open_source(plan.data, plan.seed)
    assert source.table is not None
    columns = tuple(replace(column, name=f"my {column.name}") for column in source.table.columns)
    renamed = replace(source, table=replace(source.table, columns=columns))
    keys = [{key for _, todo in keyed(plan, one) for _, key in todo} for one in (source, renamed)]
    assert source.digest == renamed.digest
    assert keys[0].isdisjoint(keys[1])


def test_which_cells_were_filled_is_part_of_a_key_and_of_no_draw() -> None:
    """The same numbers, of which some were filled: other scores of the same guesses."""
    from plumbob.auditing.planning.plan_file import make_plan
    from plumbob.auditing.running.expand import keyed
    from plumbob.auditing.running.open_data import open_source

    plan = make_plan(PLAN).filled()
    source = open_source(plan.data, plan.seed)
    assert source.table is not None
    filled = np.zeros(source.table.values.shape, dtype=np.bool_)
    filled[3, 1] = True
    marked = replace(source, table=replace(source.table, filled=filled))
    keys = [{key for _, todo in keyed(plan, one) for _, key in todo} for one in (source, marked)]
    assert keys[0].isdisjoint(keys[1])
    assert source.digest == marked.digest


def test_a_folder_that_lost_its_store_computes_nothing_again(tmp_path: Path) -> None:
    lines = made(tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "store")
    assert made(tmp_path / "out") == lines
    assert Store(tmp_path / "out" / "store").written() == []


def test_a_shared_store_takes_no_folders_word_for_a_finding(tmp_path: Path) -> None:
    lines = made(tmp_path / "out")
    assert made(tmp_path / "out", tmp_path / "shared") == lines
    assert len(Store(tmp_path / "shared").written()) == len(lines)


def test_a_torn_or_missing_file_of_lines_is_written_again(tmp_path: Path) -> None:
    lines = made(tmp_path / "out")
    (tmp_path / "out" / "findings.jsonl").write_text("\n".join(lines)[:-40], encoding="utf-8")
    (tmp_path / "out" / "costs.jsonl").unlink()
    assert made(tmp_path / "out") == lines
    assert len((tmp_path / "out" / "costs.jsonl").read_text(encoding="utf-8").splitlines()) == len(lines)
    assert len(Store(tmp_path / "out" / "store").written()) == len(lines)


def test_a_store_must_be_one_and_not_the_folder(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-a-friend.txt").write_text("hello")
    with pytest.raises(BadInput, match="is not empty and not a store"):
        made(tmp_path / "out", tmp_path / "letters")
    with pytest.raises(BadInput, match="cannot be both"):
        made(tmp_path / "out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert len(list((tmp_path / "letters").iterdir())) == 1


def test_a_torn_finding_costs_no_other_and_a_lost_cost_nothing(tmp_path: Path) -> None:
    lines = made(tmp_path / "out")
    stored = sorted((tmp_path / "out" / "store" / "findings").iterdir())
    whole = stored[1].read_text(encoding="utf-8")
    stored[1].write_text(whole[:40], encoding="utf-8")
    with pytest.raises(BadInput, match="remove the file and run again"):
        made(tmp_path / "out")
    assert (tmp_path / "out" / "findings.jsonl").read_text(encoding="utf-8").splitlines() == lines
    stored[1].unlink()
    (tmp_path / "out" / "store" / "costs" / stored[0].name).unlink()
    assert made(tmp_path / "out") == lines


def test_an_audit_killed_before_its_plan_was_written_does_not_block_its_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".plan.yaml.part").write_text("data:")
    (tmp_path / "out" / "findings.jsonl").touch()
    assert len(made(tmp_path / "out")) == 4


def test_many_at_once_in_a_new_folder_give_one_audit_and_sentences(tmp_path: Path) -> None:
    plan = make_plan(PLAN).filled()
    told = []

    def begin(_: int) -> None:
        try:
            with _claimed(tmp_path / "out", plan, NO_CODE):
                time.sleep(0.01)
        except BadInput as error:
            told.append(str(error))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, range(64)))
    assert all("another audit is writing" in sentence for sentence in told)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["findings.jsonl", "plan.yaml"]


def test_a_killed_audit_leaves_no_worker_behind(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(kills.PLAN.replace("TRIALS", "4"))
    running = Running("audit", "plan.yaml", "--workers", "2", "--out", "out", cwd=tmp_path)
    assert running.until(lambda: bool(Store(tmp_path / "out" / "store").written()))
    children = [int(child) for child in Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()]
    workers = [child for child in children if b"LokyProcess" in Path(f"/proc/{child}/cmdline").read_bytes()]
    assert len(workers) == 2
    os.kill(running.pid, signal.SIGKILL)  # this process alone, as the system does that wants its memory
    assert running.wait() == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, workers))


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


def test_two_commands_on_one_store_make_nothing_twice_and_end_equal(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(kills.PLAN.replace("TRIALS", "2"))
    words = ("audit", "plan.yaml", "--store", "shared", "--out")
    both = [Running(*words, name, cwd=tmp_path) for name in ("one", "two")]
    assert [running.wait() for running in both] == [0, 0]
    one, two = ((tmp_path / name / "findings.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two
    assert Counter(map(key_of, Store(tmp_path / "shared").written())) == Counter(
        json.loads(line)["key"] for line in one.splitlines()
    )


def test_three_kills_change_no_byte_and_cost_no_finding(tmp_path: Path) -> None:
    told = kills.measure(tmp_path, 3, 1, 0, "fork", 1)
    assert told["kills after new findings"] >= 1
    assert told["equal byte for byte"] == ["findings.jsonl", "plan.yaml"]
    assert told["findings computed twice"] == 0


@pytest.mark.slow
def test_a_hundred_kills_of_two_workers_change_no_byte(tmp_path: Path) -> None:
    told = kills.measure(tmp_path, 100, 6, 1, "exec", 2)
    assert told["kills"] == 100
    assert told["equal byte for byte"] == ["findings.jsonl", "plan.yaml"]
    assert told["findings computed twice"] == 0


def test_the_committed_hundred_kills_say_what_the_docs_say() -> None:
    told = json.loads((RESULTS / "kills.json").read_text(encoding="utf-8"))
    assert told["kills"] == 100
    assert told["findings computed twice"] == 0
    assert told["equal byte for byte"] == ["findings.jsonl", "plan.yaml"]
