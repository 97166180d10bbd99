"""Messages through the wall: every array as it was, and nothing that an attack could write does harm here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from plumbob.attacks.base import Branches, Guess, Orders, nothing
from plumbob.auditing.running.isolation.limits import Allowance
from plumbob.auditing.running.isolation.messages import Garbled, guess_of, packed, packed_guess, unpacked
from plumbob.bundle import Array
from plumbob.threats import THREATS, View, cut
from tests.worlds import world

MOST = 2**20


def view() -> View:
    return cut(world(), THREATS["active"])


def reader(data: bytes) -> Callable[[memoryview], None]:
    """What fills buffers from these bytes, as from a pipe."""
    left = [data]

    def read(buffer: memoryview) -> None:
        if len(left[0]) < len(buffer):
            raise EOFError
        buffer[:], left[0] = left[0][: len(buffer)], left[0][len(buffer) :]

    return read


def crossed(head: dict[str, Any], arrays: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
    return unpacked(reader(b"".join(map(bytes, packed(head, arrays)))), MOST)


def test_arrays_keep_their_bits_their_order_in_memory_and_whether_they_can_be_written() -> None:
    table = np.arange(24.0).reshape(2, 3, 4)
    fixed = table.copy()
    fixed.setflags(write=False)
    arrays = {
        "plain": table,
        "columns first": np.asfortranarray(table),
        "turned": table.transpose(1, 2, 0),
        "every other": table[:, ::2],
        "read only": fixed,
        "one number": np.array(True),
        "none": np.zeros((0, 3)),
        "other bytes": np.arange(3, dtype=">f8"),
        "not a number": np.array([np.nan, -0.0, np.inf]),
    }
    head, found = crossed({"a": 1}, arrays)
    assert (head, list(found)) == ({"a": 1}, list(arrays))
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
        assert not array.size or np.argsort(found[name].strides).tolist() == np.argsort(array.strides).tolist()
        assert found[name].flags.writeable == array.flags.writeable


def test_a_guess_of_every_kind_crosses() -> None:
    seen = view()
    rows, unknown = len(seen.own), len(seen.unknown)
    whole = np.zeros((rows, unknown), dtype=np.int64)
    sides = Branches(np.array([0]), np.array([0.5]), np.ones((2, 1), np.int8), np.zeros(rows, int), np.ones(rows, int))
    guess = Guess(
        ("a", "b"),
        values=np.asfortranarray(np.full((rows, unknown), 0.25)),
        branches=sides,
        orders=Orders(whole, np.full(unknown, 3)),
        vectors=np.ones((rows, 2)),
        people=np.ones((4, unknown)),
        certificate="sure",
        labels=np.zeros(4, dtype=np.int64),
        untried="some",
        path=((10, np.zeros((rows, unknown))),),
    )
    assert all(getattr(guess, field.name) is not None for field in fields(guess))
    head, arrays = crossed(*packed_guess(guess))
    found = guess_of(head, arrays, seen)
    assert [found.names, found.certificate, found.untried] == [guess.names, "sure", "some"]
    for one, other in zip(packed_guess(found)[1].values(), packed_guess(guess)[1].values(), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def message(head: object, body: bytes = b"") -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + body


ENTRY = ["values", "<f8", [2, 2], [0, 1], True]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 8,
        message(b"\xff\xfe"),
        message(b"[" * 100_000),
        message([]),
        message({}),
        message({"arrays": 3}),
        message({"arrays": [["values"]]}),
        message({"arrays": [[*ENTRY[:1], "O", *ENTRY[2:]]]}),
        message({"arrays": [[*ENTRY[:1], "<U9", *ENTRY[2:]]]}),
        message({"arrays": [[*ENTRY[:1], "no type", *ENTRY[2:]]]}),
        message({"arrays": [[*ENTRY[:2], [-1, 2], *ENTRY[3:]]]}),
        message({"arrays": [[*ENTRY[:2], [2.0, 2], *ENTRY[3:]]]}),
        message({"arrays": [[*ENTRY[:2], [2**39, 2**39], *ENTRY[3:]]]}),
        message({"arrays": [[*ENTRY[:2], [MOST, 1], *ENTRY[3:]]]}),
        message({"arrays": [[*ENTRY[:3], [0, 0], True]]}),
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(Garbled):
        unpacked(reader(data), MOST)


def test_a_message_that_ends_early_is_none() -> None:
    for data in (b"", b"\x05", message({"arrays": [ENTRY]}, b"\0" * 31)):
        with pytest.raises(EOFError):
            unpacked(reader(data), MOST)


@pytest.mark.parametrize(
    "change",
    [
        {"values": None},
        {"values": np.zeros(3)},
        {"values": np.zeros((1, 1))},
        {"labels": np.full(3, 0)},
        {"labels": "too high"},
        {"labels": "fractions"},
        {"vectors": np.zeros((1, 1))},
        {"people": np.zeros((3, 99))},
        {"path": ((1, np.zeros((1, 1))),)},
        {"certificate": "a" * 20_000},
        {"orders": Orders(np.zeros((1, 1), int), np.zeros(1, int))},
        {"branches": Branches(np.array([99]), np.zeros(1), np.ones((1, 1), np.int8), np.zeros(1, int), np.ones(1))},
    ],
)
def test_a_guess_that_scoring_could_not_use_is_refused(change: dict[str, Any]) -> None:
    seen = view()
    rows = len(seen.own)
    words = {"too high": np.full(rows, len(seen.classes)), "fractions": np.full(rows, 0.5)}
    change = {key: words.get(value, value) if isinstance(value, str) else value for key, value in change.items()}
    guess = replace(nothing(seen), **change)
    head, arrays = packed_guess(guess)
    assert guess_of(*packed_guess(nothing(seen)), seen).values is not None
    with pytest.raises(Garbled):
        guess_of(head, arrays, seen)


def test_limits_grow_with_rows_and_are_shared_by_workers() -> None:
    small, large = Allowance().limits(100), Allowance().limits(1_000_000)
    assert 3_600 <= small.seconds < 3_700 < 36_000 < large.seconds
    assert Allowance(workers=4).limits(1).memory_mb == pytest.approx(small.memory_mb / 4, abs=1)
    told = Allowance(seconds=1.5, memory_mb=2_000, workers=4).limits(10**9)
    assert (told.too_long, told.too_large) == ("it ran longer than 1.5 s", "it needed more than 2,000 MB")
