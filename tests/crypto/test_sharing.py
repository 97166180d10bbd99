"""Correlations on secret shares: the same numbers, and nothing to see on the way."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from plumbob.auditing.planning.pre_training_check import precheck, secure_correlations
from plumbob.correlation import correlations
from plumbob.crypto.sharing import (
    SERVERS,
    SHARING_PRIME,
    dealt,
    joined_limbs,
    limbs_of,
    mean_products,
    multiplied,
    product_of,
    revealed,
    shares_of,
)
from plumbob.errors import BadInput
from plumbob.federation import split_at_random
from tests.worlds import made_table


def test_shared_correlations_are_the_plain_ones() -> None:
    rng = np.random.default_rng(0)
    a = rng.random((150, 4))
    b = np.hstack([a[:, :2] + 0.1 * rng.random((150, 2)), np.ones((150, 1)), -a[:, 3:]])
    assert secure_correlations(a, b) == pytest.approx(correlations(a, b), abs=1e-3)


def test_products_of_negative_numbers_come_back_signed() -> None:
    a, b = np.array([[1.5], [-2.0]]), np.array([[-3.0, 1.0], [4.0, 0.25]])
    assert product_of(shares_of(a), shares_of(b)) == pytest.approx(a.T @ b, abs=1e-5)


def test_one_server_sees_uniform_numbers_whatever_the_secret() -> None:
    for secret in (0.0, 3.0):
        for server in shares_of(np.full((2_000, 1), secret)):
            seen = (server.ravel() / SHARING_PRIME).astype(float)
            assert abs(seen.mean() - 0.5) < 4 / np.sqrt(12 * 2_000)
            assert len(set(server.ravel().tolist())) == 2_000
    assert len(shares_of(np.zeros((1, 1)))) == SERVERS


def test_the_librarys_own_options_are_not_read_from_the_command_line() -> None:
    """`--out` is none of its options, and it would end the program."""
    code = "import sys; sys.argv += ['--out', 'x']; from plumbob.crypto.sharing import shares_of; import numpy as np; "
    done = subprocess.run(
        [sys.executable, "-c", code + "print(len(shares_of(np.zeros((1, 1)))), sys.argv)"],
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{SERVERS} ['-c', '--out', 'x']\n"
    assert done.returncode == 0


def test_unequal_rows_are_refused() -> None:
    with pytest.raises(BadInput, match="expected the same number of rows on both sides, got 3 and 4"):
        mean_products(np.zeros((3, 1)), np.zeros((4, 1)))


def test_the_secure_check_gives_the_same_cautions() -> None:
    federation = split_at_random(made_table(rows=120), 4, np.random.default_rng(0))
    assert precheck(federation, 0.5, secure=True) == precheck(federation, 0.5)
    assert precheck(federation, 0.5)


def test_products_stay_shares_and_sums_of_limbs_are_sums() -> None:
    rng = np.random.default_rng(3)
    inside, numbers = (
        rng.integers(2, size=(40, 1)).astype(object),
        [int(n) * 2**100 - 7 for n in rng.integers(9, size=40)],
    )
    shares = multiplied(dealt(inside), dealt(limbs_of(numbers)))
    assert joined_limbs(revealed(shares)) == [int(s) * n for s, n in zip(inside.ravel(), numbers, strict=True)]
    two = (3 * shares[1] - 2 * shares[2]) % SHARING_PRIME  # the line at 0 by two other servers
    assert (two == revealed(shares) % SHARING_PRIME).all()
    assert all(len(set(part.ravel().tolist())) == part.size for part in shares)  # zeros are not to be told from others


def test_the_library_does_not_read_the_command_line() -> None:
    script = "import numpy as np; from plumbob.crypto.sharing import dealt; dealt(np.ones((2, 1), dtype=object))"
    command = [sys.executable, "-c", script, "--out", "somewhere", "--no-such-option"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
