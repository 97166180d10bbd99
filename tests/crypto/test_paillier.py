"""Paillier: exact over the whole plaintext range, in one process and in several; wrong use is said in one sentence."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.crypto import paillier
from plumbob.crypto import parallel as cores
from plumbob.crypto.multi_exponentiation import products_of_powers, window
from plumbob.crypto.paillier import Ciphertexts, PrivateKey, PublicKey, generate, products
from plumbob.errors import BadInput

KEY = generate(1_024)
PUBLIC = KEY.public
OTHER = generate(1_024)
LARGEST = PUBLIC.largest

plain = st.integers(-LARGEST, LARGEST) | st.integers(-3, 3) | st.sampled_from([LARGEST, -LARGEST])
half = st.integers(-(LARGEST // 2), LARGEST // 2) | st.integers(-3, 3)
small = st.integers(-(2**40), 2**40) | st.integers(-2, 2)
few = settings(max_examples=25, deadline=None)


@pytest.fixture(params=["one core", "three cores"])
def _cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch in this process, or every batch, however small, over forked processes."""
    count = 1 if request.param == "one core" else 3
    monkeypatch.setattr(cores, "available", lambda: count)
    for name in ("_FEWEST_POWERS", "_FEWEST_PRODUCTS"):
        monkeypatch.setattr(paillier, name, 1 if count > 1 else 10**9)


@few
@given(st.lists(plain, max_size=6))
def test_decryption_undoes_encryption(numbers: list[int]) -> None:
    assert KEY.decrypt(PUBLIC.encrypt(numbers)) == numbers


def test_a_key_of_the_recommended_size_works_alike() -> None:
    key = generate()
    numbers = [0, 1, -1, key.public.largest, -key.public.largest]
    batch = key.public.encrypt(numbers)
    assert (key.public.bits, key.public.weak, key.public.width) == (2_048, False, 512)
    assert key.decrypt(batch) == numbers
    assert key.decrypt(products([[3, 0], [-5, 2], [7, 2**100], [0, 0], [0, 0]], batch)) == [-12, 2 - 2**100]


def test_a_key_has_the_form_that_fast_masks_need() -> None:
    p, q = int(KEY._p), int(KEY._q)
    assert (p % 4, q % 4, np.gcd.reduce([p - 1, q - 1]), PUBLIC.bits, PUBLIC.weak) == (3, 3, 2, 1_024, True)


@few
@given(st.lists(st.tuples(half, half), min_size=1, max_size=4))
def test_sums_and_differences(pairs: list[tuple[int, int]]) -> None:
    left, right = ([pair[i] for pair in pairs] for i in (0, 1))
    a, b = PUBLIC.encrypt(left), PUBLIC.encrypt(right)
    sums = [x + y for x, y in pairs]
    differences = [x - y for x, y in pairs]
    assert KEY.decrypt(a + b) == KEY.decrypt(a + right) == KEY.decrypt(left + b) == sums
    assert KEY.decrypt(a - b) == KEY.decrypt(a - right) == KEY.decrypt(left - b) == differences
    assert KEY.decrypt(-a) == [-x for x in left]


@pytest.mark.usefixtures("_cores")
def test_multiples_by_signed_integers_and_zero() -> None:
    numbers, scalars = [7, -7, 5, 0, -(2**500)], [-3, -(2**400), 0, 9, 2**300]
    expected = [a * b for a, b in zip(numbers, scalars, strict=True)]
    batch = PUBLIC.encrypt(numbers)
    assert KEY.decrypt(batch * scalars) == KEY.decrypt(scalars * batch) == expected
    assert KEY.decrypt(batch * -2) == KEY.decrypt(np.int64(-2) * batch) == [-2 * number for number in numbers]


@few
@given(small, st.integers(-(2**500), 2**500))
def test_multiples(scalar: int, number: int) -> None:
    assert KEY.decrypt(PUBLIC.encrypt([number]) * [scalar]) == [number * scalar]


def test_numpy_integers_stand_for_plain_ones() -> None:
    numbers = np.array([3, -4])
    batch = PUBLIC.encrypt(numbers)
    assert KEY.decrypt(numbers + batch) == KEY.decrypt(batch + numbers) == [6, -8]
    assert KEY.decrypt(numbers * batch) == [9, 16]
    assert KEY.decrypt(batch + 1) == [4, -3]


