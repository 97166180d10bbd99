"""The wall: an attack reaches nothing but its view, has limits, and finds to the last bit what it would find without."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

from benchmarks.wall import here
from plumbob.app import attack_again, run_audit
from plumbob.attacks import ATTACKS, Guess
from plumbob.attacks.base import nothing
from plumbob.auditing.running import execution_engines
from plumbob.auditing.running import run as workbench
from plumbob.auditing.running.finding import Finding, read_findings
from plumbob.auditing.running.isolation import _walls, attacker
from plumbob.auditing.running.store import Store
from plumbob.errors import BadInput
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from tests.auditing import cheats
from tests.commands import COLD, FORGET, WARM, plumbob

ROOT = Path(__file__).parents[2]
PLAN = {"data": {"name": "breast", "sample": 120}, "protocols": ["logistic_regression"], "unknown": [0.3], "rows": 50}
PLAN |= {"ceiling": False}  # which is scoring's, and holds the truth
SMALL = PLAN | {"trials": 1, "attacks": ["equation_solving"]}


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in cheats._Example.__subclasses__():
        monkeypatch.setitem(ATTACKS._entries, kind.name, kind)


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every audit starts the process of its attacks from nothing, and ends it."""
    attacker.close()
    monkeypatch.setattr(attacker._Attacker, "_twin", COLD)
    monkeypatch.setattr(attacker, "warm", WARM)
    monkeypatch.setattr(execution_engines, "forget", FORGET)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """What a cheat knows: where the audit, its tables and its servers are."""
    secret = ctypes.create_string_buffer(os.urandom(cheats.LENGTH))
    table, shared = tmp_path / "table.csv", Path("/dev/shm") / tmp_path.name
    table.write_text("hidden\n1\n")
    shared.write_bytes(b"shared")
    monkeypatch.setenv("A_SECRET_OF_THE_AUDIT", "1")
    with ExitStack() as stack:
        port, path, name = (
            stack.enter_context(socket.socket(kind)) for kind in (socket.AF_INET, *[socket.AF_UNIX] * 2)
        )
        for server, address in ((port, ("127.0.0.1", 0)), (path, str(tmp_path / "s")), (name, f"\0{tmp_path.name}")):
            server.bind(address)
            server.listen(8)
        known = {"AUDIT": os.getpid(), "ADDRESS": ctypes.addressof(secret), "TABLE": str(table), "SHARED": str(shared)}
        known |= {"PORT": port.getsockname()[1], "SOCKET": str(tmp_path / "s"), "ABSTRACT": tmp_path.name}
        known |= {"TEMPORARY": tempfile.gettempdir()}
        (tmp_path / "code").mkdir()
        (tmp_path / "code" / "places.py").write_text("".join(f"{key} = {value!r}\n" for key, value in known.items()))
        monkeypatch.syspath_prepend(tmp_path / "code")
        yield importlib.import_module("places")
    sys.modules.pop("places")
    shared.unlink()


def audited(folder: Path, **changes: object) -> list[Finding]:
    return list(run_audit(SMALL | changes, folder).findings)


def test_settings_reach_the_attack_and_name_its_findings(tmp_path: Path) -> None:
    """The same attack three times, each as it would run beside the audit with these settings."""
    shadow = {"name": "GIA", "settings": {"steps": 2, "finish": 0}}
    findings = audited(tmp_path / "out", attacks=[shadow, {"name": "GIA", "preset": "small"}, "ESA"])
    titles = ["gradient_inversion (steps=2, finish=0)", "gradient_inversion (small)", "equation_solving"]
    assert [finding.attack for finding in findings] == titles
    assert len({finding.key for finding in findings}) == 3
    rough, better, _ = (finding.score.error for finding in findings)
    assert rough > better
    assert audited(tmp_path / "again", attacks=[shadow])[0].found_line() == findings[0].found_line()


def children() -> list[int]:
    return [int(word) for path in Path("/proc/self/task").iterdir() for word in (path / "children").read_text().split()]


