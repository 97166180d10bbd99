"""What the server of split training holds: who computes what, which rows each batch had, and every gradient sent up.

Read from a view's messages and checked, so that attacks meet numbers of the right shape or one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
from scipy import linalg

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.known_defences import KnownHiddenIndices
from plumbob.lazy_imports import torch
from plumbob.protocols.gradients.split_training import ROWS_TAKEN, TOP
from plumbob.protocols.shared.networks import NETWORKS, NetworkPlan, drawing, mixing
from plumbob.threats import View
from plumbob.transcript import COORDINATOR, Message

UPLOAD_RANK_SHARE = 1e-9  # singular values below this share of the largest count as zero
STILL = 1e-4  # share of their length that parameters may move, or one gradient for each row may miss, to count as still


@dataclass(frozen=True)
class Worker:
    """One party's network. `columns` are its places in the joint model; `unknown` its places in the guess, if it is unknown."""

    name: str
    plan: NetworkPlan
    columns: IntArray
    unknown: IntArray

    @property
    def attacked(self) -> bool:
        return len(self.unknown) > 0


@dataclass(frozen=True)
class Gradients:
    """One parameter's gradients, round by round; `cells` are their places in the flat parameter."""

    rounds: IntArray
    lines: Sequence[FloatArray] | FloatArray  # a round's each, in the precision in which they came
    cells: IntArray

    @cached_property
    def values(self) -> FloatArray:
        """Rounds x cells, side by side. Large parameters are better read line by line: this is a copy."""
        if isinstance(self.lines, np.ndarray):
            return self.lines
        return np.stack(self.lines) if len(self.lines) else np.zeros((0, len(self.cells)))

    def of(self, round: int, size: int) -> FloatArray | None:
        """One round's gradient, if it came whole."""
        at = np.flatnonzero(self.rounds == round)
        return self.lines[int(at[0])] if len(at) and len(self.cells) == size else None

    def at(self, places: IntArray) -> Gradients:
        """Some of the cells only, by their places among `cells`."""
        return Gradients(self.rounds, [line[places] for line in self.lines], self.cells[places])

    def within(self, rounds: Sequence[int]) -> Gradients:
        """Those of some rounds only."""
        kept = np.flatnonzero(np.isin(self.rounds, list(rounds)))
        return Gradients(self.rounds[kept], [self.lines[i] for i in kept.tolist()], self.cells)