def test_a_batch_is_indexed_like_an_array() -> None:
    numbers = [10, 11, 12, 13]
    batch = PUBLIC.encrypt(numbers)
    assert len(batch) == 4
    assert KEY.decrypt(batch[-1]) == [13]
    assert KEY.decrypt(batch[1:3]) == [11, 12]
    assert KEY.decrypt(batch[np.array([3, 0, 0])]) == [13, 10, 10]
    assert KEY.decrypt(batch[np.array([True, False, True, False])]) == [10, 12]
    assert [KEY.decrypt(one) for one in batch] == [[number] for number in numbers]


def test_equal_secrets_have_different_ciphertexts() -> None:
    assert len(set(PUBLIC.encrypt([5] * 20).values)) == 20


@pytest.mark.usefixtures("_cores")
def test_every_process_draws_masks_of_its_own() -> None:
    assert len(set(PUBLIC.encrypt([0] * 12).values)) == 12


@pytest.mark.usefixtures("_cores")
def test_rerandomised_ciphertexts_hold_the_same_secrets() -> None:
    batch = PUBLIC.encrypt([1, -2, 3])
    again = batch.rerandomised()
    assert KEY.decrypt(again) == [1, -2, 3]
    assert not set(batch.values) & set(again.values)


@pytest.mark.usefixtures("_cores")
def test_bin_sums_are_those_of_the_secrets() -> None:
    rng = np.random.default_rng(0)
    numbers, bins = rng.integers(-1_000, 1_000, 40), rng.integers(0, 5, 40)
    sums = np.zeros(7, dtype=np.int64)
    np.add.at(sums, bins, numbers)
    batch = PUBLIC.encrypt(numbers)
    assert KEY.decrypt(batch.bin_sums(bins, 7)) == sums.tolist()
    assert KEY.decrypt(batch.sum()) == [int(numbers.sum())]
    assert batch.bin_sums(bins, 7).values[5:] == (1, 1)  # empty bins


def test_an_empty_batch_sums_to_zero() -> None:
    empty = PUBLIC.encrypt([])
    assert KEY.decrypt(empty) == []
    assert KEY.decrypt(empty.sum()) == [0]
    assert empty.to_array().shape == (0, PUBLIC.width)


