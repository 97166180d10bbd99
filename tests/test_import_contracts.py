"""The contract that keeps helpers inside their family notices an import from outside."""

from __future__ import annotations

import pytest
from grimp import ImportGraph

from tests.import_contracts import PrivateHelpers

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
