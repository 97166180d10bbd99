"""What a view's messages say of each row by itself: one table of numbers for any protocol, as learners take it.

Messages that came from others are put where they belong: those of a batch at the batch's rows, bits at the rows that were
asked about. Of numbers that come again every round a row keeps the last ones and the mean of all; gradients also without their
length. Scores come with their logarithms. Wide messages are reduced to their largest principal components.

Sums over rows (gradients of a batch, histograms) say nothing row by row. `uncovered` names them: learners do not see them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from plumbob.bundle import Array
from plumbob.federation import FloatArray, IntArray
from plumbob.threats import View
from plumbob.transcript import COORDINATOR, Message

WIDE = 64  # numbers a row that are kept of one message
FEW = 4  # rows for each distinct release, from which releases count as finitely many
SMALLEST = 1e-12  # a score below it counts as this: logarithms stay finite
ROWS = ("rows", "rows to split")  # messages that say which rows the next ones are about
# Which rows, keys and settings, and parameters of models: none of them a message about rows.
ASIDE = {
    "sampled rows",
    "rows of a node",
    "split",
    "batches",
    "key",
    "public key",
    "settings",
    "coefficients",
    "network",
}
ASIDE |= {"parameter", "allgather", "allgatherv", "allreduce", "broadcast", "bin counts"}
CIPHERTEXTS = {"partial", "residual", "encrypted gradient", "masked gradient", "opened gradient"}
CIPHERTEXTS |= {"first gradients", "second gradients"}
BITS: dict[str, Literal["big", "little"]] = {
    "left": "big",
    "sides": "little",
    "missing": "little",
}  # one bit for each row, and which of a byte comes first


@dataclass(frozen=True)
class RowMessages:
    """Features of every row, and what they do not contain."""

    features: FloatArray  # rows x features, finite
    final: FloatArray  # those of prediction, with parameters that no longer change; all where nothing was predicted
    names: tuple[str, ...] = ()  # of the messages in them
    uncovered: tuple[str, ...] = ()  # of messages that were received and say nothing row by row
    cells: IntArray | None = None  # the number of each row's release, where releases take few values

    def of(self, rows: IntArray) -> RowMessages:
        """The same of some rows."""
        cells = None if self.cells is None else self.cells[rows]
        return replace(self, features=self.features[rows], final=self.final[rows], cells=cells)


@dataclass
class _Stream:
    """All messages of one kind from one sender: what each row got last, and the sum of all."""

    last: FloatArray
    total: FloatArray
    times: IntArray
    bits: list[FloatArray] = field(default_factory=list)

    @classmethod
    def of(cls, rows: int, width: int) -> _Stream:
        return cls(np.full((rows, width), np.nan), np.zeros((rows, width)), np.zeros(rows, dtype=np.int64))

    def put(self, rows: IntArray, payload: FloatArray) -> None:
        self.last[rows] = payload
        self.total[rows] += np.nan_to_num(payload)
        self.times[rows] += 1

    def tables(self, name: str) -> list[FloatArray]:
        """The last numbers of each row, and where there were several their mean; gradients also as directions."""
        found = [self.last]
        if (self.times > 1).any():
            found.append(self.total / np.maximum(1, self.times)[:, None])
        if "gradient" in name:
            found += [
                one / np.maximum(1e-30, np.linalg.norm(np.nan_to_num(one), axis=1, keepdims=True)) for one in found
            ]
        return found


def row_messages(view: View) -> RowMessages:
    """The features of every row that the messages to the curious parties give, and nothing of their own columns."""
    count = len(view.own)
    streams: dict[tuple[str, str, str], _Stream] = {}
    bits: list[FloatArray] = []
    names: dict[str, None] = {}
    left_out: dict[str, None] = {}
    asked: dict[tuple[str, int], IntArray] = {}
    encrypted = any(message.name in ("key", "public key") and message.payload.size for message in view.messages)
    for message in view.messages:
        if message.name in ROWS:
            asked[message.phase, message.round] = np.asarray(message.payload).ravel().astype(np.int64)
        if not _told(message, view) or _unreadable(message, view, encrypted):
            continue
        placed = _placed(message, asked.get((message.phase, message.round)), count)
        if placed is None:
            left_out[message.name.partition("/")[0]] = None
            continue
        rows, payload = placed
        names[message.name] = None
        if message.name in BITS:
            column = np.zeros((count, 1))
            column[rows] = 2 * payload - 1
            bits.append(column)
            continue
        place = (message.sender, message.phase, message.name)
        stream = streams.get(place)
        if stream is None or stream.last.shape[1] != payload.shape[1]:
            stream = streams[place] = _Stream.of(count, payload.shape[1])
        stream.put(rows, payload)
    tables = {place: _of_stream(place[2], stream) for place, stream in streams.items()}
    noted = {name: note for name, note in view.notes.items() if _by_row(name, note, count)}
    names |= dict.fromkeys(noted)
    final = [table for (_, phase, _), parts in tables.items() if phase == "predict" for table in parts]
    final += [np.asarray(note, dtype=np.float64) for note in noted.values()]
    earlier = [table for (_, phase, _), parts in tables.items() if phase != "predict" for table in parts]
    earlier += [np.hstack(bits)] if bits else []
    left_out |= {name: None for name in view.notes if name.startswith("opened")}
    scores = next((stream.last for (*_, name), stream in streams.items() if name == "scores"), None)
    last, first = (_side_by_side(count, tables) for tables in (final, earlier))
    return RowMessages(
        features=np.hstack([last, first]),
        final=last if final else first,
        names=tuple(names),
        uncovered=tuple(left_out),
        cells=None if scores is None else cells_of(scores),
    )


def _side_by_side(count: int, tables: list[FloatArray]) -> FloatArray:
    return np.hstack([np.zeros((count, 0)), *(reduced(whole(table), WIDE) for table in tables)])


def _told(message: Message, view: View) -> bool:
    """Whether others told a curious party something by it that is neither a key nor a number of rows."""
    others = [name for name in view.curious if name != COORDINATOR]
    plain = message.name.partition("/")[0]
    return (
        message.receiver in view.curious
        and message.sender not in others
        and message.phase in ("train", "predict")
        and plain not in (*ROWS, *ASIDE)
        and message.payload.size > 0
    )


def _unreadable(message: Message, view: View, encrypted: bool) -> bool:
    """Whether it is masked, or a ciphertext under another party's key."""
    if message.name.startswith("masked "):
        return True
    cipher = message.name in CIPHERTEXTS or (view.protocol == "secure_boost" and message.name == "gradients")
    return cipher and encrypted and message.payload.dtype == np.uint8


