"""UBJSON, as far as xgboost writes it: the format in which its workers tell each other their best splits.

A value is a letter for its kind and then big-endian bytes; an object is keys and values up to `}`.
"""

from __future__ import annotations

import struct
from typing import Any

_NUMBERS = {"i": "b", "U": "B", "I": "h", "l": "i", "L": "q", "d": "f", "D": "d"}
_WORDS = {"T": True, "F": False, "Z": None}


def values(raw: bytes) -> list[Any]:
    """All values that stand one behind the other.

    >>> values(b"{L\\0\\0\\0\\0\\0\\0\\0\\x03nidi\\x05}i\\x07")
    [{'nid': 5}, 7]
    """
    found, place = [], 0
    while place < len(raw):
        value, place = _value(raw, place)
        found.append(value)
    return found


def _value(raw: bytes, place: int, kind: str = "") -> tuple[Any, int]:
    """The value at a place and where it ends; in a typed array the kind was told before."""
    if not kind:
        kind, place = chr(raw[place]), place + 1
    if kind in _NUMBERS:
        form = f">{_NUMBERS[kind]}"
        return struct.unpack_from(form, raw, place)[0], place + struct.calcsize(form)
    if kind in _WORDS:
        return _WORDS[kind], place
    if kind == "S":
        return _text(raw, place)
    if kind == "[":
        return _array(raw, place)
    if kind == "{":
        made: dict[str, Any] = {}
        while raw[place : place + 1] != b"}":
            key, place = _text(raw, place)
            made[key], place = _value(raw, place)
        return made, place + 1
    raise ValueError(f"UBJSON: no kind of value {kind!r}")


def _text(raw: bytes, place: int) -> tuple[str, int]:
    length, place = _value(raw, place)
    return raw[place : place + length].decode(), place + length


def _array(raw: bytes, place: int) -> tuple[list[Any], int]:
    kind, made = "", []
    if raw[place : place + 1] == b"$":
        kind, place = chr(raw[place + 1]), place + 2
    if raw[place : place + 1] == b"#":
        count, place = _value(raw, place + 1)
        for _ in range(count):
            value, place = _value(raw, place, kind)
            made.append(value)
        return made, place
    while raw[place : place + 1] != b"]":
        value, place = _value(raw, place)
        made.append(value)
    return made, place + 1
