"""Paillier encryption: sums of secrets from their ciphertexts, which only the key holder can decrypt.

[[m]] = (1 + m n) r^n mod n^2 with n = p q, so [[a]] [[b]] = [[a + b]] and [[a]]^k = [[k a]]. Decryption raises to p - 1
modulo p^2, where r^n vanishes and (1 + m n)^(p-1) = 1 - m q p is left, likewise for q, and joins the two remainders.
The mask r^n is h^(n a) with h = -y^2 mod n public and a random of half the key's bits (Damgard, Jurik and Nielsen 2010):
the base never changes, so a table makes it fast, and where n cannot be factored nobody can tell it from r^n.

Plaintexts are signed integers, |m| < n // 3, a negative one being n - |m|; the middle third stays empty and shows an
overflow. Scales of fixed-point numbers are the caller's to keep. Sums and multiples of ciphertexts are not masked anew:
`rerandomised` does that before a result leaves the party that computed it with numbers of its own.
"""

from __future__ import annotations

import operator
import os
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NoReturn

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from plumbob.crypto.fixed_base import FixedBase
from plumbob.crypto.multi_exponentiation import Integers, bucket_products, products_of_powers
from plumbob.crypto.parallel import over_cores, parts
from plumbob.crypto.residues import inverses
from plumbob.errors import BadInput, whole
from plumbob.federation import BoolArray, ByteArray, IntArray

PlainNumbers = int | Sequence[int] | NDArray[np.generic]  # one for all, or one for each

SMALLEST_KEY, RECOMMENDED_KEY, LARGEST_KEY = 1_024, 2_048, 8_192  # bits of n
_PRIMALITY_ROUNDS = 40
# Parts shorter than these are done before a process has started; counted in powers and in multiplications.
_FEWEST_POWERS, _FEWEST_PRODUCTS = 32, 2_048


def generate(bits: int = RECOMMENDED_KEY) -> PrivateKey:
    """A fresh key from the system's secure randomness: p, q = 3 mod 4, gcd(p - 1, q - 1) = 2, n of exactly `bits` bits."""
    whole("bits of a Paillier key", bits, SMALLEST_KEY, LARGEST_KEY)
    if bits % 16:
        raise BadInput(f"bits of a Paillier key: expected a multiple of 16, got {bits:,}")
    return PrivateKey(*primes(bits))


