"""Universal Binary JSON, as xgboost writes it: typed numbers, counted and typed arrays, objects. Nothing is executed."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_NUMBERS = {"i": "b", "U": "B", "I": "h", "l": "i", "L": "q", "d": "f", "D": "d"}
DEEPEST = 64  # how far values may be nested
MOST = 50_000_000  # values in all; some take no byte of the file, so that its size is no limit


def loads(data: bytes) -> Any:
    """Decode one value; ValueError if the bytes are invalid.

    >>> loads(b"{U\\x01aU\\x05U\\x01b[$U#U\\x02\\x01\\x02}")
    {'a': 5, 'b': [1, 2]}
    """
    reader = _Reader(data)
    return reader.value(reader.mark(), 0)


def values(data: bytes) -> list[Any]:
    """Decode consecutive values.

    >>> values(b"{L\\0\\0\\0\\0\\0\\0\\0\\x03nidi\\x05}i\\x07")
    [{'nid': 5}, 7]
    """
    reader, found = _Reader(data), []
    while reader.at < len(data):
        found.append(reader.value(reader.mark(), 0))
    return found


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.left = MOST

    def spend(self, values: int) -> None:
        """Count values before they are created."""
        self.left -= values
        if self.left < 0:
            raise ValueError(f"more than {MOST:,} values")

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("the data are truncated")
        self.at += size
        return self.data[self.at - size : self.at]

    def mark(self) -> str:
        while True:
            mark = self.take(1).decode("latin-1")
            if mark != "N":  # which means nothing, anywhere
                return mark

    def number(self, mark: str) -> Any:
        form = ">" + _NUMBERS[mark]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self) -> int:
        mark = self.mark()
        if mark not in "iUIlL":
            raise ValueError(f"expected a length, got '{mark}'")
        return int(self.number(mark))

    def text(self) -> str:
        return self.take(self.count()).decode("utf-8")

    def value(self, mark: str, deep: int) -> Any:
        if deep > DEEPEST:
            raise ValueError("nested too deeply")
        self.spend(1)
        if mark in _NUMBERS:
            return self.number(mark)
        if mark in "ZTF":
            return {"Z": None, "T": True, "F": False}[mark]
        if mark == "S":
            return self.text()
        if mark == "C":
            return self.take(1).decode("latin-1")
        if mark in "[{":
            return self._container(mark, deep)
        raise ValueError(f"unknown type marker '{mark}'")

    def _container(self, mark: str, deep: int) -> Any:
        kind, size = "", -1
        end = "]" if mark == "[" else "}"
        ahead = self.mark()
        if ahead == "$":
            kind = self.mark()
            ahead = self.mark()
        if ahead == "#":
            size = self.count()
            if size < 0 or size > self.left:
                raise ValueError("a negative length, or too many values")
            if mark == "[" and kind in _NUMBERS and kind:
                form = np.dtype(">" + _NUMBERS[kind])
                self.spend(size)
                return np.frombuffer(self.take(size * form.itemsize), dtype=form).tolist()
            free = mark == "[" and kind in ("Z", "T", "F")  # these take no byte
            if size > len(self.data) - self.at and not free:
                raise ValueError("a length extends beyond the end of the file")
        elif kind:
            raise ValueError("a type without a length")
        else:
            self.at -= 1
        return self._list(kind, size, end, deep) if mark == "[" else self._object(kind, size, end, deep)

    def _list(self, kind: str, size: int, end: str, deep: int) -> list[Any]:
        found: list[Any] = []
        while len(found) != size:
            mark = kind or self.mark()
            if size < 0 and mark == end:
                break
            found.append(self.value(mark, deep + 1))
        return found

    def _object(self, kind: str, size: int, end: str, deep: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        read = 0
        while read != size:
            if size < 0:
                if self.mark() == end:
                    break
                self.at -= 1
            name = self.text()
            found[name] = self.value(kind or self.mark(), deep + 1)
            read += 1
        return found
