"""What xgboost's federated workers and their server say to each other, read from the bytes of their connections.

A connection is HTTP/2: frames of streams, one stream a call. A call is gRPC: a request and a reply, each a byte that says whether
it is compressed, four bytes of length and a protobuf message. Every call is a collective one (all parties make it, numbered):

    request   1 sequence number, 2 rank, 3 what the worker sends, and of Allreduce 4 type of numbers, 5 operation
    reply     1 what all workers get
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plumbob.bundle import Array

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _CONTINUATION = 0, 1, 9
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_STATIC = 61  # entries of HPACK's fixed table, of which 4 and 5 are paths
_TYPES = {0: "f2", 1: "f4", 2: "f8", 4: "i1", 5: "i2", 6: "i4", 7: "i8", 8: "u1", 9: "u2", 10: "u4", 11: "u8"}
OPERATIONS = ("max", "min", "sum", "and", "or", "xor")


@dataclass(frozen=True)
class Call:
    """One worker's part in one collective operation."""

    sequence: int
    rank: int
    method: str  # Allgather, AllgatherV, Allreduce, Broadcast
    request: Array  # what the worker sent, empty where it only waited
    reply: Array  # what it got
    operation: str = ""  # of Allreduce


def calls(upwards: bytes, downwards: bytes) -> list[Call]:
    """The calls of one connection, from what the worker wrote and what the server wrote."""
    methods, requests = _streams(upwards.removeprefix(PREFACE))
    _, replies = _streams(downwards)
    found = []
    for stream, message in requests.items():
        if stream not in replies:
            continue  # cut off before the answer
        asked, told = _fields(_message(message)), _fields(_message(replies[stream]))
        reduced = methods[stream] == "Allreduce"
        kind = np.dtype(_TYPES[_number(asked, 4)] if reduced else "u1").newbyteorder("<")
        found.append(
            Call(
                sequence=_number(asked, 1),
                rank=_number(asked, 2),
                method=methods[stream],
                request=np.frombuffer(_bytes(asked, 3), dtype=kind),
                reply=np.frombuffer(_bytes(told, 1), dtype=kind),
                operation=OPERATIONS[_number(asked, 5)] if reduced else "",
            )
        )
    return found


def _streams(raw: bytes) -> tuple[dict[int, str], dict[int, bytes]]:
    """The method and the data of every stream."""
    methods: dict[int, str] = {}
    data: dict[int, list[bytes]] = {}
    table: list[tuple[bytes, bytes]] = []
    block = b""
    for kind, flags, stream, body in _frames(raw):
        if kind == _DATA:
            data.setdefault(stream, []).append(_unpadded(flags, body))
        elif kind in (_HEADERS, _CONTINUATION):
            part = body
            if kind == _HEADERS:
                part = _unpadded(flags, body)[5 if flags & _PRIORITY else 0 :]
            block += part
            if flags & _END_HEADERS:
                path = dict(_headers(block, table)).get(b":path", b"")
                methods.setdefault(stream, path.decode("latin-1").rpartition("/")[2])
                block = b""
    return methods, {stream: b"".join(parts) for stream, parts in data.items()}


def _frames(raw: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and body of every whole frame."""
    place = 0
    while place + 9 <= len(raw):
        end = place + 9 + int.from_bytes(raw[place : place + 3], "big")
        if end > len(raw):
            return
        stream = int.from_bytes(raw[place + 5 : place + 9], "big") & 0x7FFFFFFF
        yield raw[place + 3], raw[place + 4], stream, raw[place + 9 : end]
        place = end


def _unpadded(flags: int, body: bytes) -> bytes:
    return body[1 : len(body) - body[0]] if flags & _PADDED else body


def _headers(block: bytes, table: list[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """HPACK's fields, newest entry of the table first. Squeezed (Huffman) texts stay as they are: paths come plain."""
    place = 0
    while place < len(block):
        first = block[place]
        if first & 0x80:
            index, place = _integer(block, place, 7)
            yield _entry(index, table)
        elif first & 0xE0 == 0x20:  # a new size of the table
            _, place = _integer(block, place, 5)
        else:
            kept = bool(first & 0x40)
            index, place = _integer(block, place, 6 if kept else 4)
            name = _entry(index, table)[0]
            if not index:
                name, place = _string(block, place)
            value, place = _string(block, place)
            if kept:
                table.insert(0, (name, value))
            yield name, value


def _entry(index: int, table: list[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    if index > _STATIC and index - _STATIC <= len(table):
        return table[index - _STATIC - 1]
    return (b":path" if index in (4, 5) else b"", b"")


def _integer(raw: bytes, place: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value, place = raw[place] & most, place + 1
    if value < most:
        return value, place
    rest, place = _varint(raw, place)
    return value + rest, place


def _string(raw: bytes, place: int) -> tuple[bytes, int]:
    length, place = _integer(raw, place, 7)
    return raw[place : place + length], place + length


def _message(raw: bytes) -> bytes:
    """The one message of a gRPC stream."""
    if raw[:1] != b"\0":
        raise ValueError("gRPC: expected a message that is not compressed")
    return raw[5 : 5 + int.from_bytes(raw[1:5], "big")]


def _fields(message: bytes) -> dict[int, int | bytes]:
    """Protobuf fields: whole numbers and bytes."""
    found: dict[int, int | bytes] = {}
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        value, place = _varint(message, place)
        if key & 7 == 2:
            found[key >> 3], place = message[place : place + value], place + value
        elif key & 7 == 0:
            found[key >> 3] = value
        else:
            raise ValueError(f"protobuf: expected numbers and bytes, got a field of kind {key & 7}")
    return found


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (raw[place] & 0x7F) << shift
        shift += 7
        place += 1
        if raw[place - 1] < 0x80:
            return value, place


def _number(fields: dict[int, int | bytes], number: int) -> int:
    value = fields.get(number, 0)
    assert isinstance(value, int)
    return value


def _bytes(fields: dict[int, int | bytes], number: int) -> bytes:
    value = fields.get(number, b"")
    assert isinstance(value, bytes)
    return value