@few
@given(st.data())
def test_products_are_those_of_the_secrets(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    cell = st.integers(-(2**70), 2**70) | small | st.sampled_from([0, -(2**63), 2**63])
    matrix = data.draw(st.lists(st.lists(cell, min_size=columns, max_size=columns), min_size=rows, max_size=rows))
    numbers = data.draw(st.lists(small, min_size=rows, max_size=rows))
    expected = [sum(row[j] * number for row, number in zip(matrix, numbers, strict=True)) for j in range(columns)]
    assert KEY.decrypt(products(matrix, PUBLIC.encrypt(numbers))) == expected


@pytest.mark.usefixtures("_cores")
def test_products_of_many_rows_with_every_sign_and_zeros() -> None:
    rng = np.random.default_rng(1)
    matrix, numbers = rng.integers(-(2**26), 2**26, (60, 4)), rng.integers(-1_000, 1_000, 60)
    matrix[:, 1], matrix[:, 2] = 0, -np.abs(matrix[:, 2])
    batch = PUBLIC.encrypt(numbers)
    assert KEY.decrypt(products(matrix, batch)) == (matrix.T @ numbers).tolist()
    assert KEY.decrypt(products(matrix.astype(np.int32), batch)) == (matrix.T @ numbers).tolist()


def test_the_smallest_int64_is_not_mistaken_for_a_positive_one() -> None:
    matrix = np.array([[np.iinfo(np.int64).min, 1]])
    assert KEY.decrypt(products(matrix, PUBLIC.encrypt([3]))) == [-3 * 2**63, 3]
    assert KEY.decrypt(products(np.array([[2**64 - 1]], dtype=np.uint64), PUBLIC.encrypt([3]))) == [3 * (2**64 - 1)]


@given(st.integers(1, 10**6), st.integers(1, 200))
def test_a_window_is_never_wider_than_pays(rows: int, bits: int) -> None:
    chosen = window(rows, bits)
    assert 1 <= chosen <= 14
    assert -(-bits // chosen) * (rows + 7 * 2**chosen) <= bits * (rows + 14)


def test_products_of_no_powers_are_one() -> None:
    assert products_of_powers(np.zeros((0, 2), dtype=np.int64), [], PUBLIC._n) == [1, 1]


@few
@given(st.lists(plain, max_size=4))
def test_bytes_carry_ciphertexts(numbers: list[int]) -> None:
    array = PUBLIC.encrypt(numbers).to_array()
    assert array.dtype == np.uint8
    assert array.shape == (len(numbers), 256)
    assert KEY.decrypt(PublicKey(PUBLIC.n, PUBLIC.h).ciphertexts(array)) == numbers


def test_a_public_key_travels_without_its_table() -> None:
    PUBLIC.encrypt([1])
    data = pickle.dumps(PUBLIC)
    assert len(data) < 600
    assert pickle.loads(data) == PUBLIC
    assert KEY.decrypt(pickle.loads(data).encrypt([-9])) == [-9]


def test_a_key_without_h_draws_its_own() -> None:
    key = PublicKey(PUBLIC.n)
    assert key == PUBLIC
    assert key.h != PUBLIC.h
    assert KEY.decrypt(key.encrypt([4]) + PUBLIC.encrypt([5])) == [9]


def _damaged() -> Iterator[tuple[np.ndarray, str]]:
    whole = PUBLIC.encrypt([1, 2]).to_array()
    rows = "ciphertexts of this key are bytes in rows of 256"
    yield whole[:, :-1], rows
    yield whole[0], rows
    yield whole.astype(np.int64), rows
    yield np.zeros_like(whole), "ciphertext 0 of 2 is not a valid ciphertext of this key"
    yield np.full_like(whole, 255), "ciphertext 0 of 2 is not a valid ciphertext of this key"
    factor = np.frombuffer(int(KEY._p).to_bytes(256, "big"), dtype=np.uint8)[None]
    yield np.vstack([whole, factor]), "one of 3 ciphertexts shares a factor with n"


def test_damaged_ciphertexts_are_refused() -> None:
    for array, words in _damaged():
        with pytest.raises(BadInput, match=words) as caught:
            PUBLIC.ciphertexts(array)
        _one_sentence(caught.value)


@pytest.mark.parametrize(
    "number", [LARGEST + 1, -LARGEST - 1, PUBLIC.n, 2**5_000], ids=["above", "below", "n", "far above"]
)
def test_a_plaintext_that_does_not_fit_is_refused(number: int) -> None:
    for attempt in (lambda: PUBLIC.encrypt([1, number]), lambda: PUBLIC.encrypt([1]) + [number]):
        with pytest.raises(BadInput, match="overflows a key of 1,024 bits") as caught:
            attempt()
        _one_sentence(caught.value)


def test_a_sum_that_overflowed_is_noticed() -> None:
    batch = PUBLIC.encrypt([LARGEST, -LARGEST])
    with pytest.raises(BadInput, match="a decrypted number overflowed") as caught:
        KEY.decrypt(batch + [LARGEST // 4, 0])
    _one_sentence(caught.value)


@pytest.mark.parametrize("bits", [0, 512, 1_023, 1_025, 10**6, True, "2048"])
def test_a_key_of_another_size_is_refused(bits: int) -> None:
    with pytest.raises(BadInput, match="bits of a Paillier key: expected") as caught:
        generate(bits)
    _one_sentence(caught.value)


def test_keys_that_are_none_are_refused() -> None:
    with pytest.raises(BadInput, match="odd n of at least 1,024 bits, got one of 7 bits"):
        PublicKey(101)
    with pytest.raises(BadInput, match="the h of a Paillier key must lie between"):
        PublicKey(PUBLIC.n, PUBLIC.n)
    with pytest.raises(BadInput, match="needs two different primes"):
        PrivateKey(int(KEY._p), int(KEY._p))


def test_two_keys_do_not_mix() -> None:
    ours, theirs = PUBLIC.encrypt([1]), OTHER.public.encrypt([1])
    for attempt in (lambda: ours + theirs, lambda: ours - theirs, lambda: OTHER.decrypt(ours)):
        with pytest.raises(BadInput, match="ciphertexts of two different keys") as caught:
            attempt()
        _one_sentence(caught.value)


def test_numbers_that_do_not_match_the_batch_are_refused() -> None:
    batch = PUBLIC.encrypt([1, 2])
    for attempt, words in (
        (lambda: batch + [1], "one number for each of 2 ciphertexts, got 1"),
        (lambda: batch * [1, 2, 3], "one number for each of 2 ciphertexts, got 3"),
        (lambda: batch + batch[:1], "one number for each of 2 ciphertexts, got 1"),
        (lambda: batch.bin_sums(np.array([0]), 1), "one number for each of 2 ciphertexts, got 1"),
        (lambda: batch.bin_sums(np.array([0, 3]), 3), "expected whole numbers from 0 to 2"),
        (lambda: batch.bin_sums(np.array([0, -1]), 3), "expected whole numbers from 0 to 2"),
        (lambda: PUBLIC.encrypt([0.5]), "round other numbers to fixed point first"),
        (lambda: batch * np.array([0.5, 1.0]), "round other numbers to fixed point first"),
        (lambda: products([[1], [2], [3]], batch), "products: expected 2 rows, one for each ciphertext, got 3"),
        (lambda: products([[1], [2, 3]], batch), "expected a matrix with rows of equal length"),
        (lambda: products(np.ones((2, 2)), batch), "round other numbers to fixed point first"),
    ):
        with pytest.raises(BadInput, match=words) as caught:
            attempt()
        _one_sentence(caught.value)


def test_a_private_key_does_not_show_itself() -> None:
    shown = [repr(KEY), str(KEY), f"{KEY}", repr(PUBLIC), repr(PUBLIC.encrypt([1])), pickle.dumps(PUBLIC).hex()]
    for attempt in (
        lambda: pickle.dumps(KEY),
        lambda: copy.copy(KEY),
        lambda: copy.deepcopy(KEY),
        lambda: OTHER.decrypt(PUBLIC.encrypt([1])),
        lambda: KEY.decrypt(PUBLIC.encrypt([LARGEST]) + PUBLIC.encrypt([9])),
    ):
        with pytest.raises((TypeError, BadInput)) as caught:
            attempt()
        shown.append("".join(str(entry.frame.f_locals) for entry in caught.traceback[1:]) + str(caught.value))
    for secret in (int(KEY._p), int(KEY._q), int((KEY._p - 1) * (KEY._q - 1) // 2)):
        width = (secret.bit_length() + 7) // 8
        forms = [
            str(secret),
            f"{secret:x}",
            secret.to_bytes(width, "big").hex(),
            secret.to_bytes(width, "little").hex(),
        ]
        assert not any(form in text for form in forms for text in shown)


def test_a_worker_that_dies_leaves_its_part_to_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "available", lambda: 3)
    parent = os.getpid()

    def work(part: slice) -> list[paillier.mpz]:
        if os.getpid() != parent:
            os._exit(1)
        return [paillier.mpz(i) for i in range(part.start, part.stop)]

    assert [value for part in cores.over_cores(work, 10, 1, 4) for value in part] == list(range(10))


def test_an_error_in_the_work_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "available", lambda: 2)

    def work(part: slice) -> list[paillier.mpz]:
        if part.start:
            raise BadInput("the second half is bad")
        return []

    with pytest.raises(BadInput, match="the second half is bad"):
        cores.over_cores(work, 10, 1, 4)


@given(st.integers(0, 1_000), st.integers(0, 50))
def test_parts_cover_everything_once(count: int, least: int) -> None:
    covered = [i for part in cores.parts(count, least) for i in range(count)[part]]
    assert covered == list(range(count))


def test_ciphertexts_cannot_be_changed() -> None:
    batch = PUBLIC.encrypt([1])
    with pytest.raises(AttributeError):
        batch.values = ()
    assert isinstance(batch, Ciphertexts)
    assert isinstance(batch.values, tuple)
    assert not batch.to_array().flags.writeable


def _one_sentence(error: BadInput) -> None:
    text = str(error)
    assert "\n" not in text
    assert ". " not in text
    assert len(text) < 200
