"""The hash of the code that made a finding: of what it went through, and of nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbob.auditing.running import provenance
from plumbob.auditing.running.provenance import code_of, modules_of


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of somebody else's: an attack, a helper it imports in a function, and a module it has no use for."""
    folder = tmp_path / "foreign_rooms"
    folder.mkdir()
    (folder / "__init__.py").write_text("", encoding="utf-8")
    (folder / "attack.py").write_text(
        "from . import _constants\n\ndef run():\n    from foreign_rooms.helper import (\n        help,  # used\n    )\n",
        encoding="utf-8",
    )
    (folder / "helper.py").write_text("def help(): return 1\n", encoding="utf-8")
    (folder / "_constants.py").write_text("LIMIT = 1\n", encoding="utf-8")
    (folder / "other.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop("foreign_rooms", None)  # which another folder will have, too


def hashed() -> str:
    for cached in (provenance.code_of, provenance._source, provenance._digest, provenance._imports):
        cached.cache_clear()
    return code_of(frozenset({"foreign_rooms.attack"}))


@pytest.mark.parametrize(
    ("name", "counts"),
    [("attack", True), ("helper", True), ("_constants", True), ("__init__", True), ("other", False)],
)
def test_only_code_that_is_imported_counts(package: Path, name: str, counts: bool) -> None:
    before = hashed()
    with (package / f"{name}.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert (hashed() != before) == counts


def test_an_attack_goes_through_scoring_but_not_through_other_attacks() -> None:
    code_of.cache_clear()
    seen: set[str] = set()
    todo = ["plumbob.auditing.running.run", "plumbob.attacks.scores.path_restriction"]
    while todo:
        module = todo.pop()
        if module.startswith("plumbob") and module not in seen and provenance._source(module) is not None:
            seen.add(module)
            todo += provenance._imports(module)
    assert {"plumbob.scoring.score", "plumbob.threats", "plumbob.attacks.base"} <= seen
    assert "plumbob.attacks.gradients.cafe" not in seen


def test_the_modules_of_a_thing_are_those_of_its_class_and_of_what_it_inherits() -> None:
    from plumbob.attacks import attack_named

    found = modules_of([attack_named("cafe_single_loop")])
    assert {
        "plumbob.attacks.gradients.cafe",
        "plumbob.attacks.gradients._gradient_matching",
        "plumbob.attacks.base",
    } <= found
