"""Bits of releases, the least error that so many bits allow, and what differential privacy proves."""

from dataclasses import replace

import numpy as np
import pytest

from plumbob.known_defences import KnownDefences, KnownDpGradients
from plumbob.scoring.countable import bits_of, least_error
from plumbob.scoring.proven import most_hits, private
from plumbob.threats import THREATS, cut
from tests.worlds import made_table, world


def test_the_bits_are_the_entropy_less_what_own_columns_tell() -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 4, 2_000)
    assert bits_of(cells, rng.random((2_000, 2))) == pytest.approx(2.0, abs=0.02)
    own = np.stack([cells // 2, rng.random(2_000)], axis=1)  # one of the two bits
    assert bits_of(cells, own) == pytest.approx(1.0, abs=0.25)
    assert bits_of(cells, own) > 1.0  # an upper bound


@pytest.mark.parametrize("bits", [0.1, 0.5, 1.0, 2.0])
def test_no_normal_column_can_be_learnt_better_than_shannon_says(bits: float) -> None:
    """Of a normal distribution the least error is 2^(-2 b); a sample of it in groups allows a little less."""
    residuals = np.random.default_rng(1).normal(size=4_000)
    found = least_error(residuals, bits)
    assert 0.75 * 2 ** (-2 * bits) < found <= 2 ** (-2 * bits)


@pytest.mark.parametrize("levels", [2, 3, 8])
def test_no_quantiser_beats_the_least_error(levels: int) -> None:
    residuals = np.random.default_rng(2).random(3_000) ** 2
    cells = np.searchsorted(np.quantile(residuals, np.arange(1, levels) / levels), residuals)
    means = np.array([residuals[cells == k].mean() for k in range(levels)])
    error = float(((residuals - means[cells]) ** 2).mean())
    assert least_error(residuals, np.log2(levels)) <= error


def test_private_gradients_bound_what_a_coordinator_alone_can_hit() -> None:
    log = world("split_training", made_table(rows=160))
    view = cut(log, THREATS["coordinator"])
    assert private(view) is None
    known = KnownDpGradients(epsilon=0.1, delta=1e-5, clip=3.0, amplified=False)
    guarded = replace(view, defence=KnownDefences.of(known))
    parties = len({m.name.split("/")[1] for m in view.messages if m.name.startswith("gradient/")})
    assert private(guarded) == pytest.approx((parties * 0.1, parties * 1e-5))
    assert private(replace(view, defence=KnownDefences.of(replace(known, amplified=True)))) is None
    helped = cut(log, THREATS["corrupted-coordinator"])  # the active party gets outputs without noise
    assert private(replace(helped, defence=KnownDefences.of(known))) is None


def test_the_bound_on_hits_is_that_of_balle_cherubin_and_hayes() -> None:
    column = np.linspace(0, 1, 1_001)
    assert most_hits(column, (0.0, 0.0)) == pytest.approx(0.2, abs=0.01)
    assert most_hits(column, (np.log(2), 0.01)) == pytest.approx(0.41, abs=0.01)
    assert most_hits(column, (5.0, 0.0)) == 1.0
