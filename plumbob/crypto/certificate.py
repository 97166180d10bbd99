"""A fresh key and self-signed certificate for one run, so that its processes can authenticate each other over TLS.

RSA of 2,048 bits with SHA-256, X.509 version 3, written as DER by hand (RFC 8017, RFC 5280). It names the loopback only and lasts
a week: who trusts it trusts nobody else. Nothing is written to a disk; Python's ssl wants files, so `in_memory` makes some that
are in no folder and end with the process.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import gmpy2
from gmpy2 import mpz

from plumbob.crypto.paillier import primes

CERTIFICATE_KEY_BITS, CERTIFICATE_EXPONENT = 2_048, 65_537
LASTS = timedelta(days=7)
_EARLY = timedelta(hours=1)  # clocks that were put back
_INTEGER, _BITS, _OCTETS, _NULL, _OID, _TEXT, _SEQUENCE, _SET = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0C, 0x30, 0x31
_TIME, _TRUE = 0x17, bytes([0x01, 1, 0xFF])
_RSA, _RSA_SHA256, _SHA256 = "2a864886f70d010101", "2a864886f70d01010b", "608648016503040201"
_COMMON_NAME, _SUBJECT_KEY, _KEY_USAGE, _ALTERNATIVE, _BASIC = "550403", "551d0e", "551d0f", "551d11", "551d13"
_SIGNS = bytes([_BITS, 2, 2, 0x84])  # digital signatures and certificates: bits 0 and 5


@dataclass(frozen=True)
class Pair:
    """A private key and its certificate, both as PEM; the key is never printed."""

    key: str = field(repr=False)
    certificate: str


def self_signed(name: str = "plumbob") -> Pair:
    """A fresh pair from the system's secure randomness, for `localhost` and 127.0.0.1."""
    while True:
        p, q = primes(CERTIFICATE_KEY_BITS)
        if gmpy2.gcd(CERTIFICATE_EXPONENT, (p - 1) * (q - 1)) == 1:
            break
    n, d = p * q, gmpy2.invert(CERTIFICATE_EXPONENT, (p - 1) * (q - 1))
    body = _body(name, n)
    signed = _sequence(body, _algorithm(_RSA_SHA256), _tagged(_BITS, b"\0" + _signature(body, n, d)))
    numbers = (mpz(0), n, mpz(CERTIFICATE_EXPONENT), d, p, q, d % (p - 1), d % (q - 1), gmpy2.invert(q, p))
    secret = _sequence(*(_integer(number) for number in numbers))
    return Pair(_pem("RSA PRIVATE KEY", secret), _pem("CERTIFICATE", signed))


@contextmanager
def in_memory(*texts: str) -> Iterator[tuple[str, ...]]:
    """Paths that only this user's processes can open while the context lasts (Linux)."""
    opened = []
    try:
        for text in texts:
            opened.append(os.memfd_create("pem"))
            os.write(opened[-1], text.encode())
        yield tuple(f"/proc/self/fd/{number}" for number in opened)
    finally:
        for number in opened:
            os.close(number)


def _body(name: str, modulus: mpz) -> bytes:
    """What is signed: version 3, number, issuer, time, subject (the issuer again), public key, extensions."""
    public = _sequence(_integer(modulus), _integer(mpz(CERTIFICATE_EXPONENT)))
    who = _sequence(_tagged(_SET, _sequence(_oid(_COMMON_NAME), _tagged(_TEXT, name.encode()))))
    now = datetime.now(UTC)
    times = [_tagged(_TIME, moment.strftime("%y%m%d%H%M%SZ").encode()) for moment in (now - _EARLY, now + LASTS)]
    loopback = _sequence(_tagged(0x82, b"localhost"), _tagged(0x87, bytes([127, 0, 0, 1])))
    extensions = _sequence(
        _extension(_BASIC, _sequence(_TRUE), critical=True),
        _extension(_KEY_USAGE, _SIGNS, critical=True),
        _extension(_SUBJECT_KEY, _tagged(_OCTETS, hashlib.sha256(public).digest()[:20])),
        _extension(_ALTERNATIVE, loopback),
    )
    return _sequence(
        _tagged(0xA0, _integer(mpz(2))),
        _integer(mpz(secrets.randbits(127) | 1 << 126)),
        _algorithm(_RSA_SHA256),
        who,
        _sequence(*times),
        who,
        _sequence(_algorithm(_RSA), _tagged(_BITS, b"\0" + public)),
        _tagged(0xA3, extensions),
    )


def _signature(body: bytes, n: mpz, d: mpz) -> bytes:
    """RSASSA-PKCS1-v1_5: 00 01 ff ... ff 00 and the digest with its name, to the power d."""
    digest = _sequence(_algorithm(_SHA256), _tagged(_OCTETS, hashlib.sha256(body).digest()))
    size = CERTIFICATE_KEY_BITS // 8
    padded = b"\0\1" + b"\xff" * (size - 3 - len(digest)) + b"\0" + digest
    return int(gmpy2.powmod_sec(int.from_bytes(padded, "big"), d, n)).to_bytes(size, "big")


def _pem(kind: str, der: bytes) -> str:
    lines = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"


def _tagged(tag: int, content: bytes) -> bytes:
    """DER: a tag, the length (short, or its own length first) and the content."""
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _tagged(_SEQUENCE, b"".join(parts))


def _integer(value: mpz) -> bytes:
    return _tagged(_INTEGER, int(value).to_bytes(value.bit_length() // 8 + 1, "big"))  # the first bit is a sign


def _oid(digits: str) -> bytes:
    return _tagged(_OID, bytes.fromhex(digits))


def _algorithm(digits: str) -> bytes:
    return _sequence(_oid(digits), _tagged(_NULL, b""))


def _extension(digits: str, content: bytes, *, critical: bool = False) -> bytes:
    return _sequence(_oid(digits), _TRUE if critical else b"", _tagged(_OCTETS, content))