def primes(bits: int) -> tuple[mpz, mpz]:
    """Two random primes of half the bits, of the form 4 k + 3, with nothing but 2 in common below them."""
    while True:
        p, q = _prime(bits // 2), _prime(bits // 2)
        if p != q and gmpy2.gcd(p - 1, q - 1) == 2:
            return p, q


def _prime(bits: int) -> mpz:
    """A random prime of the form 4 k + 3, its two highest bits set so that a product of two has twice the bits."""
    while True:
        candidate = mpz(secrets.randbits(bits) | 3 << (bits - 2) | 3)
        if gmpy2.is_prime(candidate, _PRIMALITY_ROUNDS):
            return candidate


class PublicKey:
    """The public key: n, and h in Z_n, the base of all masks. Without h (a key from elsewhere) one is drawn."""

    def __init__(self, n: int, h: int | None = None) -> None:
        if n.bit_length() < SMALLEST_KEY or n % 2 == 0:
            raise BadInput(
                f"a Paillier key has an odd n of at least {SMALLEST_KEY:,} bits, got one of {n.bit_length():,} bits"
            )
        base = -(secrets.randbelow(int(n)) ** 2) % n if h is None else h
        if not 1 < base < n or gmpy2.gcd(base, n) != 1:
            raise BadInput("the h of a Paillier key must lie between 1 and n and share no factor with n")
        self.n, self.h = int(n), int(base)
        self._n, self._square = mpz(n), mpz(n) ** 2

    @property
    def bits(self) -> int:
        return self.n.bit_length()

    @property
    def weak(self) -> bool:
        """Below the recommended size: for tests only; reports warn about it."""
        return self.bits < RECOMMENDED_KEY

    @property
    def largest(self) -> int:
        """The largest absolute value of a plaintext."""
        return self.n // 3 - 1

    @property
    def width(self) -> int:
        """ByteArray of a ciphertext."""
        return int(self._square.bit_length() + 7) // 8

    def encrypt(self, plain: Sequence[int] | NDArray[np.generic]) -> Ciphertexts:
        """One ciphertext for each signed integer, each with a mask of its own."""
        return Ciphertexts(self, self._masked(self._unmasked(plain)))

    def ciphertexts(self, array: ByteArray) -> Ciphertexts:
        """Ciphertexts from the bytes that `Ciphertexts.to_array` made; anything else is refused."""
        rows = np.asarray(array)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != self.width:
            raise BadInput(
                f"ciphertexts of this key are bytes in rows of {self.width}, got {rows.dtype} of shape {rows.shape}"
            )
        data, width = rows.tobytes(), self.width
        values = [mpz.from_bytes(data[i : i + width], "big") for i in range(0, len(data), width)]
        product = mpz(1)
        for place, value in enumerate(values):
            product = product * value % self._n
            if not 0 < value < self._square:
                raise BadInput(f"ciphertext {place} of {len(values):,} is not a valid ciphertext of this key")
        if gmpy2.gcd(product, self._n) != 1:
            raise BadInput(
                f"one of {len(values):,} ciphertexts shares a factor with n, so it is not a valid ciphertext"
            )
        return Ciphertexts(self, values)

    def _unmasked(self, plain: Sequence[int] | NDArray[np.generic]) -> list[mpz]:
        """1 + m n for every signed integer m, a negative one being n - |m|: a ciphertext with r = 1."""
        numbers, largest = _integers(plain), self.largest
        for number in numbers:
            if not -largest <= number <= largest:
                raise BadInput(
                    f"a plaintext of {number.bit_length():,} bits overflows a key of {self.bits:,} bits; "
                    f"scale it down or use a larger key"
                )
        return [1 + number % self._n * self._n for number in numbers]

    def _masked(self, values: Sequence[mpz]) -> list[mpz]:
        """Every value times a fresh random n-th power."""
        power, size, square = self._masks.power, self._masks.size, self._square

        def work(part: slice) -> list[mpz]:
            chosen = values[part]
            exponents = os.urandom(size * len(chosen))
            return [value * power(exponents[i * size : (i + 1) * size]) % square for i, value in enumerate(chosen)]

        return [value for part in over_cores(work, len(values), _FEWEST_POWERS, self.width) for value in part]

    @cached_property
    def _masks(self) -> FixedBase:
        """Powers of h^n modulo n^2, for exponents of half the bits of n."""
        return FixedBase(gmpy2.powmod(self.h, self._n, self._square), self._n, (self.bits + 15) // 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and self.n == other.n  # h only masks: it does not change what opens

    def __hash__(self) -> int:
        return hash(self.n)

    def __reduce__(self) -> tuple[type[PublicKey], tuple[int, int]]:
        return PublicKey, (self.n, self.h)

    def __repr__(self) -> str:
        return f"PublicKey({self.bits} bits)"


class PrivateKey:
    """The private key: p and q never leave this object, neither by printing nor by copying or pickling.

    Powers do not take constant time: the parties are played within one process, where nobody holds a clock to another.
    """

    __slots__ = ("_p", "_q", "public")

    def __init__(self, p: int, q: int) -> None:
        self._p, self._q = mpz(p), mpz(q)
        if p == q or not (gmpy2.is_prime(self._p) and gmpy2.is_prime(self._q)):
            raise BadInput("a Paillier key needs two different primes")
        self.public = PublicKey(int(self._p * self._q))

    def decrypt(self, ciphertexts: Ciphertexts) -> list[int]:
        """Decrypt to signed integers."""
        key = self.public
        _same(key, ciphertexts.key)
        numbers, largest = self._opened(ciphertexts.values), key.largest
        if any(largest < number < key.n - largest for number in numbers):
            raise BadInput("a decrypted number overflowed: the sums or products in it were too large for the key")
        return [number if number <= largest else number - key.n for number in numbers]

    def _opened(self, values: Sequence[mpz]) -> list[int]:
        """Residues modulo n. The lists of powers are made without the interpreter's lock, so threads are enough."""
        p, q = self._p, self._q
        with ThreadPoolExecutor() as pool:
            halves = [
                (pool.submit(_remainders, values[part], p, q), pool.submit(_remainders, values[part], q, p))
                for part in parts(len(values), 1)
            ]
        inverse = gmpy2.invert(p, q)
        return [
            int(a + p * ((b - a) * inverse % q))
            for left, right in halves
            for a, b in zip(left.result(), right.result(), strict=True)
        ]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a private key cannot be copied or pickled; create it where it is used")

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.bits} bits)"


