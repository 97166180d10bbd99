"""The docs are run: commands, Python blocks, plans and links, so that they cannot drift from the code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import yaml

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.plan import DataPlan, PartyPlan, Plan, RulesPlan, ThreatPlan
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.finding import Finding, read_findings
from plumbob.scoring.images import ImageScore
from plumbob.scoring.score import ColumnScore, Score
from plumbob.targets.xgboost.xgboost_columns import MISSING, installed
from tests.commands import plumbob

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
PAGES = [page for page in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))) if page.exists()]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PROMPT = re.compile(r"^\$ (.+)$", re.MULTILINE)
_MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
_VENV = re.findall(r"^VENV \?= (\S+)$", _MAKEFILE, re.MULTILINE)[0]
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    return [body for kind, body in _FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def lines(page: Path) -> list[str]:
    """What a reader types: the lines after `$ ` in the console blocks of a page."""
    return [line for block in blocks(page, "console") for line in _PROMPT.findall(block)]


def steps(page: Path) -> list[tuple[str, str]]:
    """What a reader runs on a page, in order: lines of the shell and blocks of Python."""
    found: list[tuple[str, str]] = []
    for kind, body in _FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            found += [("console", line) for line in _PROMPT.findall(body)]
        elif kind == "python":
            found.append(("python", body))
    return found


def folder_of(page: Path) -> str:
    """Where a reader types: in a checkout, or beside the example plans where the page names these without a folder."""
    told = page.parent.name in ("attacks", "defences") and "docs/examples/" not in "".join(lines(page))
    return "docs/examples" if told else "."


def runs() -> list[Path]:
    """The pages with something to run; of pages that run the very same in the same folder, the first."""
    told = {(folder_of(page), tuple(steps(page))): page for page in reversed(PAGES) if steps(page)}
    return sorted(told.values())


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as a renderer makes them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """An empty folder with the examples where a checkout has them."""
    shutil.copytree(EXAMPLES, tmp_path / "docs" / "examples")
    return tmp_path


@pytest.fixture(scope="session")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for all commands of the docs, in whatever process they run: pages that show the same audit share it."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "plumbob-store-of-the-docs"


class Reader:
    """Types what a page prints, line by line, in one folder and one shell. Nothing is tidied up in between."""

    def __init__(self, page: Path, desk: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.desk, self.here, self.patch = desk, desk / folder_of(page), monkeypatch
        self.environment = os.environ | {"PYTHONPATH": str(ROOT), "PLUMBOB_STORE": str(store)}
        self.ready = not any(re.match(r"make (install|demo)|.*pip install", line) for line in lines(page))
        self.names: dict[str, object] = {"__name__": "docs"}

    def type(self, line: str) -> None:
        """One line of the shell. What builds an environment is checked, not run."""
        program, *words = shlex.split(line, comments=True)
        assert not {"|", ">", "&&", ";"} & set(words), "a line of the docs must run without operators of the shell"
        if program == "make":
            missing = [target for target in words if not re.search(rf"^{re.escape(target)}:", _MAKEFILE, re.MULTILINE)]
            assert not missing, f"no target {missing}"
        elif program == "cd":
            self.here = self.here / words[0]
            assert self.here.is_dir(), f"{line}: no such folder"
        elif program == "source":
            assert words == [f"{_VENV}/bin/activate"], f"{line}: the environment is {_VENV}"
            self.ready = True
        elif program in ("git", "pip") or words[:2] == ["-m", "venv"]:
            assert [name for name in re.findall(r"-c (\S+)", line) if not (ROOT / name).exists()] == []
            assert set(re.findall(r"\[(\w+)\]", line)) <= EXTRAS, f"{line}: the extras are {sorted(EXTRAS)}"
        else:
            self.run(line, program, words)

    def run(self, line: str, program: str, words: list[str]) -> None:
        """A command of Plumbob, or a script, that must end as the page says: `# exit code 1`, or 0 if it says nothing."""
        assert self.ready, f"{line}: the page installs into {_VENV} and has not activated it"
        if program == "plumbob":
            done = plumbob(*words, cwd=self.here, env=self.environment)
        else:
            assert program == "python", f"{line}: the docs test does not know '{program}'"
            script = [sys.executable, *words]
            done = subprocess.run(
                script, cwd=self.here, env=self.environment, capture_output=True, text=True, timeout=120
            )
        told = re.search(r"# exit code (\d+)", line)
        assert done.returncode == (int(told[1]) if told else 0), f"{line}\n{done.stderr}"
        assert "Traceback" not in done.stderr

    def execute(self, block: str, source: str) -> None:
        """A block of Python, in the session that the page's earlier blocks began."""
        self.patch.chdir(self.here)
        self.patch.syspath_prepend(self.here)
        exec(compile(block, source, "exec", dont_inherit=True), self.names)


@pytest.mark.parametrize("page", runs(), ids=name_of)
def test_a_page_runs_as_typed(page: Path, desk: Path, findings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "xgboost.yaml" in page.read_text(encoding="utf-8") and not installed():
        pytest.skip(MISSING)
    reader = Reader(page, desk, findings, monkeypatch)
    for kind, text in steps(page):
        if kind == "console":
            reader.type(text)
        else:
            reader.execute(text, name_of(page))


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
    from docs.generate import reference

    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert reference.page() == written, "run python -m docs.generate.reference"


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
    from plumbob.auditing.running.finding import read_findings
    from plumbob.report.answer import answers, overall

    found = answers(conclude(read_findings(ROOT / "docs" / "results" / "demo" / "findings.jsonl")))
    assert overall(found).startswith("Yes: 28 of 30 columns leak")


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
