"""Pages, lists, charts and matrix are those of the code, and CONTRIBUTING adds an attack, a defence and a protocol."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from docs.generate import DOCS, stale
from docs.generate.facts import own
from docs.generate.lists import HEADS
from docs.generate.pages import Subject, kept, page, subjects, titled
from plumbob.attacks import ATTACKS
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.expand import attack_cases, units
from plumbob.defences import DEFENCES
from plumbob.protocols import PROTOCOLS

ROOT = DOCS.parent
SUBJECTS = subjects()
BY_HAND = [subject for subject in SUBJECTS if subject.kind != "protocols"]
RUNNABLE = [subject for subject in SUBJECTS if subject.plan]
ADDED = re.compile(r"^```py\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AUDIT = """data: digits
unknown: [0.3]
protocols: [logistic_regression, nearest_mean]
attacks: [own_row_mean]
defences: [none, top_score]
trials: 1
rows: 60
"""


def name_of(subject: Subject) -> str:
    return f"{subject.kind}/{subject.name}.md"


def text_of(subject: Subject) -> str:
    return (DOCS / name_of(subject)).read_text(encoding="utf-8")


def test_nothing_is_stale() -> None:
    assert sorted(path.as_posix() for path in stale()) == [], "run python -m docs.generate"


def test_a_changed_page_is_stale_and_is_mended_with_its_text(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.png", "*.json", "*.py"))
    changed = tmp_path / "attacks" / "equation_solving.md"
    right = changed.read_text(encoding="utf-8")
    changed.write_text(right.replace("- family: scores", "- family: sums"), encoding="utf-8")
    assert stale(tmp_path) == {Path("attacks/equation_solving.md"): right}


def test_everything_registered_has_a_page_that_a_list_names() -> None:
    names = {
        "attacks": [*own(ATTACKS)],
        "defences": [n for n in own(DEFENCES) if n != "none"],
        "protocols": [*own(PROTOCOLS)],
    }
    for kind, registered in names.items():
        index = (DOCS / kind / "index.md").read_text(encoding="utf-8")
        assert [n for n in registered if f"({n}.md)" not in index or not (DOCS / kind / f"{n}.md").exists()] == []


def test_every_page_of_these_folders_is_generated() -> None:
    there = {path.relative_to(DOCS).as_posix() for kind in HEADS for path in (DOCS / kind).iterdir()}
    assert there == {*map(name_of, SUBJECTS), *(f"{kind}/index.md" for kind in HEADS)}


@pytest.mark.parametrize("subject", BY_HAND, ids=name_of)
def test_pages_of_attacks_and_defences_say_what_it_means_with_formula(subject: Subject) -> None:
    text = kept(text_of(subject))
    assert text.startswith("## What it means for you")
    assert "\n## Algebra\n" in text


def test_every_attack_and_defence_has_a_chart_but_those_that_no_audit_measures() -> None:
    bare = {subject.name for subject in BY_HAND if "](../images/" not in text_of(subject)}
    assert bare == {"precheck", "psi"}


@pytest.mark.parametrize("subject", SUBJECTS, ids=name_of)
def test_no_sentence_stands_twice_on_a_page(subject: Subject) -> None:
    lines = [line for line in text_of(subject).splitlines() if len(line.split()) > 8]
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("subject", RUNNABLE, ids=name_of)
def test_the_plan_of_a_page_has_something_to_run(subject: Subject) -> None:
    plan = make_plan(yaml.safe_load(subject.plan), source=name_of(subject), folder=ROOT)
    attacks = {case.title for unit in units(plan) for case in attack_cases(plan, unit)}
    assert subject.name in attacks if subject.kind == "attacks" else attacks


def test_title_and_text_by_hand_are_kept_and_the_rest_is_not() -> None:
    old = (
        "# Title\n\n<!--generated-->\nold\n<!--/generated-->\n\nText.\n\n<!--generated:use-->\nold\n<!--/generated-->\n"
    )
    made = page(titled(SUBJECTS[0], old), old, [])
    assert made.startswith("# Title\n")
    assert kept(made) == "Text."
    assert "old" not in made


def test_a_page_without_text_is_whole() -> None:
    subject = next(one for one in SUBJECTS if one.name == "equation_solving")
    made = page(titled(subject, ""), "", [])
    assert made.startswith("# Equation solving (ESA)\n")
    for part in (subject.summary, "luo2021", "attacks: [equation_solving]", "`adaptive`"):
        assert part in made


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the files that CONTRIBUTING shows, so that no other test meets them."""
    root = tmp_path_factory.mktemp("house")
    shutil.copytree(ROOT / "plumbob", root / "plumbob", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / "docs" / "generate", root / "docs" / "generate", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("__init__.py", "worlds.py"):
        (root / "tests").mkdir(exist_ok=True)
        shutil.copy(ROOT / "tests" / name, root / "tests" / name)
    for place, text in ADDED.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        assert not (ROOT / place).exists(), f"{place} is there already"
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, encoding="utf-8")
    return root


def run(house: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(house), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, *words], cwd=house, env=environment, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_of_contributing_pass(house: Path) -> None:
    assert "3 passed" in run(house, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")


def test_an_audit_runs_with_what_contributing_adds(house: Path) -> None:
    (house / "own.yaml").write_text(AUDIT, encoding="utf-8")
    lines = run(house, "-m", "plumbob", "audit", "own.yaml", "--json").splitlines()
    for part in ('"attack":"own_row_mean"', '"defence":"top_score"', '"protocol":"nearest_mean"'):
        assert any(part in line for line in lines), part


def test_what_contributing_adds_gets_pages_with_no_writing(house: Path) -> None:
    script = "from docs.generate.pages import page, subjects\nfor s in subjects(): print(page(s, '', []))"
    made = run(house, "-c", script)
    for title in ("# Own row mean", "# Top score", "# Nearest mean"):
        assert f"{title}\n" in made