def test_a_cheat_reaches_nothing(tmp_path: Path, places: ModuleType) -> None:
    (finding,) = audited(tmp_path / "out", attacks=["cheat"])
    if finding.not_isolated:
        pytest.skip(f"{finding.not_isolated} missing on this system")
    assert (finding.certificate, finding.score.failed) == ("", "")


def test_without_the_wall_it_reaches_everything(
    tmp_path: Path, places: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "attempt", here)
    (finding,) = audited(tmp_path / "out", attacks=["cheat"])
    assert finding.certificate == ", ".join(sorted(cheats.WAYS))


FAILURES = {
    "raises": r"the attack raised ValueError at tests/auditing/cheats\.py:\d+",
    "hangs": "it ran longer than 2 s",
    "eats": "it needed more than 500 MB",
    "dies": "it was killed by signal 9",
    "leaves": r"it ended without an answer \(exit code 3\)",
    "forgets": "it returned no guess",
    "misfits": r"its guess does not fit the view \(values: \(1, 1\) in place of \(50, 9\)\)",
    "babbles": "its answer is too long",
}


def test_attacks_that_fail_are_findings_and_all_else_goes_on(tmp_path: Path) -> None:
    plan = SMALL | {"attacks": [*FAILURES, "equation_solving"], "attack_seconds": 2, "attack_memory_mb": 500}
    result = run_audit(plan, tmp_path / "out")
    found = {finding.attack: finding.score for finding in result.findings}
    assert found.pop("equation_solving") == audited(tmp_path / "alone")[0].score
    for name, reason in FAILURES.items():
        assert re.fullmatch(reason, found[name].failed)
        assert found[name].untried == found[name].failed
        assert {(column.claims, column.gain) for column in found[name].columns} == {(0, 0.0)}
        assert any(note.startswith(f"{name} failed in 1 of 1 runs on logistic_regression") for note in result.notes)
    assert read_findings(tmp_path / "out" / "findings.jsonl") == list(result.findings)


def test_what_failed_for_want_of_time_or_memory_is_tried_again(tmp_path: Path) -> None:
    """And not served to others: a larger machine may succeed."""
    plan = SMALL | {"attacks": ["dies", "equation_solving", "raises"], "attack_memory_mb": 500}
    first = [run_audit(plan, tmp_path / "first", store=tmp_path / "store") for _ in range(2)]
    second = run_audit(plan, tmp_path / "second", store=tmp_path / "store")
    assert [result.reused for result in (*first, second)] == [0, 2, 2]
    computed = Counter(Store(tmp_path / "store").written())
    assert [computed[finding.address] for finding in second.findings] == [3, 1, 1]
    lines = {(tmp_path / name / "findings.jsonl").read_text() for name in ("first", "second")}
    assert len(lines) == 1
    assert not list((tmp_path / "store" / "failed").iterdir())


def test_findings_are_those_of_an_attack_in_the_process_of_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boosting = {"name": "secure_boost", "settings": {"key_bits": 0, "trees": 2, "depth": 2, "loss": "squared"}}
    network = {"name": "split_network", "settings": {"hidden": [16, 8], "epochs": 4, "batch_size": 40}}
    plan = PLAN | {"protocols": ["logistic_regression", "decision_tree", boosting, network], "trials": 1}
    plan |= {"threats": ["active", "active-training", "active-low-bits"]}
    plan |= {
        "attacks": [
            "posterior_mean",
            {"name": "GIA", "preset": "small"},
            "path_restriction",
            "reverse_sum",
            "binary_columns",
        ]
    }
    walled = run_audit(plan, tmp_path / "walled")
    monkeypatch.setattr(workbench, "attempt", here)
    run_audit(plan, tmp_path / "here")
    assert len({finding.attack for finding in walled.findings}) == 5
    assert not any(finding.score.failed for finding in walled.findings)
    lines = [(tmp_path / name / "findings.jsonl").read_bytes() for name in ("walled", "here")]
    assert lines[0] == lines[1]


def test_a_finding_holds_the_hash_of_the_view_that_was_attacked(tmp_path: Path) -> None:
    result = run_audit(SMALL, tmp_path / "out", transcripts=True)
    (path,) = (tmp_path / "out" / "transcripts").iterdir()
    view = cut(Transcript.load(path), THREATS["active"])
    view.save(tmp_path / "view.zip")
    assert [finding.view for finding in result.findings] == [view.digest] == [View.load(tmp_path / "view.zip").digest]
    assert replace(view, own=np.nextafter(view.own, 1)).digest != view.digest


