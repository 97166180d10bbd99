"""The transcript: every message in order, chained by hashes, and each party's sealed state."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumbob import bundle, memory
from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import COORDINATOR as COORDINATOR
from plumbob.federation import Column, Feature, IntArray

_GENESIS = "0" * 64


@dataclass(frozen=True)
class Message:
    """One payload on its way from one party to another."""

    sender: str
    receiver: str
    phase: str  # align, setup, train, predict
    round: int
    name: str
    payload: Array
    link: str  # hash of this message and of all before it
    whole: str = ""  # of a message of which the receiver kept a part only: the hash of all of it
    size: int = 0  # and its bytes

    @property
    def nbytes(self) -> int:
        """Bytes that were sent, whether kept or not."""
        return self.size if self.whole else self.payload.nbytes

    @property
    def header(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in ("sender", "receiver", "phase", "round", "name")}


def _link(previous: str, header: dict[str, Any], payload_digest: str) -> str:
    return hashlib.sha256(f"{previous}{bundle.canonical(header)}{payload_digest}".encode()).hexdigest()


class Transcript:
    """Append-only record of one run. Protocols write to it with `send` and `seal`; nothing is ever removed.

    >>> log = Transcript("toy", "bank", ("bank", "shop"), (), ("no", "yes"))
    >>> log.send("shop", "bank", "predict", 0, "scores", np.array([0.25]))
    array([0.25])
    >>> [message.name for message in log.messages]
    ['scores']
    """

    def __init__(
        self,
        protocol: str,
        active: str,
        parties: tuple[str, ...],
        features: tuple[Feature, ...],
        classes: tuple[str, ...],
    ) -> None:
        self.protocol = protocol
        self.active = active
        self.parties = parties
        self.features = features
        self.classes = classes
        self._messages: list[Message] = []
        self._sealed: dict[str, dict[str, Array]] = {name: {} for name in (*parties, COORDINATOR)}

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    @property
    def head(self) -> str:
        """The last link: a hash of all messages."""
        return self._messages[-1].link if self._messages else _GENESIS

    def sealed(self, party: str) -> dict[str, Array]:
        """A party's private state, such as its columns. Threats and scoring open it, attacks never do."""
        return dict(self._sealed[party])

    def send(
        self,
        sender: str,
        receiver: str,
        phase: str,
        round: int,
        name: str,
        payload: Array,
        kept: IntArray | None = None,
    ) -> Array:
        """Deliver a payload and record it; returns the receiver's own read-only copy.

        `kept` is the part that is stored where the whole would be too large: a thousand rounds of a network's gradients
        are gigabytes. The hash chain and the byte count cover the whole message.
        """
        for end in (sender, receiver):
            if end not in self._sealed:
                raise BadInput(f"this run has no party '{end}'; known: {', '.join(self._sealed)}")
        received = _frozen(payload)
        stored = received if kept is None else _frozen(received.reshape(-1)[kept])
        header = {"sender": sender, "receiver": receiver, "phase": phase, "round": round, "name": name}
        previous = self.head
        whole = "" if kept is None else bundle.digest(received)
        link = _link(previous, header, whole + bundle.digest(stored))
        size = 0 if kept is None else received.nbytes
        self._messages.append(Message(sender, receiver, phase, round, name, stored, link, whole, size))
        return received

    def seal(self, party: str, name: str, array: Array) -> None:
        """Store a part of a party's private state; each name only once."""
        if name in self._sealed[party]:
            raise BadInput(f"'{name}' of party '{party}' is already sealed; a transcript is append-only")
        self._sealed[party][name] = _frozen(array)

    def bytes_sent(self) -> int:
        """Payload bytes sent in total."""
        return sum(self.bytes_by_party().values())

    def bytes_by_party(self) -> dict[str, int]:
        """Payload bytes by sender; parties that sent nothing are left out."""
        sent: dict[str, int] = {}
        for message in self._messages:
            sent[message.sender] = sent.get(message.sender, 0) + message.nbytes
        return sent

    def save(self, path: Path | str) -> None:
        """Write to a folder, or to one file if the path ends in `.zip`."""
        arrays = {f"message/{i}": message.payload for i, message in enumerate(self._messages)}
        for party, state in self._sealed.items():
            arrays |= {f"sealed/{party}/{name}": array for name, array in state.items()}
        meta = {
            "kind": "transcript",
            "protocol": self.protocol,
            "active": self.active,
            "parties": list(self.parties),
            "features": [{"party": feature.party, **asdict(feature.column)} for feature in self.features],
            "classes": list(self.classes),
            "messages": [message.header | {"link": message.link} | _trimmed(message) for message in self._messages],
            "sealed": {party: list(state) for party, state in self._sealed.items()},
            "head": self.head,
        }
        bundle.save(Path(path), meta, arrays)

    @classmethod
    def load(cls, path: Path | str, limit: int = memory.LIMIT) -> Transcript:
        """Read a transcript and verify its hash chain."""
        path = Path(path)
        meta, arrays = bundle.load(path, limit)
        if meta.get("kind") != "transcript":
            raise BadInput(f"{path}: expected a transcript, got '{meta.get('kind')}'")
        try:
            check_words(path, meta, ("protocol", "active"), ("parties", "classes"))
            features = tuple(_feature(path, entry) for entry in meta["features"])
            log = cls(meta["protocol"], meta["active"], tuple(meta["parties"]), features, tuple(meta["classes"]))
            for message in _checked(path, meta, arrays):
                log._messages.append(message)
            for party, names in meta["sealed"].items():
                for name in names:
                    log.seal(party, name, arrays[f"sealed/{party}/{name}"])
        except (KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{path}: its manifest has no {error}") from error
        return log


def _checked(path: Path, meta: dict[str, Any], arrays: dict[str, Array]) -> Iterator[Message]:
    previous = _GENESIS
    recorded = sum(name.startswith("message/") for name in arrays)
    if recorded != len(meta["messages"]):
        raise BadInput(f"{path}: {len(meta['messages'])} messages are listed, {recorded} are present")
    for i, entry in enumerate(meta["messages"]):
        check_message(path, i, entry)
        header = {key: entry[key] for key in ("sender", "receiver", "phase", "round", "name")}
        if f"message/{i}" not in arrays:
            raise BadInput(f"{path}: message {i} is missing")
        payload = arrays[f"message/{i}"]
        whole, size = entry.get("whole", ""), entry.get("size", 0)
        link = _link(previous, header, whole + bundle.digest(payload))
        if link != entry["link"]:
            raise BadInput(
                f"{path}: the hash chain breaks at message {i}: it was changed or moved, or a message is missing"
            )
        yield Message(**header, payload=payload, link=link, whole=whole, size=size)
        previous = link
    if previous != meta["head"]:
        raise BadInput(f"{path}: the transcript ends before its last message")


def _trimmed(message: Message) -> dict[str, Any]:
    return {"whole": message.whole, "size": message.size} if message.whole else {}


def check_words(path: Path, meta: dict[str, Any], words: Sequence[str], lists: Sequence[str]) -> None:
    """Check names and lists of names: a bundle's manifest is not trusted."""
    for key in words:
        if not isinstance(meta[key], str):
            raise BadInput(f"{path}: '{key}' in its manifest: expected a name, got {type(meta[key]).__name__}")
    for key in lists:
        if not isinstance(meta[key], list) or not all(isinstance(name, str) for name in meta[key]):
            raise BadInput(f"{path}: '{key}' in its manifest: expected a list of names")


def check_message(path: Path, number: int, entry: dict[str, Any]) -> None:
    """Check a message's entry in a manifest: who, when and what, and how much of it was kept."""
    words = [entry[key] for key in ("sender", "receiver", "phase", "name", "link")] + [entry.get("whole", "")]
    counts = [entry["round"], entry.get("size", 0)]
    if not all(isinstance(word, str) for word in words) or not all(type(count) is int for count in counts):
        raise BadInput(f"{path}: message {number} has an invalid entry in the manifest")


def _feature(path: Path, entry: dict[str, Any]) -> Feature:
    fields = {key: value for key, value in entry.items() if key != "party"}
    place = fields.get("place")
    if place is not None:
        fields["place"] = tuple(place)
    column = Column(**fields)
    words, numbers = (entry["party"], column.name, column.kind, column.source), (column.low, column.high, column.step)
    right = all(isinstance(word, str) for word in words) and all(type(n) in (int, float) for n in numbers)
    if not right or not all(math.isfinite(n) and abs(n) <= sys.float_info.max / 4 for n in numbers):
        raise BadInput(f"{path}: a feature has an invalid entry in the manifest: expected names and finite numbers")
    if place is not None and (len(place) != 3 or not all(type(part) is int for part in place)):
        raise BadInput(f"{path}: the position of a pixel: expected its channel, row and column")
    return Feature(entry["party"], column)


def _frozen(array: Array) -> Array:
    copy = np.array(array, order="C", copy=True)
    copy.setflags(write=False)
    return copy
