"""The docs are run: commands, Python blocks, plans and links, so that they cannot drift from the code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from plumbob.auditing.finding import Finding, read_findings
from plumbob.auditing.plan import DataPlan, PartyPlan, Plan, RulesPlan, ThreatPlan
from plumbob.auditing.plan_file import make_plan
from plumbob.auditing.summarise import group
from plumbob.scoring.images import ImageScore
from plumbob.scoring.score import ColumnScore, Score
from plumbob.targets.xgboost.xgboost_columns import MISSING, installed
from tests.commands import plumbob

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
PAGES = [
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if page.exists()
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    return [body for kind, body in _FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands(program: str) -> list[str]:
    """What follows `$ program ` in console blocks of all pages, each line once."""
    return list(dict.fromkeys(line for block in sessions(program) for line in block))


def sessions(program: str) -> list[tuple[str, ...]]:
    """The commands of each console block, in order; blocks that differ by folders or by --json only, once."""
    prompt = re.compile(rf"^\$ (?:\S*/)?{program} (.+)$", re.MULTILINE)
    found = [tuple(prompt.findall(block)) for page in PAGES for block in blocks(page, "console")]
    return list({tuple(_essence(line) for line in lines): lines for lines in reversed(found) if lines}.values())[::-1]


def _essence(line: str) -> str:
    return re.sub(r" --out \S+| --json|docs/examples/", "", line)


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as a renderer makes them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the examples, reachable from README's place and from their own."""
    shutil.copytree(EXAMPLES, tmp_path / "docs" / "examples")
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as for a script that lies there
    return tmp_path