class Uploads:
    """The messages of one training, sorted."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._lock, self._apart = Lock(), dict[bytes, tuple[FloatArray, FloatArray]]()
        self._messages: dict[str, list[Message]] = {}
        for message in view.messages:
            self._messages.setdefault(message.name, []).append(message)
        plans = [NetworkPlan.from_array(m.payload) for m in self._of("network")]
        self.top = next((plan for plan in plans if plan.party == TOP), None)
        taken = sum(plan.inputs for plan in plans if plan.party != TOP)
        if taken != len(view.known) + len(view.unknown):
            raise BadInput(f"the networks of this view take {taken:,} columns, the parties have a different number")
        position = {int(column): i for i, column in enumerate(view.unknown)}
        self.workers: list[Worker] = []
        start = 0
        for plan in plans:
            if plan.party == TOP:
                continue
            columns = np.arange(start, start + plan.inputs)
            start += plan.inputs
            unknown = np.array([position[c] for c in columns.tolist() if c in position], dtype=np.int64)
            self.workers.append(Worker(plan.party, plan, columns, unknown))

    def _of(self, name: str) -> list[Message]:
        found = self._messages.get(name)
        if not found:
            what = "the batch indices: which rows a gradient is the sum of" if name == "rows" else f"a message '{name}'"
            raise BadInput(f"this attack needs {what}, but the view has none")
        return found

    @property
    def attacked(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.attacked]

    @cached_property
    def mixed(self) -> str:
        """Why no row has one gradient of its own, where a network mixes the rows of a batch or draws at random; else empty."""
        for plan in (*(w.plan for w in self.workers), self.top):
            if plan is None or plan.network in NETWORKS:
                continue
            module = plan.build(self.view.trust)
            for kind, why in (
                (mixing(module), "mixes rows, so that none has a gradient of its own"),
                (drawing(module), "draws anew in every round, so that no row has one gradient"),
            ):
                if kind:
                    return f"{kind} in the network of '{plan.party}' {why}"
        return ""

    @cached_property
    def batches(self) -> list[IntArray]:
        """The rows that the server asked for, round by round; or those that were taken, where a curious party knows of others."""
        first = self._of("rows")[0].receiver
        by_round = {m.round: np.asarray(m.payload) for m in self._of("rows") if m.receiver == first}
        used = {m.round for name, sent in self._messages.items() if name.startswith("gradient/") for m in sent}
        missing = sorted((used | set(range(len(by_round)))) - set(by_round))
        if missing:
            raise BadInput(
                f"this attack needs the batch indices of every round, but those of round {missing[0]} are missing"
            )
        total = len(self.view.own)
        asked = [_numbers(by_round[number], total, f"round {number}") for number in range(len(by_round))]
        return [_numbers(rows, total, f"round {number}") for number, rows in enumerate(self._taken(asked))]

    def _taken(self, asked: list[IntArray]) -> list[IntArray]:
        """The rows that numbers stood for, where a curious party knows."""
        ends, taken = np.cumsum([len(rows) for rows in asked]), self.view.notes.get(ROWS_TAKEN)
        if taken is None:
            return asked
        if np.shape(taken) != (ends[-1],):
            raise BadInput(f"'{ROWS_TAKEN}': expected {ends[-1]:,} row numbers, as many as batches have")
        return np.split(np.asarray(taken), ends[:-1])

    @property
    def hidden(self) -> bool:
        """Whether row numbers mean nothing, and no curious party knows what they stand for."""
        return KnownHiddenIndices in self.view.defence and ROWS_TAKEN not in self.view.notes

    @cached_property
    def indicator(self) -> FloatArray:
        """S: a row per round, a column per person, 1 where the person is in the batch."""
        matrix = np.zeros((len(self.batches), len(self.view.own)))
        for number, rows in enumerate(self.batches):
            matrix[number, rows] = 1.0
        return matrix

    def apart(self, rounds: IntArray) -> tuple[FloatArray, FloatArray]:
        """The pseudo-inverse of the batches of some rounds (the shortest solution where they are too few), and how much of every
        row's solution is its own: 1 where it is told from all others. Worked out once, however many workers ask."""
        with self._lock:
            key = rounds.tobytes()
            if key not in self._apart:
                batches = self.indicator[rounds]
                empty = np.zeros(batches.T.shape)
                inverse = np.asarray(linalg.pinv(batches, rtol=UPLOAD_RANK_SHARE)) if len(rounds) else empty
                self._apart[key] = inverse, np.einsum("nt,tn->n", inverse, batches)
            return self._apart[key]

    @cached_property
    def sizes(self) -> FloatArray:
        return np.array([len(rows) for rows in self.batches], dtype=np.float64)

    def gradients(self, party: str, key: str, partial: bool = False) -> Gradients:
        """One parameter's gradients in the rounds that have them whole; or in every round the cells that all rounds have,
        if `partial` or if no round has the whole.
        """
        shape = self._shape(party, key)
        size = int(np.prod(shape))
        kept = self.view.notes.get(f"kept/{party}/{key}")
        messages = [m for m in self._of(f"gradient/{party}/{key}") if m.payload.size]
        if kept is not None and not partial and any(m.payload.size == size for m in messages):
            messages = [m for m in messages if m.payload.size == size]
        if not messages:
            return Gradients(np.zeros(0, dtype=np.int64), [], np.arange(size))
        whole = kept is None or all(m.payload.size == size for m in messages)
        cells = np.arange(size) if kept is None or whole else np.asarray(kept)
        for message in messages:
            if message.payload.size not in (size, len(cells)):
                raise BadInput(
                    f"'{message.name}': expected {size:,} numbers, got {message.payload.size:,}; "
                    "these are gradients of another model"
                )
            if message.payload.ndim > 1 and message.payload.shape != shape:
                raise BadInput(
                    f"'{message.name}': expected an array of shape {shape}, got {message.payload.shape}; "
                    "these are gradients of another model"
                )
            if message.payload.dtype.kind not in "fiu":
                raise BadInput(f"'{message.name}': expected numbers, got {message.payload.dtype}")
            if not _finite(message.payload):
                raise BadInput(f"'{message.name}' of round {message.round} contains NaN or infinity")
        chosen = [
            m.payload.reshape(-1) if m.payload.size == len(cells) else m.payload.reshape(-1)[cells] for m in messages
        ]
        return Gradients(np.array([m.round for m in messages]), chosen, cells)

    def _shape(self, party: str, key: str) -> tuple[int, ...]:
        """Of a parameter, as it was sent out first."""
        known = self.parameters(party, 0)
        if key not in known:
            raise BadInput(f"this attack needs parameter '{key}' of '{party}', but the view has none")
        return known[key].shape

    @cached_property
    def checkpoints(self) -> list[int]:
        """Rounds before which the parameters are known; only the first where they never change."""
        return sorted({m.round for m in self._sent_out if not m.whole})

    @property
    def _sent_out(self) -> list[Message]:
        """The messages with one of the parameters."""
        some = next((name for name in self._messages if name.startswith("parameter/")), None)
        if some is None:
            raise BadInput("this attack needs the networks' parameters, but the view has none")
        return self._messages[some]

    @cached_property
    def _parameters(self) -> dict[tuple[str, int], dict[str, Array]]:
        """By party and round, so that no attack goes through all messages in every step."""
        found: dict[tuple[str, int], dict[str, Array]] = {}
        for name, messages in self._messages.items():
            kind, _, rest = name.partition("/")
            party, _, key = rest.rpartition("/")
            for message in messages if kind == "parameter" else ():
                found.setdefault((party, message.round), {})[key] = message.payload
        return found

    def parameters(self, party: str, checkpoint: int) -> dict[str, Array]:
        """One network's parameters as they were sent out before a round."""
        found = self._parameters.get((party, checkpoint))
        if not found:
            raise BadInput(f"this attack needs the parameters of '{party}', but the view has none")
        for key, array in self._parameters.get((party, 0), {}).items():
            if key not in found or found[key].shape != array.shape:
                raise BadInput(f"parameter '{key}' of '{party}' is missing or has another shape in round {checkpoint}")
        return found

    def module(self, party: str, checkpoint: int = 0) -> torch.nn.Module:
        """A party's network, or the top one, with the parameters of that round."""

        plan = next(
            (p for p in (*(w.plan for w in self.workers), self.top) if p is not None and p.party == party), None
        )
        if plan is None:
            raise BadInput(f"this view names no network of '{party}'")
        module = plan.tried(self.view.trust)
        sent = self.parameters(party, checkpoint)
        for key, array in sent.items():
            if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
                raise BadInput(
                    f"parameter '{key}' of '{party}' in round {checkpoint} contains NaN, infinity or non-numeric cells"
                )
        state = {key: torch.from_numpy(np.array(a)) for key, a in sent.items()}
        own = dict(module.named_parameters())
        for key, parameter in own.items():
            if key not in state or state[key].shape != parameter.shape:
                raise BadInput(f"parameter '{key}' of '{party}' does not belong to this network")
        with torch.no_grad():
            for key, parameter in own.items():
                parameter.copy_(state[key])
        return module.requires_grad_(False)

    @property
    def static(self) -> bool:
        """Whether parameters were sent out once and for all."""
        return len({m.round for m in self._sent_out}) == 1

    @cached_property
    def separated(self) -> bool:
        """Whether parameters stay as they are, and every row is told from all others by the batches that it is in."""
        return self.static and int(np.linalg.matrix_rank(self.indicator)) == self.indicator.shape[1]

    @cached_property
    def moved(self) -> float:
        """How far parameters get from the first ones, as a share of their length; infinite where nobody wrote them down."""
        if self.static:
            return 0.0
        if len(self.checkpoints) < 2:
            return np.inf
        return max(self._moved(plan.party) for plan in (*(w.plan for w in self.workers), self.top) if plan is not None)

    def _moved(self, party: str) -> float:
        first, *later = (
            np.concatenate([a.ravel() for a in self.parameters(party, c).values()]) for c in self.checkpoints
        )
        far = max(float(np.linalg.norm(one - first)) for one in later)
        return far / (float(np.linalg.norm(first)) or 1.0)


def _numbers(rows: Array, total: int, where: str) -> IntArray:
    """Row numbers of one batch, in one dimension and within the table; or one sentence."""
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise BadInput(f"{where}: expected a list of whole row numbers, got {rows.dtype} of shape {rows.shape}")
    if len(rows) == 0 or rows.min() < 0 or rows.max() >= total:
        raise BadInput(f"{where}: expected row numbers from 0 to {total - 1:,}, got others")
    return rows.astype(np.int64)


def _finite(numbers: Array) -> bool:
    """Whether all are. A sum that is finite says so at once; one may overflow where none of its numbers did."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(numbers.sum())) or bool(np.isfinite(numbers).all())


def needs_coordinator(view: View) -> None:
    """Refuse a view that saw no gradient."""
    if COORDINATOR not in view.curious:
        raise BadInput("this attack needs the view of the coordinator (the server)")
