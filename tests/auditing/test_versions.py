"""Plans, findings and stores of other versions are read, or refused in one sentence; so are systems without file locks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbob import os_specific as platform_only
from plumbob.app import run_audit
from plumbob.auditing.planning.plan_file import read_plan
from plumbob.auditing.running.finding import Finding, read_findings
from plumbob.auditing.running.store import FORMAT, MARK, Store
from plumbob.errors import BadInput
from tests.report import samples

PLAN = {
    "data": {"name": "breast", "sample": 150},
    "protocols": ["logistic_regression"],
    "attacks": ["equation_solving"],
}
PLAN |= {"unknown": [0.1], "trials": 1, "rows": 60}


def line(change: Callable[[dict[str, Any]], object]) -> str:
    raw = json.loads(samples.values(shares=(0.3,))[0].to_line())
    change(raw)
    return json.dumps(raw)


def read(folder: Path, text: str) -> list[Finding]:
    (folder / "findings.jsonl").write_text(f"{text}\n", encoding="utf-8")
    return read_findings(folder / "findings.jsonl")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda raw: raw.update(colour="red"), "unknown field 'colour'"),
        (lambda raw: raw["score"].update(colour="red"), "unknown field 'colour'"),
        (lambda raw: raw.pop("protocol"), "missing field 'protocol'"),
        (lambda raw: raw["score"].pop("error"), "missing field 'error'"),
    ],
)
def test_a_finding_of_another_version_is_refused_by_its_field(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    with pytest.raises(BadInput, match=f"findings.jsonl, line 1: not a finding of this version: {words}; move"):
        read(tmp_path, line(change))


def test_a_finding_from_before_a_field_was_added_is_read(tmp_path: Path) -> None:
    (found,) = read(tmp_path, line(lambda raw: [raw.pop(name) for name in ("flows", "usual_class", "code")]))
    assert (found.flows, found.usual_class, found.code) == ((), None, "")


def test_a_plan_with_keys_of_another_version_is_refused_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("data: breast\nbudgets: 5m\n", encoding="utf-8")
    with pytest.raises(BadInput, match="'budgets' is not a key of a plan"):
        read_plan(tmp_path / "plan.yaml")


def test_a_folder_whose_plan_has_keys_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("data: breast\nbudgets: 5m\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"holds the audit of another plan, which cannot be read here .*'budgets'"):
        run_audit(PLAN, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]


def test_a_store_of_an_earlier_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / MARK).write_text('{"format": 1, "id": "a"}\n', encoding="utf-8")
    with pytest.raises(BadInput, match=f"is a store of format 1, and this version of Plumbob reads format {FORMAT}"):
        Store(tmp_path).opened()
    assert [path.name for path in tmp_path.iterdir()] == [MARK]


def test_a_folder_of_other_files_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(BadInput, match="is not empty and not a store"):
        Store(tmp_path).check()


def test_a_system_without_file_locks_is_told_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform_only, "_SUPPORTED", False)
    with pytest.raises(BadInput, match="needs file locks"), (tmp_path / "file").open("w") as file:
        platform_only.lock(file)
    assert platform_only.peak_mb() == 0.0