def _placed(message: Message, asked: IntArray | None, count: int) -> tuple[IntArray, FloatArray] | None:
    """The rows that a message is about and what it says of each; None if it does not go row by row."""
    payload, name = message.payload, message.name
    everyone = np.arange(count)
    if name in BITS and payload.dtype == np.uint8 and payload.ndim == 1:
        rows = next((r for r in (asked, everyone) if r is not None and len(payload) == -(-len(r) // 8)), None)
        if rows is None:
            return None
        return rows, np.unpackbits(payload, count=len(rows), bitorder=BITS[name])[:, None].astype(np.float64)
    if name.startswith("gradient/") or payload.ndim == 0 or message.whole:
        return None
    rows = next((r for r in (asked, everyone) if r is not None and len(payload) == len(r)), None)
    if rows is None or not len(rows) or rows.min() < 0 or rows.max() >= count:
        return None
    if payload.dtype == np.uint8:  # the sides that trees ask for; other bytes are no numbers
        bits = np.unpackbits(payload, axis=1) if name == "answer" and payload.ndim == 2 else None
        return None if bits is None else (rows, bits.astype(np.float64))
    return rows, np.asarray(payload, dtype=np.float64).reshape(len(rows), -1)


def _of_stream(name: str, stream: _Stream) -> list[FloatArray]:
    if name != "scores":
        return stream.tables(name)
    scores = stream.last[:, 1:] if stream.last.shape[1] == 2 else stream.last
    logarithms = np.log(np.clip(stream.last, SMALLEST, None))
    logits = logarithms - logarithms.mean(axis=1, keepdims=True)
    return [logits[:, 1:] if logits.shape[1] == 2 else logits, scores]


def _by_row(name: str, note: Array, count: int) -> bool:
    """Notes that hold something opened of every row; the label is the party's own."""
    return name == "embeddings" and note.ndim == 2 and len(note) == count


def cells_of(scores: FloatArray) -> IntArray | None:
    """The number of each row's release; None where nearly every row has one of its own.

    >>> cells_of(np.array([[0.1], [0.9], [0.1], [0.1], [0.9], [0.1], [0.9], [0.9]])).tolist()
    [0, 1, 0, 0, 1, 0, 1, 1]
    """
    values, cells = np.unique(np.nan_to_num(scores.round(12), nan=-1.0), axis=0, return_inverse=True)
    return np.asarray(cells.ravel(), dtype=np.int64) if len(values) * FEW <= len(scores) else None


def whole(table: FloatArray) -> FloatArray:
    """Without NaN: the column's mean in its place, and a column more that says where it was, if that differs."""
    missing = ~np.isfinite(table)
    if not missing.any():
        return table
    told = np.where(missing, 0.0, table)
    mean = told.sum(axis=0) / np.maximum(1, (~missing).sum(axis=0))
    return np.hstack([np.where(missing, mean, table), missing.any(axis=1, keepdims=True).astype(np.float64)])


def reduced(table: FloatArray, width: int) -> FloatArray:
    """Standardised columns, without constant ones; of a wider table its largest principal components, the first of spread 1.

    >>> reduced(np.array([[1.0, 5.0], [3.0, 5.0]]), 8).tolist()
    [[-1.0], [1.0]]
    """
    spread = table.std(axis=0)
    kept = spread > 1e-12 * np.maximum(1.0, np.abs(table).max(axis=0, initial=0.0))
    scaled = (table[:, kept] - table[:, kept].mean(axis=0)) / spread[kept]
    if scaled.shape[1] <= width:
        return np.asarray(scaled)
    sketch = np.random.default_rng(scaled.shape[1]).standard_normal((scaled.shape[1], width + 8))
    for _ in range(3):  # of a randomised range finder
        basis, _ = np.linalg.qr(scaled @ sketch)
        sketch = scaled.T @ basis
    left, values, _ = np.linalg.svd(sketch.T, full_matrices=False)
    kept = values[:width] > 1e-9 * values[0]
    return np.asarray((basis @ left[:, :width] * (values[:width] * np.sqrt(len(table)) / values[0]))[:, kept])
