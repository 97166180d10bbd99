"""One registry for everything that a plan can name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbob.attacks import ATTACKS
from plumbob.defences import DEFENCES
from plumbob.errors import BadInput
from plumbob.protocols import PROTOCOLS
from plumbob.registry import Registry, exported, make

ROOMS = {"attacks": ATTACKS, "defences": DEFENCES, "protocols": PROTOCOLS}
EVERY = [pytest.param(kind, id=f"{room}/{name}") for room, kinds in ROOMS.items() for name, kind in kinds.items()]
FOLDER = Path(__file__).parents[1] / "plumbob"


@pytest.mark.parametrize("kind", [one for one in EVERY if one.values[0].name != "none"])
def test_name_class_and_file_are_the_same_words(kind: type) -> None:
    assert kind.__module__.rpartition(".")[2] == kind.name
    assert kind.__name__.lower() == kind.name.replace("_", "")


@pytest.mark.parametrize("kind", EVERY)
def test_everything_registered_says_what_it_is(kind: type) -> None:
    assert kind.summary
    assert kind.__doc__


@pytest.mark.parametrize("room", ROOMS)
def test_public_files_of_a_family_are_what_is_registered_there(room: str) -> None:
    folders = [
        path
        for path in (FOLDER / room).iterdir()
        if path.is_dir() and not path.name.startswith("_") and path.name != "shared"
    ]
    public = {path.stem for folder in folders for path in folder.glob("*.py") if not path.name.startswith("_")}
    assert public - set(ROOMS[room]) == set()


def test_entries_are_in_the_order_of_their_names() -> None:
    assert list(ATTACKS) == sorted(ATTACKS)


def test_two_entries_of_one_name_are_refused() -> None:
    doubled = Registry("colour", lambda: [SimpleNamespace(name="red"), SimpleNamespace(name="red")])
    with pytest.raises(BadInput, match="the colour 'red' is offered twice"):
        len(doubled)


def test_a_module_that_is_half_imported_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that is filled too early would miss what the module has not defined yet, for good."""
    package = tmp_path / "half_imported"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "early.py").write_text(
        "from plumbob.registry import classes_in\nlist(classes_in('half_imported', object))\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="while it is itself being imported"):
        import_module("half_imported.early")


def test_the_name_of_a_module_is_no_registered_class() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_module'"):
        exported(PROTOCOLS, "plumbob.protocols", "no_such_module")


def test_a_wrong_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(BadInput, match=r"did you mean 'equation_solving'\?"):
        ATTACKS.named("equation_solvin")


def test_a_wrong_setting_is_answered_with_the_right_one() -> None:
    with pytest.raises(BadInput, match=r"no setting 'digit'; did you mean 'digits'\?"):
        make(DEFENCES, "rounding", digit=2)


def test_what_defences_put_into_a_protocol_is_no_setting() -> None:
    with pytest.raises(BadInput, match="no setting 'guards'"):
        make(PROTOCOLS, "split_network", guards=())
