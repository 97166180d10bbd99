"""Views and guesses as they cross the wall: a line of JSON, then the numbers of all arrays.

    8 bytes: length of the JSON | JSON with name, type, shape and order of every array | the arrays, one after the other

Nothing is pickled. What comes back was written by an attack: every size is checked before memory is taken for it, and a guess
that does not fit the view is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from plumbob.attacks.base import Branches, Guess, Orders
from plumbob.bundle import Array
from plumbob.threats import View

HEAD = 64 * 2**20  # bytes of JSON at most
WORDS = 10_000  # characters of a text in a guess at most
_KINDS = "biuf"
Read = Callable[[memoryview], None]  # fills the buffer, or raises


class Garbled(Exception):
    """What was read is no message, or no guess for the view."""


def packed(head: Mapping[str, Any], arrays: Mapping[str, Array]) -> Iterator[memoryview | bytes]:
    """The parts of a message, in order."""
    entries: list[Any] = []
    laid: list[Array] = []
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"array '{name}': expected numbers, got {array.dtype}")
        axes = sorted(
            range(array.ndim), key=lambda axis: -abs(array.strides[axis])
        )  # sums depend on the order in memory
        entries.append([name, array.dtype.str, list(array.shape), axes, array.flags.writeable])
        laid.append(np.ascontiguousarray(array.transpose(axes)))
    text = json.dumps({**head, "arrays": entries}).encode()
    yield len(text).to_bytes(8, "little")
    yield text
    yield from (array.reshape(-1).view(np.uint8).data for array in laid if array.nbytes)


def unpacked(read: Read, most: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """A message, of at most so many bytes of arrays."""
    length = int.from_bytes(_bytes(read, 8), "little")
    if length > HEAD:
        raise Garbled("its answer is too long")
    try:
        head = json.loads(_bytes(read, length))
        entries = [_entry(*entry) for entry in head.pop("arrays")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Garbled("its answer cannot be read") from error
    if sum(math.prod(shape) * dtype.itemsize for _, dtype, shape, _, _ in entries) > most:
        raise Garbled("its guess is larger than the memory it may use")
    arrays = {}
    for name, dtype, shape, axes, writeable in entries:
        raw = np.empty(math.prod(shape) * dtype.itemsize, np.uint8)
        if raw.size:
            read(raw.data)
        array = raw.view(dtype).reshape([shape[axis] for axis in axes])
        arrays[name] = array.transpose(np.argsort(axes)) if axes else array
        arrays[name].setflags(write=writeable)
    return head, arrays


def _bytes(read: Read, length: int) -> bytes:
    buffer = bytearray(length)
    read(memoryview(buffer))
    return bytes(buffer)


def _entry(name: Any, dtype: Any, shape: Any, axes: Any, writeable: Any) -> tuple[str, np.dtype[Any], Any, Any, bool]:
    """One array's entry, if it is one."""
    kind = np.dtype(str(dtype))
    fits = kind.kind in _KINDS and sorted(axes) == list(range(len(shape)))
    if not fits or not all(type(length) is int and 0 <= length < 2**40 for length in shape):
        raise ValueError
    return str(name), kind, shape, axes, bool(writeable)


def packed_guess(guess: Guess) -> tuple[dict[str, Any], dict[str, Array]]:
    """A guess as plain data and arrays."""
    arrays: dict[str, Array | None] = {name: getattr(guess, name) for name in ("values", "vectors", "people", "labels")}
    for kind in ("branches", "orders"):
        part = getattr(guess, kind)
        arrays |= {} if part is None else {f"{kind}/{name}": array for name, array in vars(part).items()}
    arrays |= {f"path/{i}": values for i, (_, values) in enumerate(guess.path)}
    head = {
        "names": [str(name) for name in guess.names],
        "certificate": str(guess.certificate),
        "untried": str(guess.untried),
        "unnamed": bool(guess.unnamed),
        "steps": [int(step) for step, _ in guess.path],
    }
    return head, {name: np.asarray(array) for name, array in arrays.items() if array is not None}


def guess_of(head: Mapping[str, Any], arrays: dict[str, Array], view: View) -> Guess:
    """The guess that an attack wrote, if it is one for this view."""
    try:
        words = [str(head["certificate"]), str(head["untried"])]
        guess = Guess(
            tuple(map(str, head["names"])),
            values=arrays.get("values"),
            branches=Branches(**_under("branches/", arrays)) if "branches/column" in arrays else None,
            orders=Orders(**_under("orders/", arrays)) if "orders/bins" in arrays else None,
            vectors=arrays.get("vectors"),
            people=arrays.get("people"),
            certificate=words[0],
            labels=arrays.get("labels"),
            untried=words[1],
            unnamed=bool(head["unnamed"]),
            path=tuple((int(step), arrays[f"path/{i}"]) for i, step in enumerate(head["steps"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Garbled("its answer is no guess") from error
    wrong = next(_misfits(guess, view), None)
    if wrong is not None or max(map(len, words)) > WORDS:
        raise Garbled(f"its guess does not fit the view ({wrong or 'text'})")
    return guess


def _under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _misfits(guess: Guess, view: View) -> Iterator[str]:
    """What in a guess scoring could not use: shapes, and numbers out of bounds."""
    rows, unknown = len(view.own), len(view.unknown)
    if all(part is None for part in (guess.values, guess.branches, guess.orders, guess.vectors, guess.people)):
        yield "nothing is guessed"
    tables = {"values": guess.values} | {f"path {i}": values for i, (_, values) in enumerate(guess.path)}
    for name, table in tables.items():
        if table is not None and table.shape != (rows, unknown):
            yield f"{name}: {table.shape} in place of {(rows, unknown)}"
    if guess.vectors is not None and (guess.vectors.ndim != 2 or len(guess.vectors) != rows):
        yield f"vectors: {guess.vectors.shape} in place of {rows} rows"
    if guess.people is not None and (guess.people.ndim != 2 or guess.people.shape[1] != unknown):
        yield f"people: {guess.people.shape} in place of {unknown} columns"
    whose = rows if guess.people is None else len(guess.people)
    if guess.labels is not None and not _whole(guess.labels, (whose,), -1, max(1, len(view.classes))):
        yield "labels"
    if guess.orders is not None and not _fit_orders(guess.orders, rows, unknown):
        yield "orders"
    if guess.branches is not None and not _fit_branches(guess.branches, rows, unknown):
        yield "branches"


def _whole(array: Array, shape: tuple[int, ...], low: int, end: int) -> bool:
    """Whether these are whole numbers from `low` to below `end`."""
    if array.shape != shape or array.dtype.kind not in "iu":
        return False
    return not array.size or bool(array.min() >= low and array.max() < end)


def _marks(array: Array, shape: tuple[int, ...]) -> bool:
    return array.dtype.kind == "b" and array.shape == shape


def _fit_orders(orders: Orders, rows: int, unknown: int) -> bool:
    return _whole(orders.counts, (unknown,), 0, 2**31) and _whole(orders.bins, (rows, unknown), -1, 2**31)


def _fit_branches(branches: Branches, rows: int, unknown: int) -> bool:
    paths, thresholds = branches.paths, branches.threshold
    return (
        paths.ndim == 2
        and thresholds.shape == (paths.shape[1],)
        and _whole(branches.column, thresholds.shape, 0, unknown)
        and _whole(paths, paths.shape, 0, 3)
        and _whole(branches.chosen, (rows,), 0, len(paths))
        and branches.candidates.shape == (rows,)
        and (branches.certain is None or _marks(branches.certain, (rows, len(thresholds))))
    )
