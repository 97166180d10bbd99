"""What xgboost's federated workers and their server say to each other, read from the bytes of their connections.

A connection is HTTP/2: frames of streams, one stream a call. A call is gRPC: a request and a reply, each a byte that says whether
it is compressed, four bytes of length and a protobuf message. Every call is a collective one (all parties make it, numbered):

    request   1 sequence number, 2 rank, 3 what the worker sends, and of Allreduce 4 type of numbers, 5 operation
    reply     1 what all workers get
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from plumbob.bundle import Array
from plumbob.formats import protobuf

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _CONTINUATION = 0, 1, 9
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_STATIC = 61  # entries of HPACK's fixed table, of which 4 and 5 are paths
_TYPES = {0: "f2", 1: "f4", 2: "f8", 4: "i1", 5: "i2", 6: "i4", 7: "i8", 8: "u1", 9: "u2", 10: "u4", 11: "u8"}
OPERATIONS = dict(enumerate(("max", "min", "sum", "and", "or", "xor")))


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
    for stream, raw in requests.items():
        request, reply = _message(raw), _message(replies.get(stream, b""))
        if request is None or reply is None:
            continue  # cut off before the answer
        asked, told = protobuf.fields(request), protobuf.fields(reply)
        reduced = methods.get(stream) == "Allreduce"
        kind = np.dtype(_one(_TYPES, protobuf.number(asked, 4), "type") if reduced else "u1").newbyteorder("<")
        found.append(
            Call(
                sequence=protobuf.number(asked, 1),
                rank=protobuf.number(asked, 2),
                method=methods.get(stream, ""),
                request=np.frombuffer(_bytes(asked, 3), dtype=kind),
                reply=np.frombuffer(_bytes(told, 1), dtype=kind),
                operation=_one(OPERATIONS, protobuf.number(asked, 5), "operation") if reduced else "",
            )
        )
    return found


def _one(known: Mapping[int, str], number: int, what: str) -> str:
    if number not in known:
        raise ValueError(f"xgboost: expected a known {what} of an Allreduce, got number {number}")
    return known[number]


def _bytes(found: protobuf.Fields, number: int) -> bytes:
    return (protobuf.messages(found, number) or [b""])[-1]


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
    if not flags & _PADDED:
        return body
    if not body or body[0] >= len(body):
        raise ValueError("HTTP/2: the padding is longer than the frame")
    return body[1 : len(body) - body[0]]


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
    if place >= len(raw):
        raise ValueError("HPACK: a field is truncated")
    value, place = raw[place] & most, place + 1
    if value < most:
        return value, place
    rest, place = protobuf.varint(raw, place)
    return value + rest, place


def _string(raw: bytes, place: int) -> tuple[bytes, int]:
    length, place = _integer(raw, place, 7)
    if place + length > len(raw):
        raise ValueError("HPACK: a string extends beyond its block")
    return raw[place : place + length], place + length


def _message(raw: bytes) -> bytes | None:
    """The one message of a gRPC stream; None where the connection ended before it did."""
    if len(raw) < 5:
        return None
    if raw[0] != 0:
        raise ValueError("gRPC: expected an uncompressed message")
    end = 5 + int.from_bytes(raw[1:5], "big")
    if len(raw) > end:
        raise ValueError(f"gRPC: expected one message of {end:,} bytes in a stream, got {len(raw):,}")
    return raw[5:] if len(raw) == end else None
