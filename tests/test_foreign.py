"""What other packages add by entry points: tests/foreign holds one with an attack, a defence, a protocol, a threat and a claim.

It is installed as pip would do it, without a network: its modules and a dist-info folder, on the path of a new process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from plumbob.attacks import Attack
from plumbob.attacks.scores.equation_solving import EquationSolving
from plumbob.errors import BadInput
from plumbob.registry import BrokenPackage, Registry, class_of
from plumbob.threats import Threat
from tests.commands import plumbob

ROOT = Path(__file__).parents[1]
EXAMPLE = Path(__file__).parent / "foreign" / "plumbob_example"
PLAN = """
data: {name: breast, sample: 120}
protocols: [ridge_regression]
threats: [active-few-rows]
attacks: [column_means]
defences: [none, softened_scores]
unknown: [0.3]
trials: 1
rows: 50
"""


def install(site: Path) -> Path:
    """The example package in a folder of installed packages."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(EXAMPLE / project["name"].replace("-", "_"), site / "plumbob_example")
    register(site, project["name"], project["entry-points"])
    return site


def register(site: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    """What an installer writes about a package, as far as entry points need it."""
    about = site / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = [f"[{group}]\n" + "".join(f"{key} = {place}\n" for key, place in g.items()) for group, g in groups.items()]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def python(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A new process, whose registries have not been read yet."""
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=site, env=surroundings(site), timeout=240)


def commanded(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`plumbob WORDS` where the package is installed; no registry has been read in its process, either."""
    return plumbob(*words, cwd=site, env=surroundings(site))


def surroundings(site: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def lists(site: Path) -> dict[str, Any]:
    """What `plumbob list` prints of each kind, and the sweep; asked for in one process."""
    script = (
        "import json; from plumbob import listing; from plumbob.auditing.planning.sweep import every\n"
        "kinds = ('defences', 'protocols', 'threats', 'claims', 'matrix')\n"
        "found = {kind: {one['name']: one for one in listing.entries(kind)} for kind in kinds}\n"
        "print(json.dumps(found | {'sweep': every()}))"
    )
    done = python(site, "-c", script)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_foreign_attack_is_listed(site: Path) -> None:
    done = commanded(site, "list", "attacks", "--json")
    assert done.returncode == 0, done.stderr
    (entry,) = [entry for entry in json.loads(done.stdout) if entry["name"] == "column_means"]
    assert entry["paper"] == "example2026"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("defences", "softened_scores"),
        ("protocols", "ridge_regression"),
        ("threats", "active-few-rows"),
        ("claims", "example2026/E1"),
    ],
)
def test_every_other_kind_is_listed_the_same_way(lists: dict[str, Any], kind: str, name: str) -> None:
    assert lists[kind][name]["summary"]


def test_the_matrix_says_where_a_foreign_attack_fits(lists: dict[str, Any]) -> None:
    assert lists["matrix"]["ridge_regression / active-few-rows"]["fits"] == ["column_means"]
    assert "column_means" in lists["matrix"]["logistic_regression / active"]["why_not"]


def test_the_sweep_tries_a_foreign_defence_last_at_the_settings_it_declares(lists: dict[str, Any]) -> None:
    assert lists["sweep"][-2:] == [["softened_scores", {"share": 0.25}], ["softened_scores", {"share": 0.75}]]


def audited(site: Path, out: str) -> tuple[list[dict[str, Any]], set[str]]:
    """The findings of the plan, and the hashes of the code that made them."""
    done = commanded(site, "audit", "plan.yaml", "--out", out)
    assert done.returncode == 0, done.stderr
    found, costs = (
        [json.loads(line) for line in (site / out / name).read_text(encoding="utf-8").splitlines()]
        for name in ("findings.jsonl", "costs.jsonl")
    )
    attacks = {
        one["key"] for one in found if one["attack"] != "ceiling"
    }  # ceilings are scoring's, which stays as it is
    return found, {cost["code"] for cost in costs if cost["key"] in attacks}


def test_an_audit_runs_foreign_code_and_keeps_a_hash_of_it(tmp_path: Path) -> None:
    site = install(tmp_path)
    (site / "plan.yaml").write_text(PLAN, encoding="utf-8")
    found, codes = audited(site, "first")
    attacks = [one for one in found if one["attack"] != "ceiling"]
    assert [(one["protocol"], one["threat"], one["attack"], one["defence"]) for one in attacks] == [
        ("ridge_regression", "active-few-rows", "column_means", "none"),
        ("ridge_regression", "active-few-rows", "column_means", "softened_scores"),
    ]
    with (site / "plumbob_example" / "column_means.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    again, changed = audited(site, "again")
    assert again == found
    assert not codes & changed


BROKEN = (
    "package 'broken-package' offers the attack 'own', which cannot be loaded "
    "(RuntimeError: no licence); repair or uninstall the package\n"
)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A package that cannot be imported, beside the example."""
    (tmp_path / "broken.py").write_text("raise RuntimeError('no licence')\n", encoding="utf-8")
    register(tmp_path, "broken-package", {"plumbob.attacks": {"own": "broken:Own"}})
    return install(tmp_path)


def test_a_package_that_cannot_be_imported_is_a_warning_and_the_rest_is_listed(broken: Path) -> None:
    done = commanded(broken, "list", "attacks", "--json")
    assert (done.returncode, done.stderr) == (0, f"plumbob: warning: {BROKEN}")
    assert {"equation_solving", "column_means"} < {entry["name"] for entry in json.loads(done.stdout)}


def test_a_plan_that_names_what_cannot_be_imported_is_refused(broken: Path) -> None:
    (broken / "plan.yaml").write_text("data: breast\nattacks: [own]\n", encoding="utf-8")
    done = commanded(broken, "audit", "plan.yaml", "--out", "out")
    assert done.returncode == 2
    assert done.stderr.endswith(f"\nplumbob: plan.yaml: {BROKEN}")
    assert not (broken / "out").exists()


def offered(site: Path, monkeypatch: pytest.MonkeyPatch, *places: str) -> Registry[Any]:
    """A registry that holds ESA, with packages that offer these."""
    for number, place in enumerate(places):
        register(site, f"package-{number}", {"plumbob.attacks": {"own": place}})
    monkeypatch.syspath_prepend(site)
    return Registry("attack", lambda: [EquationSolving], class_of(Attack))


def test_what_is_no_attack_is_refused_when_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = offered(tmp_path, monkeypatch, "plumbob.attacks:Attack")
    sentence = "package 'package-0': the entry point 'own' of plumbob.attacks names no attack"
    with pytest.warns(BrokenPackage, match=f"^{sentence}$"):
        assert list(fresh) == ["equation_solving"]
    with pytest.raises(BadInput, match=f"^{sentence}$"):
        fresh.named("own")


def test_nobody_replaces_an_attack_of_plumbob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taker.py").write_text(
        "from plumbob.attacks.scores.posterior_mean import PosteriorMean\n"
        "class Own(PosteriorMean): name = 'equation_solving'\n"
    )
    fresh = offered(tmp_path, monkeypatch, "taker:Own")
    with pytest.warns(BrokenPackage, match="'package-0' offers the attack 'equation_solving', which is Plumbob's own"):
        assert fresh.named("equation_solving") is EquationSolving


def test_a_broken_attack_with_the_name_of_one_of_plumbob_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, "broken-package", {"plumbob.attacks": {"equation_solving": "nowhere:Own"}})
    fresh = offered(tmp_path, monkeypatch)
    with pytest.warns(BrokenPackage, match="cannot be loaded"):
        assert fresh.named("equation_solving") is EquationSolving


def test_what_two_packages_offer_is_neither_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}_own.py").write_text(
            "from plumbob.attacks.scores.posterior_mean import PosteriorMean\nclass Own(PosteriorMean): name = 'own'\n"
        )
    fresh = offered(tmp_path, monkeypatch, "one_own:Own", "two_own:Own")
    sentence = "the attack 'own' is offered twice, by 'package-0' and 'package-1'; uninstall one of them"
    with pytest.warns(BrokenPackage, match=f"^{sentence}$"):
        assert "own" not in fresh
    with pytest.raises(BadInput, match=f"^{sentence}$"):
        fresh.named("own")


def test_an_alias_is_the_name_it_stands_for() -> None:
    fresh = Registry("attack", lambda: [EquationSolving], class_of(Attack))
    assert (fresh.canonical("ESA"), fresh.canonical("equation_solving")) == ("equation_solving",) * 2
    assert fresh.named("ESA") is EquationSolving


def test_a_registry_keeps_the_declared_order_where_asked_to() -> None:
    threats = [Threat("second", ""), Threat("first", "")]
    assert list(Registry("example", lambda: threats, in_order=True)) == ["second", "first"]
    assert list(Registry("example", lambda: threats)) == ["first", "second"]
