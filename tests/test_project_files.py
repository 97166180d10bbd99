"""The files that people look for in a project agree with the Makefile and with the README."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_hooks_before_a_commit_are_the_checks() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    checks = re.search(r"^check:.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    assert checks is not None
    commands = {line.strip().replace("$(BIN)/", "").removesuffix(" .") for line in checks[1].splitlines()}
    hooks = {hook["entry"].removeprefix(".venv/bin/") for hook in read(".pre-commit-config.yaml")["repos"][0]["hooks"]}
    assert hooks == commands


def test_the_workflow_runs_the_checks_and_the_tests() -> None:
    steps = [step.get("run") for step in read(".github/workflows/ci.yml")["jobs"]["test"]["steps"]]
    assert [step for step in steps if step] == ["make check", "make test"]


def test_the_papers_to_cite_are_those_of_the_readme() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    cited = read("CITATION.cff")["references"]
    assert len(cited) == 5
    for paper in cited:
        assert f"*{paper['title']}.*" in readme
        assert all(author["family-names"] in readme for author in paper["authors"])
