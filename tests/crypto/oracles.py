"""Our Paillier keys and ciphertexts as those of the two libraries that serve as oracles, and back.

sf-heu writes integers as msgpack strings of little-endian bytes with a sign bit, then the scheme's number in eight bytes:
a public key is (n, h_s), a private one (lambda, mu, p, q), a ciphertext (c R mod n^2). R is that of Montgomery's
multiplication with digits of 60 bits, the form in which the library keeps ciphertexts.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from plumbob.crypto.paillier import Ciphertexts, PrivateKey, PublicKey

_ZPAILLIER = 4
_DIGIT = 60


def as_phe(key: PrivateKey) -> Any:
    """phe's private key; its public one is the attribute `public_key`."""
    import phe

    return phe.PaillierPrivateKey(phe.PaillierPublicKey(key.public.n), int(key._p), int(key._q))


def as_heu(key: PrivateKey) -> Any:
    """sf-heu's kit with our key."""
    from heu import phe

    n, p, q = key.public.n, int(key._p), int(key._q)
    order = (p - 1) * (q - 1) // 2
    public = phe.PublicKey.load_from(_packed(n, pow(key.public.h, n, n * n)))
    return phe.setup(public, phe.SecretKey.load_from(_packed(order, pow(order, -1, n), p, q)))


def to_heu(ciphertexts: Ciphertexts) -> list[Any]:
    from heu import phe

    square = ciphertexts.key.n**2
    shift = _shift(square)
    return [phe.Ciphertext.load_from(_packed((int(value) << shift) % square)) for value in ciphertexts.values]


def from_heu(key: PublicKey, ciphertexts: Sequence[Any]) -> Ciphertexts:
    square = key.n**2
    back = pow(2, -_shift(square), square)
    return from_numbers(key, [_unpacked(one.serialize())[0] * back % square for one in ciphertexts])


def from_numbers(key: PublicKey, numbers: Sequence[int]) -> Ciphertexts:
    data = b"".join(number.to_bytes(key.width, "big") for number in numbers)
    return key.ciphertexts(np.frombuffer(data, dtype=np.uint8).reshape(len(numbers), key.width))


def _shift(square: int) -> int:
    """log2 of R."""
    return -(-square.bit_length() // _DIGIT) * _DIGIT


def _packed(*numbers: int) -> bytes:
    data = bytes([0x90 + len(numbers)])
    for number in numbers:
        digits = number.to_bytes(number.bit_length() // 8 + 1, "little")
        data += struct.pack(">BH", 0xDA, len(digits)) + digits
    return data + struct.pack("<Q", _ZPAILLIER)


def _unpacked(data: bytes) -> list[int]:
    numbers, place = [], 1
    for _ in range(data[0] - 0x90):
        head, size = (
            (3, int.from_bytes(data[place + 1 : place + 3], "big")) if data[place] == 0xDA else (2, data[place + 1])
        )
        place += head
        numbers.append(int.from_bytes(data[place : place + size], "little"))
        place += size
    return numbers
