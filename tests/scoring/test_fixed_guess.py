"""What a fixed guess hits, beside what an attack hits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks.base import Guess
from plumbob.auditing.concluding.judging import judge_column
from plumbob.scoring.fixed_guess import fixed_hits
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from tests.worlds import world


@pytest.mark.parametrize("tolerance", [0.01, 0.05, 0.10])
def test_no_constant_hits_more(tolerance: float) -> None:
    truth = np.random.default_rng(0).beta(0.5, 2.0, (200, 3)).round(3)
    found = fixed_hits(truth, tolerance)
    for constant in np.linspace(0, 1, 1001):
        hits = (np.abs(truth - constant) <= tolerance * (1 + 1e-9)).mean(axis=0)
        assert (hits <= found + 1e-12).all()


def test_every_column_of_a_score_has_it_and_verdicts_carry_it() -> None:
    log = world()
    view = cut(log, THREATS["active"])
    truth = truth_of(log, view)
    constant = np.broadcast_to(truth.values.mean(axis=0), truth.values.shape)
    judged = score(Guess(truth.names, constant), truth, view, np.random.default_rng(0))
    for column in judged.columns:
        assert column.fixed_1 is not None
        assert 0 < column.fixed_1 <= (column.fixed_5 or 0) <= (column.fixed_10 or 0) <= 1
        assert column.within_10 <= (column.fixed_10 or 0)  # the mean is a constant, too
        verdict = judge_column([column, column], "values", judged.rows, 1)
        assert (verdict.fixed_1, verdict.fixed_5, verdict.fixed_10) == (column.fixed_1, column.fixed_5, column.fixed_10)
        old = replace(column, fixed_1=None, fixed_5=None, fixed_10=None)
        assert judge_column([old], "values", judged.rows, 1).fixed_5 is None
