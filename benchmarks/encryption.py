"""Benchmarks of Paillier at 2,048 bits: ours beside phe, sf-heu and the plain loop, per core.

Per core means processor time, of all threads and processes together: ours works on all cores, the others on one, and a
ratio of wall-clock times would count cores. The seconds shown are those a user waits for ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import gmpy2
import numpy as np

from benchmarks.timing import Measured, best, core_seconds, result
from plumbob.crypto.paillier import Ciphertexts, PublicKey, generate, products
from plumbob.data import registry
from plumbob.errors import BadInput
from plumbob.federation import IntArray, split
from plumbob.protocols.sums.secure_boost import SecureBoost

BITS = 2_048
VALUES = 2_000  # encrypted at a time
ROWS, COLUMNS, ENTRY_BITS = 24_000, 10, 27
CELLS = 1_000  # of the loops, which are extrapolated: all cells cost alike
BINNED, BINS = 10_000, 32


def encryption_against_phe() -> Iterator[Measured]:
    """Seconds that phe takes for a value over ours."""
    theirs, sample = _phe().PaillierPublicKey(_key().n), 50
    slow = core_seconds(lambda: [theirs.encrypt(number) for number in range(sample)], 3) / sample
    yield _encryption("phe", slow, 10.0)


def encryption_against_heu() -> Iterator[Measured]:
    """Seconds that sf-heu's ZPaillier takes for a value over ours."""
    kit = _heu()
    numbers = kit.array(np.arange(VALUES))
    yield _encryption("sf-heu", core_seconds(lambda: kit.encryptor().encrypt(numbers), 3) / VALUES, 0.7)


def products_against_loop() -> Iterator[Measured]:
    """Seconds of one power and one multiplication for each cell over those of ours, for X' [[v]]."""
    key, (matrix, vector) = _key(), _task()
    rows = CELLS // COLUMNS
    slow = core_seconds(partial(_loop, matrix[:rows], vector[:rows], key), 3) * ROWS / rows
    yield _products("a loop of multiplications", slow, f"loop extrapolated from {CELLS:,} cells")


def products_against_heu() -> Iterator[Measured]:
    """Seconds of sf-heu's matmul over those of ours, for X' [[v]]."""
    kit = _heu()
    rows = CELLS // COLUMNS
    matrix = kit.array(np.ascontiguousarray(_task()[0][:rows].T))
    vector = kit.encryptor().encrypt(kit.array(np.arange(rows).reshape(-1, 1)))
    slow = core_seconds(lambda: kit.evaluator().matmul(matrix, vector), 3) * ROWS / rows
    yield _products("sf-heu", slow, f"sf-heu extrapolated from {CELLS:,} cells")


def bin_sums_against_heu() -> Iterator[Measured]:
    """Seconds of sf-heu's batch_select_sum over those of ours, for a histogram."""
    kit = _heu()
    bins = np.random.default_rng(0).integers(0, BINS, BINNED)
    places = [np.flatnonzero(bins == one).tolist() for one in range(BINS)]
    theirs = kit.encryptor().encrypt(kit.array(np.arange(BINNED)))
    slow = core_seconds(lambda: kit.evaluator().batch_select_sum(theirs, places), 5)
    ours = _task()[1][:BINNED]
    fast = core_seconds(partial(ours.bin_sums, bins, BINS), 5)
    seconds, _ = best(partial(ours.bin_sums, bins, BINS), 5)
    size = f"{BITS:,} bits, {BINNED:,} ciphertexts into {BINS} bins"
    yield result("sf-heu against bin sums, seconds per core", slow / fast, 0.33, size, seconds)


def secure_boost_tree() -> Iterator[Measured]:
    """Three minutes over the seconds of one tree of depth 5 on credit: how far below that limit."""
    table = registry.load("credit")
    federation = split(table, {"active": table.names[:13], "passive": table.names[13:]}, "active")
    rows = np.random.default_rng(0).permutation(len(federation))
    trainer, others = federation.rows(rows[:ROWS]), federation.rows(rows[ROWS:])
    tree = SecureBoost(trees=1, depth=5, bins=BINS, key_bits=BITS)
    seconds, _ = best(lambda: tree.train(trainer, others, np.random.default_rng(0)), 1)
    size = f"{ROWS:,} rows, 13 own and 10 passive columns, {BINS} bins, depth 5, {BITS:,} bits"
    yield result("a SecureBoost tree, three minutes over its time", 180.0 / seconds, 1.0, size, seconds)


def _encryption(library: str, slow: float, goal: float) -> Measured:
    """Ours against what another library takes for a value."""
    encrypt = partial(_key().encrypt, range(VALUES))
    encrypt()  # makes the table
    fast = core_seconds(encrypt, 3) / VALUES
    seconds, _ = best(encrypt, 1)
    size = f"{BITS:,} bits, {1 / fast:,.0f} values a second and core, {library} {1 / slow:,.0f}"
    return result(f"{library} against encryption, seconds per core", slow / fast, goal, size, seconds)


def _products(other: str, slow: float, note: str) -> Measured:
    matrix, vector = _task()
    fast = core_seconds(partial(products, matrix, vector), 2)
    seconds, _ = best(partial(products, matrix, vector), 1)
    size = f"{BITS:,} bits, {ROWS:,} x {COLUMNS} of {ENTRY_BITS} bits with sign; {note}"
    return result(f"{other} against products, seconds per core", slow / fast, 5.0, size, seconds)


def _loop(matrix: IntArray, vector: Ciphertexts, key: PublicKey) -> list[Any]:
    """X' [[v]], cell by cell."""
    square, sums = gmpy2.mpz(key.n) ** 2, []
    for column in matrix.T.tolist():
        total = gmpy2.mpz(1)
        for value, scalar in zip(vector.values, column, strict=True):
            total = total * gmpy2.powmod(value, scalar, square) % square
        sums.append(total)
    return sums


@cache
def _key() -> PublicKey:
    return generate(BITS).public


@cache
def _task() -> tuple[IntArray, Ciphertexts]:
    """A matrix of fixed-point numbers and as many ciphertexts as it has rows."""
    rng, limit = np.random.default_rng(0), 2 ** (ENTRY_BITS - 1)
    return rng.integers(1 - limit, limit, (ROWS, COLUMNS)), _key().encrypt(rng.integers(1 - limit, limit, ROWS))


def _phe() -> Any:
    try:
        import phe
    except ImportError as error:
        raise BadInput("this benchmark compares with phe, which is not here; install phe 1.5.0") from error
    return phe


@cache
def _heu() -> Any:
    """sf-heu's tools around a key of its own."""
    try:
        from heu import numpy as library
        from heu import phe
    except ImportError as error:
        raise BadInput("this benchmark compares with sf-heu, which is not here; install sf-heu 0.5.2b0") from error
    kit = library.setup(phe.SchemaType.ZPaillier, BITS)
    with _words_to_stderr():  # its thread pool announces itself when it is first used, in the midst of our JSON
        kit.encryptor().encrypt(kit.array(np.arange(64)))
    return kit


@contextmanager
def _words_to_stderr() -> Iterator[None]:
    """What a library writes to the standard output goes to the error output meanwhile."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