def test_nothing_is_left_after_an_audit(tmp_path: Path) -> None:
    audited(tmp_path / "first")
    before = len(list(Path("/proc/self/fd").iterdir())), children()
    audited(tmp_path / "second", attacks=["dies", "raises", "equation_solving"])
    assert (len(list(Path("/proc/self/fd").iterdir())), children()) == before


def test_a_killed_audit_takes_the_process_of_its_attacks_with_it(tmp_path: Path) -> None:
    """While an attack hangs in it."""
    plan = SMALL | {"attacks": ["hangs"]}
    program = (
        "import sys; from plumbob.app import run_audit; from plumbob.attacks import ATTACKS\n"
        "from tests.auditing.cheats import Hangs\n"
        f"ATTACKS._entries['hangs'] = Hangs; run_audit({plan!r}, sys.argv[1])\n"
    )
    audit = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "out")], cwd=ROOT)
    patience = time.monotonic() + 60
    while len(family := descendants(audit.pid)) < 4 and time.monotonic() < patience:  # watcher, waiter, attack
        time.sleep(0.01)
    assert len(family) == 4
    audit.kill()
    audit.wait()
    while any(map(alive, family)) and time.monotonic() < patience:
        time.sleep(0.01)
    assert not any(map(alive, family))


def descendants(process: int) -> list[int]:
    """A process and all that it started, with what those started."""
    try:
        own = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        own = []
    return [process, *(one for child in own for one in descendants(int(child)))]


def alive(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


class Inline(cheats._Example):
    name = "inline"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        return nothing(view)


def test_an_attack_that_another_process_cannot_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Inline, "__module__", "__main__")
    monkeypatch.setitem(ATTACKS._entries, "inline", Inline)
    with pytest.raises(BadInput, match=r"attack 'inline': .* cannot import Inline from __main__; define it at the top"):
        audited(tmp_path / "out", attacks=["inline"])
    assert not (tmp_path / "out").exists()


def test_a_report_says_what_was_missing_to_isolate_attacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert audited(tmp_path / "whole")[0].not_isolated in ("", *_walls.PARTS)
    state = json.loads((tmp_path / "whole" / "environment.json").read_text())["isolation"]
    assert (state == "complete") == (not audited(tmp_path / "whole")[0].not_isolated)

    def bare(*given: Any) -> attacker.Attempt:
        return replace(here(*given), not_isolated="Landlock, user namespaces")

    monkeypatch.setattr(workbench, "attempt", bare)
    result = run_audit(SMALL, tmp_path / "bare")
    words = "not isolated: Landlock, user namespaces missing"
    assert any(note.startswith(words) for note in result.notes)
    assert json.loads((tmp_path / "bare" / "environment.json").read_text())["isolation"] == words
    assert words in (tmp_path / "bare" / "report.html").read_text()


def test_a_failed_attack_can_be_run_again_where_its_traceback_shows(tmp_path: Path) -> None:
    (finding,) = audited(tmp_path / "out", attacks=["raises"])
    again = attack_again(tmp_path / "out" / "plan.yaml", finding.key[:12])
    with pytest.raises(ValueError, match="cells of the view"):
        again()
    with pytest.raises(BadInput, match="0 findings of this plan have a key that begins with 'other'"):
        attack_again(tmp_path / "out" / "plan.yaml", "other")


def test_the_terminal_says_how(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        yaml.safe_dump(PLAN | {"trials": 1, "attacks": ["equation_solving"], "attack_seconds": 1e-6})
    )
    told = plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path)
    assert told.returncode == 0
    shown = re.search(
        r"equation_solving failed in 1 of 1 runs on .*: it ran longer than 1e-06 s; to see why: plumbob (.*)",
        told.stderr,
    )
    assert shown
    again = plumbob(*shlex.split(shown[1]), cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "")
    assert "ended well" in again.stderr
