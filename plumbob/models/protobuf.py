"""The wire format of protocol buffers, as far as ONNX needs it: numbered fields of numbers or bytes. Nothing is executed."""

from __future__ import annotations

import numpy as np

from plumbob.federation import FloatArray, IntArray

Fields = dict[int, list[int | bytes]]
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5


def fields(data: bytes) -> Fields:
    """A message's fields by number, each with its values in order; ValueError where it is none.

    >>> fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02]) + b"ab")
    {1: [150], 2: [b'ab']}
    """
    found: Fields = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == VARINT:
            value, at = _varint(data, at)
        else:
            size = {EIGHT: 8, FOUR: 4}.get(wire, -1)
            if wire == BYTES:
                size, at = _varint(data, at)
            if size < 0 or at + size > len(data):
                raise ValueError("a field that ends beyond its message")
            value, at = data[at : at + size], at + size
        found.setdefault(number, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number that does not end")
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def messages(found: Fields, number: int) -> list[bytes]:
    """The values of a field that holds bytes."""
    values = [value for value in found.get(number, []) if isinstance(value, bytes)]
    if len(values) != len(found.get(number, [])):
        raise ValueError("bytes expected, got a number")
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
            one, at = _varint(value, at)
            values.append(_signed(one))
    return np.array(values, dtype=np.int64)


def floats(found: Fields, number: int, form: str = "<f") -> FloatArray:
    """Numbers of single precision (or double, with another form), one by one or packed."""
    data = b"".join(messages(found, number))
    if len(data) % np.dtype(form).itemsize:
        raise ValueError("numbers that end too early")
    return np.frombuffer(data, dtype=form).astype(np.float64)
