"""Calls are read from the bytes of an HTTP/2 connection, however these are cut into frames."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.targets.xgboost._wire import PREFACE, calls

PATH = b"/xgboost.collective.federated.Federated/"


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def grpc(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def named(method: bytes) -> bytes:
    """A path as a literal that goes to the table."""
    path = PATH + method
    return b"\x40\x05:path" + bytes([len(path)]) + path


def request(sequence: int, rank: int, sent: bytes, more: bytes = b"") -> bytes:
    return grpc(bytes([0x08, sequence, 0x10, rank, 0x1A, len(sent)]) + sent + more)


def reply(told: bytes) -> bytes:
    return grpc(bytes([0x0A, len(told)]) + told)


def test_methods_are_remembered_by_their_place_in_the_table() -> None:
    upwards = PREFACE + frame(1, 4, 1, named(b"Broadcast")) + frame(0, 1, 1, request(1, 0, b"ab"))
    upwards += frame(1, 4, 3, named(b"Allreduce")) + frame(0, 1, 3, request(2, 0, b"\x01", b"\x20\x08\x28\x04"))
    upwards += frame(1, 4, 5, b"\xbf") + frame(0, 1, 5, request(3, 0, b"cd"))  # the older of the two
    downwards = b"".join(frame(0, 0, stream, reply(told)) for stream, told in ((1, b"ab"), (3, b"\x03"), (5, b"cd")))
    found = calls(upwards, downwards)
    assert [(call.sequence, call.method, call.operation) for call in found] == [
        (1, "Broadcast", ""),
        (2, "Allreduce", "or"),
        (3, "Broadcast", ""),
    ]
    assert found[1].reply.tolist() == [3]


def test_a_message_in_several_padded_frames_is_one() -> None:
    message = request(1, 1, np.arange(5, dtype="<f4").tobytes(), b"\x20\x01\x28\x02")
    cut = [bytes([2]) + message[:7] + b"\0\0", bytes([0]) + message[7:]]
    upwards = PREFACE + frame(1, 0, 1, named(b"Allreduce")[:9]) + frame(9, 4, 1, named(b"Allreduce")[9:])
    upwards += b"".join(frame(0, 8, 1, part) for part in cut)
    (call,) = calls(upwards, frame(0, 0, 1, reply(np.arange(5, dtype="<f4").tobytes())))
    assert (call.rank, call.operation) == (1, "sum")
    assert call.request.tolist() == [0, 1, 2, 3, 4]


def test_a_call_without_an_answer_is_left_out() -> None:
    upwards = PREFACE + frame(1, 4, 1, named(b"Broadcast")) + frame(0, 1, 1, request(1, 0, b"ab"))
    assert calls(upwards, frame(0, 0, 1, reply(b"ab"))[:-1]) == []


def test_a_compressed_message_is_refused() -> None:
    squeezed = b"\1" + request(1, 0, b"ab")[1:]
    upwards = PREFACE + frame(1, 4, 1, named(b"Broadcast")) + frame(0, 1, 1, squeezed)
    with pytest.raises(ValueError, match="uncompressed"):
        calls(upwards, frame(0, 0, 1, reply(b"ab")))


def test_an_answer_of_which_a_part_came_is_left_out() -> None:
    upwards = PREFACE + frame(1, 4, 1, named(b"Broadcast")) + frame(0, 1, 1, request(1, 0, b"ab"))
    whole = reply(b"abcdef")
    assert len(calls(upwards, frame(0, 0, 1, whole))) == 1
    for size in range(len(whole)):
        assert calls(upwards, frame(0, 0, 1, whole[:size])) == []


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (frame(0, 1, 1, grpc(b"\x08\x01\x1a\x7fab")), "extends beyond its message"),  # 127 bytes told, two there
        (frame(0, 1, 1, grpc(b"\x08" + b"\xff" * 11)), "not terminated"),
        (frame(0, 1, 1, grpc(b"\x0a\x01a")), "expected a number"),  # bytes as a sequence number
        (frame(0, 1, 1, grpc(b"\x08\x01\x18\x05")), "expected bytes"),
        (frame(0, 1, 1, request(1, 0, b"ab") + b"c"), "one message"),
        (frame(0, 9, 1, b"\x09ab"), "padding"),
        (frame(1, 4, 3, b"\x40\x05:pa"), "beyond its block"),
        (frame(1, 4, 3, b"\x40"), "truncated"),
    ],
)
def test_lengths_are_checked_against_the_bytes_there_are(sent: bytes, complaint: str) -> None:
    upwards = PREFACE + frame(1, 4, 1, named(b"Broadcast")) + sent
    with pytest.raises(ValueError, match=complaint):
        calls(upwards, frame(0, 0, 1, reply(b"ab")))


@pytest.mark.parametrize(("more", "complaint"), [(b"\x20\x63", "type"), (b"\x20\x08\x28\x63", "operation")])
def test_an_unknown_type_or_operation_is_named(more: bytes, complaint: str) -> None:
    upwards = PREFACE + frame(1, 4, 1, named(b"Allreduce")) + frame(0, 1, 1, request(1, 0, b"a", more))
    with pytest.raises(ValueError, match=f"known {complaint} of an Allreduce, got number 99"):
        calls(upwards, frame(0, 0, 1, reply(b"a")))
