"""The contract that keeps helpers inside their family notices an import from outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from grimp import ImportGraph

from tests.import_contracts import PrivateHelpers

NAMED = re.compile(r"`([\w/]+\.py)`")
HELPER = "plumbob.attacks.scores._box_equations"


@pytest.mark.parametrize(
    ("importer", "imported", "kept"),
    [
        ("plumbob.attacks.scores.posterior_mean", HELPER, True),
        ("plumbob.attacks.gradients.cafe", HELPER, False),
        ("plumbob.papers.ours.scores", HELPER, True),
        ("plumbob.report.page", HELPER, False),
        ("plumbob.attacks.gradients.cafe", "plumbob.attacks._common.lattice_points", True),
        ("plumbob.defences.scores.noise", "plumbob.attacks._common.lattice_points", False),
        ("plumbob.recorded.seals", HELPER, True),
    ],
)
def test_a_helper_is_imported_by_its_family_only(importer: str, imported: str, kept: bool) -> None:
    graph = ImportGraph()
    graph.add_import(importer=importer, imported=imported)
    contract = PrivateHelpers(
        name="",
        session_options={},
        contract_options={
            "rooms": ["plumbob.attacks"],
            "studied_by": ["plumbob.papers"],
            "ignored": ["plumbob.recorded.* -> plumbob.attacks.scores._box_equations"],
        },
    )
    assert contract.check(graph, verbose=False).kept is kept


def test_files_that_docstrings_name_are_there() -> None:
    root = Path(__file__).parents[1] / "plumbob"
    there = {path.name for path in root.rglob("*.py")}
    named = {
        (path.name, name) for path in root.rglob("*.py") for name in NAMED.findall(path.read_text(encoding="utf-8"))
    }
    assert {(path, name) for path, name in named if name.rpartition("/")[2] not in there} == set()
