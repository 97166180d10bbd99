"""Valid examples made wrong: bytes flipped, cut and spliced; values of JSON replaced, moved, nested and repeated.

All choices come from one `random.Random`, so that a seed repeats a case, Hypothesis can shrink one and atheris can steer one.
"""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

HUGE, DEEP, TWICE = "\ue000huge", "\ue000deep", "\ue000twice"  # written as text that no value stands for
WORDS = (
    *(
        "",
        " ",
        "a",
        "0",
        "none",
        "all",
        "bank",
        "shop",
        "x" * 4000,
        "../../x",
        "/etc/hostname",
        "a/b\\c",
        "nan",
        "1e999",
    ),
    *(
        "line\nbreak",
        "\x1b[31mred",
        "\u202eevil",
        "\x00",
        "\ud800",
        "\u2028",
        "ü\u0301",
        "=1+1",
        "<b>",
        "{{7*7}}",
        "*x",
        "!!x",
        HUGE,
    ),
)
NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 255, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**70), 10**30, 10**300),
    *(0.0, -0.0, 0.5, 1.5, 1e-320, 1e-9, 1e308, -1e308, float("nan"), float("inf"), float("-inf")),
)
OTHERS = (None, True, False, [], {}, [[]], {"": 0}, [None], [1, 2, 3], ["a", "a"], {"a": {"b": []}}, DEEP)
BYTES = (
    b"",
    b"\0",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\n",
    b"\r",
    b'"',
    b"{",
    b"[",
    b"]",
    b",",
    b":",
    b"\xc3",
    b"-",
    b"9" * 30,
)


def wild(rng: random.Random) -> Any:
    """Something that hardly any place expects."""
    return copy.deepcopy(rng.choice((WORDS, NUMBERS, OTHERS)[rng.randrange(3)]))


def damaged(rng: random.Random, data: bytes, other: bytes = b"") -> bytes:
    """The same bytes with one to four accidents."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 8, 64))
        kind = rng.randrange(7)
        if kind == 0 and data:
            at %= len(data)
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at]
        elif kind == 2:
            data = data[:at] + data[at + size :]
        elif kind == 3:
            data = data[:at] + data[at : at + size] * rng.choice((2, 3, 50)) + data[at + size :]
        elif kind == 4:
            data = data[:at] + rng.choice(BYTES) + data[at + rng.choice((0, size)) :]
        elif kind == 5:
            cut = rng.randrange(len(other) + 1)
            data = data[:at] + other[cut:]
        else:
            data = data[:at] + rng.randbytes(size) + data[at + size :]
    return data


def changed(rng: random.Random, value: Any, fresh: Callable[[random.Random], Any] = wild) -> Any:
    """A copy of plain data with one to three of its places changed."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return fresh(rng)
        inside, key = rng.choice(places)
        kind = rng.randrange(8)
        if kind <= 3:
            inside[key] = fresh(rng)
        elif kind == 4:
            del inside[key]
        elif kind == 5:
            from_inside, from_key = rng.choice(places)
            if from_key in from_inside if isinstance(from_inside, dict) else from_key < len(from_inside):
                inside[key] = copy.deepcopy(from_inside[from_key])
        elif kind == 6:
            inside[key] = [inside[key]] if rng.random() < 0.5 else {"a": inside[key]}
        elif isinstance(inside, list):
            inside.insert(key, copy.deepcopy(inside[key]))
        else:
            inside[str(rng.choice(WORDS))] = inside.pop(key)
    return value


def _places(value: Any) -> Any:
    if isinstance(value, dict):
        for key in list(value):
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield value, i
            yield from _places(item)


def json_bytes(rng: random.Random, value: Any) -> bytes:
    """JSON, with what only a hand can write: endless numbers, towers of brackets, a key that stands there twice."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    text = text.replace(json.dumps(HUGE), "9" * 5000).replace(f'"{HUGE}"', "9" * 5000)
    text = text.replace(json.dumps(DEEP), "[" * 3_000).replace(f'"{DEEP}"', "[" * 3_000)
    if rng.random() < 0.05 and text.startswith("{") and len(text) > 2:
        text = text[:-1] + "," + text[1:]
    return text.encode("utf-8", "surrogatepass")


def array(rng: random.Random, like: np.ndarray) -> np.ndarray:
    """An array of another type, shape or content."""
    kind = rng.randrange(8)
    if kind == 0:
        kinds = ("f8", "f4", "f2", "i8", "u1", "?", ">f8", "u8", "i2")
        with np.errstate(all="ignore"):
            return np.asarray(np.nan_to_num(like)).astype(rng.choice(kinds))
    if kind == 1:
        return like.reshape(-1)
    if kind == 2:
        return like[None]
    if kind == 3:
        return like[: rng.randrange(3)] if like.ndim else like
    if kind == 4:
        return np.zeros(rng.choice(((), (0,), (0, 3), (1,), (1, 1), (2, 0), (5, 2), (1,) * 20)))
    if kind == 5 and like.ndim == 2:
        return like.T.copy()
    filled = np.array(like, copy=True)
    if filled.size:
        cell = rng.choice((np.nan, np.inf, -np.inf, -1, 2, 1e300, 10**9, -(2**62), 0.5))
        at = rng.randrange(filled.size)
        with np.errstate(all="ignore"):
            filled.reshape(-1)[at if kind == 6 else slice(None)] = (
                np.array(np.nan_to_num(cell)).astype(filled.dtype) if filled.dtype.kind != "f" else cell
            )
    return filled


def npy(values: np.ndarray) -> bytes:
    """An array as NumPy writes it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, values, allow_pickle=False)
    return file.getvalue()


def zipped(members: Mapping[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    """One archive of the members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, kind)
    return file.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def some(rng: random.Random, items: Sequence[Any], most: int) -> list[Any]:
    """A few of the items, not all different."""
    return [rng.choice(items) for _ in range(rng.randrange(most + 1))]
