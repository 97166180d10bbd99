"""weng2022, the half about sums: its federations (Tables 4 and 5), and one run of training and attack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from plumbob.attacks.base import Attack, Orders
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.data.files import read_frame
from plumbob.federation import Column, Federation, FloatArray, IntArray, Table, halves, split
from plumbob.papers.claims import Scale
from plumbob.protocols.base import TrainingProtocol
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript

SYNTHETIC = ("N(0,1)", "Bernoulli", "Exp", "U(0,50)")  # Table 5
STUDENT = {  # Table 4 counts 6 and 7 columns but does not name them
    "active": ("sex", "studytime", "failures", "freetime", "goout", "health"),
    "passive": ("age", "absences", "G1", "G2", "Medu", "Fedu", "Walc"),
}
WENG_ROWS = {"smoke": 3_000, "paper": 30_000}


@dataclass(frozen=True)
class CodedRun:
    """One training with a hidden code, and what an attack made of it."""

    log: Transcript
    orders: Orders
    coded: int  # rows that carried a code

    @property
    def right(self) -> IntArray:
        """Rows whose bin was found exactly, by column."""
        return np.asarray(
            ((self.orders.bins >= 0) & (self.orders.bins == self.log.sealed("passive")["bins"])).sum(axis=0)
        )

    @property
    def success(self) -> FloatArray:
        """The paper's success rate, by column."""
        return np.asarray(self.right / self.coded)

    @property
    def accuracy(self) -> float:
        """Of the trees, on the other rows."""
        return accuracy(self.log)


def attacked(parties: tuple[Federation, Federation], protocol: TrainingProtocol, attack: Attack, seed: int) -> CodedRun:
    log = protocol.train(*parties, generator(seed, "training"))
    notes = log.sealed(log.active)
    kinds = ("magic", "groups")
    coded = {int(row) for k, v in notes.items() if k.split("/")[-1] in kinds for row in v[:, 0]}
    found = attack.run(cut(log, THREATS["active-training"]), generator(seed, "attack")).orders
    assert found is not None
    return CodedRun(log, found, len(coded))


def accuracy(log: Transcript) -> float:
    sealed = log.sealed(COORDINATOR)
    return float(np.mean(sealed["other scores"].argmax(axis=1) == sealed["other labels"]))


@lru_cache(maxsize=8)
def credit(scale: Scale, seed: int, share: float = 1.0) -> tuple[Federation, Federation]:
    """13 columns with the label and 10 without; those of Table 7, which are the first ten.

    The share trains and the rest tests; where all train nothing is tested, and some of them stand in for the rest.
    """
    table = registry.load("credit")
    owners = {"active": table.names[10:], "passive": table.names[:10]}
    federation = split(table, owners, "active")
    if share == 1.0:
        order = generator(seed, "credit").permutation(len(federation))[: WENG_ROWS[scale]]
        return federation.rows(order), federation.rows(order[:100])
    order, others = halves(federation.label, generator(seed, "credit"), share)
    return federation.rows(order[: round(WENG_ROWS[scale] * share)]), federation.rows(others[: WENG_ROWS[scale] // 5])


@lru_cache(maxsize=8)
def student(seed: int) -> tuple[Federation, Federation]:
    """The final grade as a number, in classes 0 to 20."""
    entry = registry.find("student")
    federation = split(registry.load("student"), STUDENT, "active")
    grade = read_frame(registry.checked_file(entry))[entry.label].to_numpy(dtype=np.int64)
    whole = replace(federation, label=grade, classes=tuple(map(str, range(21))))
    return whole, whole.rows(generator(seed, "student").permutation(len(grade))[:100])


@lru_cache(maxsize=16)
def synthetic(name: str, rows: int, seed: int) -> tuple[Federation, Federation]:
    """One passive column of the named distribution; the active party has a column and a label of its own."""
    rng = generator(seed, "synthetic", name)
    draws = {
        "N(0,1)": rng.normal(size=rows),
        "Bernoulli": rng.integers(2, size=rows).astype(np.float64),
        "Exp": rng.exponential(size=rows),
        "U(0,50)": rng.uniform(0, 50, size=rows),
    }
    raw = draws[name]
    hidden = (raw - raw.min()) / np.ptp(raw)
    own = rng.random(rows)
    label = (rng.random(rows) < 0.3 + 0.2 * own + 0.2 * hidden).astype(np.int64)
    columns = (Column("own"), Column("hidden"))
    table = Table(name, columns, np.stack([own, hidden], axis=1), label, ("no", "yes"))
    federation = split(table, {"active": ["own"], "passive": ["hidden"]}, "active")
    return federation, federation.rows(np.arange(100))