@pytest.fixture(scope="session")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for all commands of the docs, in whatever process they run: pages that show the same audit share it."""
    return tmp_path_factory.getbasetemp().parent / "plumbob-store-of-the-docs"


@pytest.mark.parametrize("session", sessions("plumbob"), ids=" && ".join)
def test_commands_exit_with_0(session: tuple[str, ...], desk: Path, findings: Path) -> None:
    """The commands of a block, one after the other in one folder."""
    if "xgboost" in " ".join(session) and not installed():
        pytest.skip(MISSING)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PLUMBOB_STORE": str(findings)}
    for line in session:
        words = shlex.split(line, comments=True)
        assert not {"|", ">", "&&", ";"} & set(words), "a command of the docs must run without a shell"
        if words[0] == "init":
            (desk / "plan.yaml").unlink(missing_ok=True)
        if "run.zip" in words:  # which the example writes
            subprocess.run([sys.executable, "split_learning.py"], cwd=desk, env=environment, check=True, timeout=120)
        done = plumbob(*words, cwd=desk, env=environment)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", commands("make"))
def test_make_targets_exist(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in (word for word in shlex.split(command, comments=True) if "=" not in word):
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"no target '{target}'"


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=name_of)
def test_python_blocks_run(page: Path, desk: Path) -> None:
    """Blocks of one page share their names, top to bottom."""
    names: dict[str, object] = {"__name__": "docs"}
    for block in blocks(page, "python"):
        exec(compile(block, name_of(page), "exec", dont_inherit=True), names)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "yaml")], ids=name_of)
def test_plans_are_valid(page: Path) -> None:
    for block in blocks(page, "yaml"):
        if block.startswith("data:"):
            make_plan(yaml.safe_load(block), source=name_of(page), folder=EXAMPLES)


@pytest.mark.parametrize("plan", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_example_plans_are_shown_as_they_are(plan: Path) -> None:
    shown = [block for page in PAGES for block in blocks(page, "yaml")]
    assert plan.read_text(encoding="utf-8") in shown


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor and target.suffix == ".md":
            assert anchor in slugs(target), f"{link}: no such heading"


@pytest.mark.parametrize("kind", [Plan, DataPlan, PartyPlan, RulesPlan, ThreatPlan], ids=lambda kind: kind.__name__)
def test_every_key_of_a_plan_is_documented(kind: type[Plan]) -> None:
    text = (ROOT / "docs" / "plan.md").read_text(encoding="utf-8")
    assert [key for key in kind.model_fields if f"`{key}`" not in text] == []


@pytest.mark.parametrize("kind", [Finding, Score, ColumnScore, ImageScore], ids=lambda kind: kind.__name__)
def test_every_field_of_a_finding_is_documented(kind: type[Finding]) -> None:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert [field.name for field in fields(kind) if f"`{field.name}`" not in text] == []


def test_the_python_reference_is_that_of_the_code() -> None:
    names: dict[str, Any] = {"__name__": "docs", "__file__": str(ROOT / "docs" / "reference.py")}
    exec(compile((ROOT / "docs" / "reference.py").read_text(encoding="utf-8"), "reference.py", "exec"), names)
    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert names["page"]() == written, "run python docs/reference.py"


def test_the_table_of_the_cut_layer_says_what_its_findings_say() -> None:
    text = (ROOT / "docs" / "cut_layer.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (.+) \| (-?\d+) % \| (\d+\.\d) % \|$", text, re.MULTILINE)
    shown = {"none": "none", "rotation": "rotation", "masquerade": "masquerade", "left out": "left_out"}
    shown |= {"deeper cut, two layers": "deeper_cut", "quantised embeddings, 4 bits": "quantised_embeddings"}
    shown |= {"rank reduction by one": "rank_reduction", "rank reduction to one": "rank_reduction (rank=1)"}
    shown |= {"Gaussian masking, sigma 0.5": "gaussian_masking (sigma=0.5)"}
    found = group(read_findings(ROOT / "docs" / "results" / "cut_layer" / "findings.jsonl"), lambda f: f.defence)
    assert len(told) == len(found) == len(shown)
    for words, gain, right in told:
        trials = found[shown[re.sub(r"\[(.+?)\]\(.+?\)", r"\1", words)]]
        gains = [c.gain for f in trials for c in f.score.columns if c.name == "shop.member"]
        assert f"{100 * sum(gains) / len(gains):.0f}" == gain
        assert f"{100 * sum(f.model_accuracy for f in trials) / len(trials):.1f}" == right


def test_the_picture_in_the_readme_shows_the_committed_findings() -> None:
    """The report in the picture was made from docs/results/demo; its headline can be made again from there."""
    from plumbob.auditing.finding import read_findings
    from plumbob.auditing.summarise import summarise
    from plumbob.report.answer import answers, overall

    found = answers(summarise(read_findings(ROOT / "docs" / "results" / "demo" / "findings.jsonl")))
    assert overall(found) == "Yes: 21 of 30 columns leak"


def test_the_tables_of_xgboost_say_what_its_findings_say() -> None:
    text = (ROOT / "docs" / "xgboost.md").read_text(encoding="utf-8")
    found = read_findings(ROOT / "docs" / "results" / "xgboost" / "findings.jsonl")
    threats = {"the shop": "passive-training", "the bank": "active-training", "the server": "coordinator"}
    labels = re.findall(r"^\| (the \w+) \| (\d+) % \| (\d+) % \|$", text, re.MULTILINE)
    assert len(labels) == 2
    for who, read, guessed in labels:
        told = [f.score for f in found if f.threat == threats[who]]
        assert f"{100 * min(s.label_accuracy for s in told):.0f}" == read
        assert f"{100 * np.mean([s.label_baseline for s in told]):.0f}" == guessed
    columns = re.findall(r"^\| `([\w.]+)` \| (the \w+) \| (\d+) % \| (\d+) % \|$", text, re.MULTILINE)
    assert len(columns) == 7
    for name, who, *gains in columns:
        for reader in (threats[who], "coordinator"):
            for told, predicted in zip(gains, (False, True), strict=True):
                trials = [f for f in found if f.threat == reader and ("predict" in f.protocol) == predicted]
                gain = np.mean([c.gain for f in trials for c in f.score.columns if c.name == name])
                assert f"{100 * gain:.0f}" == told
