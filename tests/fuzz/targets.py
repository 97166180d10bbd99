"""What is fuzzed: for every kind of file how a case is made from random choices, and how the product reads it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import others, plans, recordings, tables
from tests.fuzz.guard import Files
from tests.fuzz.special import spoilt


@dataclass(frozen=True)
class Target:
    """`make` gives the files of a case, `read` reads them from the folder they were put in."""

    name: str
    make: Callable[[random.Random], Files]
    read: Callable[[Path], object]
    share: int  # of a hundred cases


TARGETS = {
    target.name: target
    for target in (
        Target("plans", spoilt(plans.make_plan), plans.read_a_plan, 12),
        Target("tables", spoilt(tables.make), tables.read, 20),
        Target("transcripts", spoilt(recordings.make_transcript), recordings.read_transcript, 15),
        Target("views", spoilt(recordings.make_view), recordings.read_view, 15),
        Target("recordings", spoilt(recordings.make_recording), recordings.read_recording, 12),
        Target("models", spoilt(others.make_model), others.read_a_model, 17),
        Target("gates", plans.make_gate, plans.read_a_gate, 4),
        Target("findings", spoilt(others.make_findings), others.read_the_findings, 4),
        Target("runs", spoilt(others.make_runs), others.read_the_runs, 1),
    )
}


class Steered(random.Random):
    """Choices that come from given bytes, so that a fuzzer that sees coverage can steer them; nought where they end."""

    def __new__(cls, data: bytes) -> Steered:
        return super().__new__(cls)

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data, self._at = data, 0

    def getrandbits(self, k: int) -> int:
        size = (k + 7) // 8
        taken = self._data[self._at : self._at + size].ljust(size, b"\0")
        self._at += size
        return int.from_bytes(taken, "little") & ((1 << k) - 1)

    def random(self) -> float:
        return self.getrandbits(16) / 2**16
