"""An auditor finds every code, and nothing where there is none."""

from __future__ import annotations

import pytest

from plumbob.defences.hidden_code_audit import audit_gradients
from plumbob.errors import BadInput
from plumbob.protocols.shared.hidden_codes import LabelledGroups, MagicNumbers
from tests.protocols.sums.test_secure_boost import trained


@pytest.mark.parametrize("packed", [True, False])
def test_honest_gradients_are_explained_to_the_last_bit(packed: bool) -> None:
    assert all(tree.honest and tree.sums for tree in audit_gradients(trained(trees=3, packed=packed)))


@pytest.mark.parametrize("code", [MagicNumbers(base=4), LabelledGroups()], ids=repr)
def test_a_code_is_found(code: MagicNumbers) -> None:
    for tree in audit_gradients(trained(code=code, packed=False)):
        assert not tree.honest
        assert 0 < tree.bits <= code.bits + 1


def test_sums_changed_by_a_defence_are_refused() -> None:
    with pytest.raises(BadInput, match="a defence has changed"):
        audit_gradients(trained(blinding=True))