def _remainders(values: Sequence[mpz], p: mpz, q: mpz) -> list[mpz]:
    """Plaintexts modulo p: c^(p-1) = 1 - m q p modulo p^2."""
    square, scale = p * p, gmpy2.invert(-q, p)
    powers = gmpy2.powmod_base_list([value % square for value in values], p - 1, square)
    return [(power - 1) // p * scale % p for power in powers]


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Ciphertexts:
    """An immutable batch of ciphertexts under one key; arithmetic on it is arithmetic on the secrets.

    A plain operand is one integer for all or one for each. Indexing gives a batch again, also for a single place.
    """

    key: PublicKey
    values: tuple[mpz, ...]
    __array_ufunc__: ClassVar[None] = None  # array + batch is ours to answer, not numpy's

    def __init__(self, key: PublicKey, values: Sequence[mpz]) -> None:
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "values", tuple(values))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: int | slice | IntArray | BoolArray) -> Ciphertexts:
        if isinstance(place, slice):
            return Ciphertexts(self.key, self.values[place])
        if isinstance(place, np.ndarray):
            return Ciphertexts(self.key, [self.values[i] for i in np.arange(len(self))[place].tolist()])
        return Ciphertexts(self.key, (self.values[place],))

    def __add__(self, other: Ciphertexts | PlainNumbers) -> Ciphertexts:
        square = self.key._square
        if isinstance(other, Ciphertexts):
            _same(self.key, other.key)
            self._matched(len(other))
            addends: Sequence[mpz] = other.values
        else:
            addends = self.key._unmasked(self._each(other))
        return Ciphertexts(self.key, [a * b % square for a, b in zip(self.values, addends, strict=True)])

    def __neg__(self) -> Ciphertexts:
        return Ciphertexts(self.key, inverses(self.values, self.key._square))

    def __sub__(self, other: Ciphertexts | PlainNumbers) -> Ciphertexts:
        return self + (-other if isinstance(other, Ciphertexts) else [-number for number in self._each(other)])

    def __rsub__(self, other: PlainNumbers) -> Ciphertexts:
        return -self + other

    def __mul__(self, scalars: PlainNumbers) -> Ciphertexts:
        """Every secret times its own signed integer."""
        numbers, square = self._each(scalars), self.key._square
        flipped = [i for i, number in enumerate(numbers) if number < 0]
        bases = list(self.values)
        for i, inverse in zip(flipped, inverses([bases[i] for i in flipped], square), strict=True):
            bases[i] = inverse

        def work(part: slice) -> list[mpz]:
            return [
                gmpy2.powmod(base, abs(number), square) for base, number in zip(bases[part], numbers[part], strict=True)
            ]

        return self._joined(over_cores(work, len(self), _FEWEST_POWERS * 8, self.key.width))

    __radd__ = __add__
    __rmul__ = __mul__

    def sum(self) -> Ciphertexts:
        """One ciphertext, of the sum of all."""
        return self.bin_sums(np.zeros(len(self), dtype=np.int64), 1)

    def bin_sums(self, bins: IntArray, count: int) -> Ciphertexts:
        """The sum in each of `count` bins, bins[i] being the bin of ciphertext i; an empty bin holds an unmasked zero."""
        chosen = np.asarray(bins)
        self._matched(len(chosen))
        if chosen.dtype.kind not in "iu" or (len(chosen) and not 0 <= chosen.min() <= chosen.max() < count):
            raise BadInput(f"bins of ciphertexts: expected whole numbers from 0 to {count - 1:,}")
        square = self.key._square

        def work(part: slice) -> list[mpz]:
            return bucket_products(self.values[part], chosen[part].tolist(), count, square)

        return self._multiplied(over_cores(work, len(self), _FEWEST_PRODUCTS, self.key.width))

    def products(self, matrix: Sequence[Sequence[int]] | NDArray[np.generic]) -> Ciphertexts:
        """X' times this vector, for a matrix of integers with one row per value."""
        return products(matrix, self)

    def rerandomised(self) -> Ciphertexts:
        """The same secrets under fresh masks, which hide what they were computed from."""
        return Ciphertexts(self.key, self.key._masked(self.values))

    def to_array(self) -> ByteArray:
        """Big-endian bytes of fixed width, one row for each ciphertext; `PublicKey.ciphertexts` reads them back."""
        width = self.key.width
        data = b"".join(value.to_bytes(width, "big") for value in self.values)
        return np.frombuffer(data, dtype=np.uint8).reshape(len(self), width)

    def __repr__(self) -> str:
        return f"Ciphertexts({len(self):,} under {self.key})"

    def _each(self, plain: PlainNumbers) -> list[int]:
        """One integer for each ciphertext."""
        if isinstance(plain, int | np.integer):
            return [int(plain)] * len(self)
        numbers = _integers(plain)
        self._matched(len(numbers))
        return numbers

    def _matched(self, count: int) -> None:
        if count != len(self):
            raise BadInput(f"expected one number for each of {len(self):,} ciphertexts, got {count:,}")

    def _joined(self, results: Sequence[Sequence[mpz]]) -> Ciphertexts:
        return Ciphertexts(self.key, [value for part in results for value in part])

    def _multiplied(self, results: Sequence[Sequence[mpz]]) -> Ciphertexts:
        """Sums of the parts' sums."""
        total, *others = (Ciphertexts(self.key, part) for part in results)
        for other in others:
            total = total + other
        return total


