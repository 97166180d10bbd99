"""The protobuf wire format, as far as ONNX and xgboost's gRPC need it: numbered fields of numbers or bytes.

Nothing is executed, and every length is checked against the bytes that exist.
"""

from __future__ import annotations

import numpy as np

from plumbob.federation import FloatArray, IntArray

Fields = dict[int, list[int | bytes]]
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5


def fields(data: bytes) -> Fields:
    """A message's fields by number, each with its values in order; ValueError if the message is invalid.

    >>> fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02]) + b"ab")
    {1: [150], 2: [b'ab']}
    """
    found: Fields = {}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        value: int | bytes
        if wire == VARINT:
            value, at = varint(data, at)
        else:
            size = {EIGHT: 8, FOUR: 4}.get(wire, -1)
            if wire == BYTES:
                size, at = varint(data, at)
            if size < 0 or at + size > len(data):
                raise ValueError("a field extends beyond its message")
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer in groups of seven bits, lowest first, and the position after it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number is not terminated")
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def number(found: Fields, field: int) -> int:
    """The last integer of a field; 0 if the field is absent, as the format defines.

    >>> number({1: [7, 150]}, 1), number({}, 1)
    (150, 0)
    """
    values = [value for value in found.get(field, [0]) if isinstance(value, int)]
    if not values or len(values) < len(found.get(field, [])):
        raise ValueError("expected a number, got bytes")
    return values[-1]


def messages(found: Fields, number: int) -> list[bytes]:
    """The values of a field that holds bytes."""
    values = [value for value in found.get(number, []) if isinstance(value, bytes)]
    if len(values) != len(found.get(number, [])):
        raise ValueError("expected bytes, got a number")
    return values


def texts(found: Fields, number: int) -> list[str]:
    return [value.decode("utf-8") for value in messages(found, number)]


def text(found: Fields, number: int) -> str:
    return (texts(found, number) or [""])[-1]


def integers(found: Fields, number: int) -> IntArray:
    """Whole numbers, one by one or packed."""
    values: list[int] = []
    for value in found.get(number, []):
        if isinstance(value, int):
            values.append(_signed(value))
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            values.append(_signed(one))
    return np.array(values, dtype=np.int64)


def floats(found: Fields, number: int, form: str = "<f") -> FloatArray:
    """Numbers of single precision (or double, with another form), one by one or packed."""
    data = b"".join(messages(found, number))
    if len(data) % np.dtype(form).itemsize:
        raise ValueError("packed numbers are truncated")
    return np.frombuffer(data, dtype=form).astype(np.float64)
