"""Own part: the class that own columns and the dealt weights point at."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from tests.worlds import made_table, world


@pytest.mark.parametrize("protocol", ["logistic_regression", "split_models"])
def test_a_passive_party_learns_labels_from_its_own_part(protocol: str) -> None:
    log = world(protocol, made_table(rows=600))
    view = cut(log, THREATS["passive-training"])
    judged = score(
        attack_named("own_part").run(view, np.random.default_rng(0)),
        truth_of(log, view),
        view,
        np.random.default_rng(0),
    )
    assert judged.label_accuracy is not None
    assert judged.label_baseline is not None
    assert judged.label_accuracy > judged.label_baseline + 0.08


def test_the_active_party_has_the_label() -> None:
    assert "needs a passive party" in (attack_named("own_part").why_not("logistic_regression", THREATS["active"]) or "")