def products(matrix: Sequence[Sequence[int]] | NDArray[np.generic], vector: Ciphertexts) -> Ciphertexts:
    """X' [[v]]: for every column of the plain n x d matrix its inner product with the n secrets, d ciphertexts."""
    exponents = _integer_matrix(matrix)
    if len(exponents) != len(vector):
        raise BadInput(f"products: expected {len(vector):,} rows, one for each ciphertext, got {len(exponents):,}")

    def work(part: slice) -> list[mpz]:
        return products_of_powers(exponents[part], vector.values[part], vector.key._n)

    fewest = _FEWEST_PRODUCTS // max(1, exponents.shape[1])
    return vector._multiplied(over_cores(work, len(vector), fewest, vector.key.width))


def _same(key: PublicKey, other: PublicKey) -> None:
    if key != other:
        raise BadInput("ciphertexts of two different keys cannot be used together; encrypt both under one key")


def _integers(plain: Sequence[int] | NDArray[np.generic]) -> list[int]:
    """Python integers; floats are refused rather than cut off."""
    try:
        return [operator.index(number) for number in (plain.tolist() if isinstance(plain, np.ndarray) else plain)]
    except TypeError as error:
        raise BadInput(
            "expected a row of integers for ciphertexts; round other numbers to fixed point first"
        ) from error


def _integer_matrix(matrix: Sequence[Sequence[int]] | NDArray[np.generic]) -> Integers:
    """As int64 where all absolute values fit, else as Python integers."""
    rows: Integers = (
        matrix if isinstance(matrix, np.ndarray) else np.array([_integers(row) for row in matrix], dtype=object)
    )
    if rows.ndim != 2:
        raise BadInput("products: expected a matrix with rows of equal length")
    if rows.dtype.kind not in "iu":
        rows = np.array([_integers(row) for row in rows], dtype=object).reshape(rows.shape)
    small = rows.size == 0 or -(2**63) < int(rows.min()) <= int(rows.max()) < 2**63
    return rows.astype(np.int64 if small else object)
