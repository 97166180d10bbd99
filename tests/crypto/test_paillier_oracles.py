"""Our ciphertexts open under two other libraries, and theirs under ours."""

from __future__ import annotations

import pytest

from plumbob.crypto.paillier import PrivateKey, generate, products
from tests.crypto.oracles import as_heu, as_phe, from_heu, from_numbers, to_heu

pytest.importorskip("phe")
pytest.importorskip("heu")

KEY = generate(1_024)
LARGEST = KEY.public.largest
NUMBERS = [0, 1, -1, 2**900, -(2**900), LARGEST, -LARGEST]


def test_phe_opens_ours() -> None:
    import phe

    theirs = as_phe(KEY)
    opened = [
        theirs.decrypt(phe.EncryptedNumber(theirs.public_key, int(value), 0))
        for value in KEY.public.encrypt(NUMBERS).values
    ]
    assert opened == NUMBERS


def test_we_open_phe() -> None:
    public = as_phe(KEY).public_key
    theirs = [public.encrypt(number).ciphertext() for number in NUMBERS]
    assert KEY.decrypt(from_numbers(KEY.public, theirs)) == NUMBERS


def test_a_key_made_by_phe_is_ours() -> None:
    import phe

    public, private = phe.generate_paillier_keypair(n_length=1_024)
    key = PrivateKey(private.p, private.q)
    assert key.decrypt(from_numbers(key.public, [public.encrypt(-5).ciphertext()]) + key.public.encrypt([7])) == [2]


def test_heu_opens_ours() -> None:
    decryptor = as_heu(KEY).decryptor()
    assert [decryptor.decrypt_raw(one) for one in to_heu(KEY.public.encrypt(NUMBERS))] == NUMBERS


def test_we_open_heu() -> None:
    encryptor = as_heu(KEY).encryptor()
    assert KEY.decrypt(from_heu(KEY.public, [encryptor.encrypt_raw(number) for number in NUMBERS])) == NUMBERS


def test_heu_opens_what_we_computed() -> None:
    decryptor, batch = as_heu(KEY).decryptor(), KEY.public.encrypt([3, -4])
    computed = to_heu(products([[5, -6], [7, 0]], batch)) + to_heu(batch * [-2, 9]) + to_heu((batch - 1).rerandomised())
    assert [decryptor.decrypt_raw(one) for one in computed] == [-13, -18, -6, -36, 2, -5]


def test_we_open_what_heu_computed() -> None:
    evaluator = as_heu(KEY).evaluator()
    a, b = to_heu(KEY.public.encrypt([3, -4]))
    computed = from_heu(KEY.public, [evaluator.add(a, b), evaluator.sub(a, b)])
    assert KEY.decrypt(computed) == [-1, 7]
