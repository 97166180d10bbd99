"""SecureBoost: boosted trees over columns of several parties, with the gradients encrypted (weng2022, Section 2.3.2).

The active party holds label and key. For every tree it sends each row's [[g]] and [[h]]; a passive party adds them up in
the bins of its columns and sends the sums back. The active party opens them, takes the best split over all parties and asks
its owner which rows go left. Of two children only the smaller one is summed: the other has what is left of the parent's sums.

One tree with shrinkage 1 is a regression tree; `boosting=False` with `sample` below 1 a forest, whose trees all start from the
same score and are averaged. The exchange is the same.

The settings from `blinding` on are what the defences at the point `histograms` switch on (`epsilon`: of one histogram alone).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from plumbob.bundle import Array
from plumbob.crypto import plain
from plumbob.errors import BadInput, boolean, not_negative, one_of, positive, whole
from plumbob.federation import Federation, FloatArray, IntArray, Party
from plumbob.grants import LowBits
from plumbob.known_defences import KnownDefences
from plumbob.protocols.base import KEYS, TrainingProtocol, note, opened
from plumbob.protocols.shared import histogram_boosting as boosting
from plumbob.protocols.shared.conduct import Conduct
from plumbob.protocols.shared.gradient_plaintexts import FLOAT_FRACTION_BITS, HiddenCode, Layout
from plumbob.protocols.shared.hidden_codes import MagicNumbers
from plumbob.protocols.shared.histogram_boosting import (
    Binning,
    Bins,
    BoostingLoss,
    Histogram,
    HistogramModel,
    Split,
    Worth,
)
from plumbob.protocols.shared.trees import DEEPEST, LEAF
from plumbob.protocols.sums._boosting_party import PassiveParty, desensitised
from plumbob.protocols.sums._grafted_labels import graft, taught_labels
from plumbob.protocols.sums._histogram_noise import (
    check_together,
    guards_of,
    known_guards,
    noise_scales,
    room_for_noise,
)
from plumbob.transcript import COORDINATOR, Transcript

Channels = list[list[int]]  # one list of sums for each plaintext of a row


class SecureBoost(TrainingProtocol):
    """Trees of `depth` on histograms of `bins` bins. `code` is what an active party hides in its gradients, if it cheats."""

    name = "secure_boost"
    identity = (
        "SecureBoost(trees, depth, shrinkage, penalty, gamma, bins, binning, loss, key_bits, code, packed, "
        "boosting, blinding, precision, sample, epsilon)"
    )
    summary = "boosted trees on encrypted gradients; the active party decrypts sums per bin"
    cost_terms = ("1", "b^4", "t 2^h", "t h N d", "t N b^3", "t h N u b^2", "t 2^h u bins b^3")  # encrypt, add up, open
    workload = "powers"
    uses_torch = False
    presets = {
        "small": {
            "key_bits": 0,
            "trees": 2,
            "depth": 2,
            "loss": "squared",
            "code": MagicNumbers(base=2, supergroups=2, identifier_bits=200, random_bits=30),
        }
    }
    glossary = {
        "key": "a public key",
        "sums": "sums of gradients by bins of a column",
        "split": "where a tree splits",
        "left": "which rows go to the left",
        "shares": "secret shares of rows, bins and gradients",
        "weights": "the weight of each row’s leaf",
    }
    key_messages = ("key",)
    masked_messages = ("shares",)
    roles = ("active", "passive")
    tells = {"active": ("sums", "left"), "passive": ("gradients", "rows of a node", "rows to split")}
    parts = ("histograms",)
    open_to = (LowBits,)

    def __init__(
        self,
        *,
        key_bits: int = 2_048,
        trees: int = 10,
        depth: int = 3,
        shrinkage: float = 0.3,
        penalty: float = 1.0,
        gamma: float = 0.0,
        bins: int = 32,
        binning: Binning = "fate",
        loss: BoostingLoss = "logistic",
        packed: bool = True,
        precision: int | None = None,
        sample: float = 1.0,
        boosting: bool = True,
        code: HiddenCode | None = None,
        blinding: bool = False,
        epsilon: float | None = None,
        budget: float | None = None,
        shared_indicators: bool = False,
        label_epsilon: float | None = None,
        information_bound: float | None = None,
        order_epsilon: float | None = None,
    ) -> None:
        self.trees = whole("secure boost: trees", trees, 1, 10_000)
        self.depth = whole("secure boost: depth", depth, 1, DEEPEST)
        self.shrinkage = positive("secure boost: shrinkage", shrinkage)
        self.penalty, self.gamma = (
            not_negative(f"secure boost: {k}", v) for k, v in (("penalty", penalty), ("gamma", gamma))
        )
        self.bins = whole("secure boost: bins", bins, 2, 4_096)
        self.binning, self.loss = binning, loss
        if binning not in ("fate", "quantile") or loss not in ("logistic", "squared"):
            raise BadInput(
                "secure boost: expected binning 'fate' or 'quantile' and loss 'logistic' or 'squared', "
                f"got {binning!r} and {loss!r}"
            )
        one_of("secure boost: key_bits", key_bits, KEYS)
        self.key_bits, self.code = key_bits, code
        self.packed, self.boosting, self.blinding = (
            boolean(f"secure boost: {k}", v)
            for k, v in (("packed", packed), ("boosting", boosting), ("blinding", blinding))
        )
        self.precision = (
            None if precision is None else whole("secure boost: precision", precision, 8, FLOAT_FRACTION_BITS)
        )
        self.sample = positive("secure boost: sample", sample)
        if sample > 1:
            raise BadInput(f"secure boost: expected a sample (share of rows per tree) of at most 1, got {sample}")
        self.epsilon = None if epsilon is None else positive("secure boost: epsilon", epsilon)
        self.budget = None if budget is None else positive("secure boost: budget", budget)
        self.shared_indicators = boolean("secure boost: shared_indicators", shared_indicators)
        check_together(self.epsilon, self.budget, self.blinding, self.shared_indicators)
        checked = guards_of(self.shared_indicators, label_epsilon, information_bound, order_epsilon)
        self.label_epsilon, self.information_bound, self.order_epsilon = checked

    @property
    def sent(self) -> HiddenCode | None:
        return self.code

    def deviating(self, sent: Conduct) -> SecureBoost:
        if not isinstance(sent, HiddenCode):
            return super().deviating(sent)
        other = copy.copy(self)
        other.code = sent
        return other

    def ready(self, rows: int) -> None:
        self._layout(1.0, rows, plain.room(self.key_bits))

    def _layout(self, largest: float, rows: int, room: int) -> Layout:
        return Layout.fitting(
            room=room,
            precision=self.precision,
            low=self.code.bits if self.code else 0,
            guard=2 + (self.depth + 1).bit_length(),
            largest=largest,
            rows=rows,
            packed=self.packed,
        )

    def train(self, federation: Federation, others: Federation, rng: np.random.Generator) -> Transcript:
        label = boosting.target(self.loss, federation.label, len(federation.classes))
        log = opened(self.name, federation, others)
        key = plain.key_pair(self.key_bits)
        start = float(label.mean()) if self.loss == "squared" else 0.0
        largest = float(np.abs(label - start).max()) * 2 + 1 if self.loss == "squared" else 1.0
        noisy = len(label) + room_for_noise(self, federation, largest)
        layout = self._layout(largest, noisy, key.public.largest.bit_length() - 1)
        note(log, federation.active, "layout", layout.array())
        KnownDefences.of(*known_guards(self)).seal(log)
        rows_rng, code_rng, noise_rng = rng.spawn(3)  # so that a code or a defence changes no row of a sample
        passive = {
            name: self._passive(federation[name], log, federation.active, key, layout, largest, noise_rng)
            for name in federation.passive
        }
        own = Bins.of(federation[federation.active].values, self.bins, self.binning)
        run = self._run_kind()(
            self, federation, log, key, layout, own, passive, boosting.empty(self.trees, self.depth, start, self.loss)
        )
        scores, places = np.full(len(label), start), list[IntArray]()
        taught = taught_labels(self.label_epsilon, federation, label, rng)
        for tree in range(self.trees):
            g, h = boosting.gradients(self.loss, taught, scores if self.boosting else np.full(len(label), start))
            if np.abs(g).max() > largest:
                raise BadInput(
                    f"secure boost: tree {tree + 1} left gradients above {largest:.3g}; use a lower shrinkage"
                )
            leaves = run.grow(tree, g, h, self._rows(len(label), rows_rng), code_rng)
            scores += run.model.weight[tree, leaves]
            places.append(leaves)
        if self.label_epsilon:
            graft(run, places, label, taught)
        for name, array in run.model.arrays().items():
            log.seal(COORDINATOR, f"model/{name}", array)
        told = run.model.scores(others.values)
        log.seal(COORDINATOR, "other scores", told)
        named = np.rint(told[:, 0]) if self.loss == "squared" else np.argmax(told, axis=1)
        log.seal(COORDINATOR, "test accuracy", np.array([np.mean(named == others.label)]))
        return log

    @property
    def encryption(self) -> str:
        return "secret shares on three servers" if self.shared_indicators else super().encryption

    def _run_kind(self) -> type[BoostingRun]:
        from plumbob.protocols.sums._hidden_nodes import HiddenNodesRun
        from plumbob.protocols.sums._shared_indicators import SharedIndicatorRun

        hidden = HiddenNodesRun if self.information_bound else BoostingRun
        return SharedIndicatorRun if self.shared_indicators else hidden

    def _rows(self, count: int, rng: np.random.Generator) -> IntArray:
        chosen = max(2, round(self.sample * count))
        return np.arange(count) if chosen >= count else np.sort(rng.permutation(count)[:chosen])

    def _passive(
        self,
        party: Party,
        log: Transcript,
        active: str,
        key: plain.KeyPair,
        layout: Layout,
        largest: float,
        rng: np.random.Generator,
    ) -> PassiveParty:
        bins = Bins.of(party.values, self.bins, self.binning)
        log.seal(party.name, "bins", bins.places)
        for column, ends in enumerate(bins.edges):
            log.seal(party.name, f"edges/{column}", ends)
        log.send(party.name, active, "setup", 0, "bin counts", bins.counts)
        if self.key_bits and not self.shared_indicators:
            log.send(active, party.name, "setup", 0, "key", plain.as_bytes([key.public.n]))  # type: ignore[union-attr]  # NoKey has no n
        scales = noise_scales(self, len(party.columns), largest)
        bins = desensitised(bins, self.order_epsilon, rng) if self.order_epsilon else bins
        # What an attack reads of the blinded sums must come again with the seed; keys and masks come from the system.
        return PassiveParty(party, bins, key.public, layout, scales, self.blinding, rng.bytes, rng)


@dataclass
class BoostingRun:
    """The active party at work."""

    settings: SecureBoost
    federation: Federation
    log: Transcript
    key: plain.KeyPair
    layout: Layout
    own: Bins
    passive: dict[str, PassiveParty]
    model: HistogramModel

    def grow(self, tree: int, g: FloatArray, h: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """One tree on the given rows; the leaf of every row of the federation."""
        layout, active = self.layout, self.federation.active
        first, second = (boosting.whole_numbers(part, layout.precision) for part in (g, h))
        telling = self._send_gradients(tree, first, second, rows, rng)
        worth = Worth(self.settings.penalty, self.settings.gamma, layout.precision)
        shrinkage = self.settings.shrinkage if self.settings.boosting else 1 / self.settings.trees
        places = np.zeros(len(g), dtype=np.int64)
        trained = np.zeros(len(g), dtype=bool)
        trained[rows] = True
        opened_sums: dict[int, dict[str, Channels]] = {}
        kept: dict[int, dict[str, Channels]] = {0: self._sums(tree, 0, rows)}
        for node in range(2 ** (self.settings.depth + 1) - 1):
            here = places == node
            mine = np.flatnonzero(here & trained)
            if not len(mine):
                continue
            self.model.weight[tree, node] = shrinkage * worth.leaf(
                sum(first[mine].tolist()), sum(second[mine].tolist())
            )
            self.model.feature[tree, node] = LEAF
            if node not in kept or len(mine) < 2:
                continue
            sums = kept.pop(node)
            if sums:  # else it is hidden from passive parties
                opened_sums[node] = self._opened(sums)
            owner, split = self._best(worth, mine, first, second, sums if telling else {})
            if split is None:
                continue
            everyone = np.flatnonzero(here)
            left = self._ask(tree, node, owner, split, everyone)
            places[everyone] = 2 * node + 2 - left
            self._keep(tree, node, owner, split)
            if 2 * node + 1 < 2**self.settings.depth - 1:  # the children are to be split too
                kept |= self._children(tree, node, sums, places, trained)
        for name in self.passive:
            flat = [number for sums in opened_sums.values() for channel in sums[name] for number in channel]
            note(self.log, active, f"sums/{tree}/{name}", plain.as_bytes(flat))
        note(self.log, active, f"nodes/{tree}", np.array(list(opened_sums), dtype=np.int64))
        note(self.log, active, f"leaves/{tree}", np.where(trained, self._leaves(tree, places), -1))
        return places

    def _opened(self, sums: dict[str, Channels]) -> dict[str, Channels]:
        return sums  # of gradients

    def _leaves(self, tree: int, places: IntArray) -> IntArray:
        """The leaf of every row, as far as the active party is told."""
        return places

    def _plaintexts(
        self, tree: int, first: IntArray, second: IntArray, rows: IntArray, rng: np.random.Generator
    ) -> tuple[list[list[int]], bool]:
        """What stands for the gradients of these rows, for each channel; whether it tells their sums."""
        code = self.settings.code
        instead = code.instead(tree, rows, self.layout) if code else None
        codes, memory = code.codes(tree, rows, self.layout.channels, rng, first[rows]) if code else ([], {})
        for name, array in (memory | (instead[2] if instead else {})).items():
            note(self.log, self.federation.active, f"code/{tree}/{name}", array)
        first_sent, second_sent = instead[:2] if instead else (first[rows], second[rows])
        return self.layout.plaintexts(first_sent, second_sent, codes), instead is None

    def _send_gradients(
        self, tree: int, first: IntArray, second: IntArray, rows: IntArray, rng: np.random.Generator
    ) -> bool:
        """Send them, or what a cheating party sends; whether the sums of what was sent tell those of the gradients."""
        active = self.federation.active
        made, telling = self._plaintexts(tree, first, second, rows, rng)
        payloads = [self.key.public.encrypt(channel).to_array() for channel in made]
        names = ["gradients"] if self.layout.packed else ["first gradients", "second gradients"]
        for name, party in self.passive.items():
            told = self.log.send(active, name, "train", tree, "sampled rows", rows.astype(np.int32))
            got = [self.log.send(active, name, "train", tree, n, p) for n, p in zip(names, payloads, strict=True)]
            party.take(told.astype(np.int64), got)
        return telling

    def _sums(self, tree: int, node: int, rows: IntArray) -> dict[str, Channels]:
        """The opened sums of a node, which these rows are in, of every passive party."""
        active, found = self.federation.active, {}
        for name, party in self.passive.items():
            told = self.log.send(active, name, "train", tree, "rows of a node", rows.astype(np.int32))
            payload = self.log.send(name, active, "train", tree, "sums", party.sums(told.astype(np.int64)))
            numbers = self.key.decrypt(self.key.public.ciphertexts(payload))  # type: ignore[arg-type]  # key and batch are a pair
            size = len(numbers) // self.layout.channels
            found[name] = [numbers[i : i + size] for i in range(0, len(numbers), size)]
        return found

    def _children(
        self, tree: int, node: int, sums: dict[str, Channels], places: IntArray, trained: Array
    ) -> dict[int, dict[str, Channels]]:
        """The smaller child is summed, the larger one is the rest of the parent."""
        left, right = 2 * node + 1, 2 * node + 2
        count = {child: int(np.sum((places == child) & trained)) for child in (left, right)}
        small, large = (left, right) if count[left] <= count[right] else (right, left)
        summed = self._sums(tree, small, np.flatnonzero((places == small) & trained))
        rest = {
            name: [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(sums[name], summed[name], strict=True)]
            for name in sums
        }
        return {small: summed, large: rest}

    def _best(
        self, worth: Worth, rows: IntArray, first: IntArray, second: IntArray, sums: dict[str, Channels]
    ) -> tuple[str, Split | None]:
        """The owner of the best split and the split; of equal ones the active party's, then the first party's."""
        mine = [
            [
                s
                for j, count in enumerate(self.own.counts.tolist())
                for s in boosting.bin_sums(part[rows], self.own.places[rows, j], count)
            ]
            for part in (first, second)
        ]
        best, owner = worth.split(Histogram(self.own.counts, *mine)), self.federation.active
        for name, channels in sums.items():
            found = worth.split(Histogram(self.passive[name].bins.counts, *self.layout.sums(channels)))
            if found is not None and (best is None or found.gain > best.gain):
                best, owner = found, name
        return owner, best

    def _ask(self, tree: int, node: int, owner: str, split: Split, rows: IntArray) -> IntArray:
        """1 for every row that goes left, by the owner's answer."""
        active = self.federation.active
        if owner == active:
            return np.asarray(self.own.places[rows, split.column] <= split.bin, dtype=np.int64)
        told = self.log.send(active, owner, "train", tree, "split", np.array([node, split.column, split.bin]))
        asked = self.log.send(active, owner, "train", tree, "rows to split", rows.astype(np.int32))
        answer = self.passive[owner].goes_left(asked.astype(np.int64), int(told[1]), int(told[2]))
        left = self.log.send(owner, active, "train", tree, "left", answer)
        return np.asarray(np.unpackbits(left, count=len(rows)), dtype=np.int64)

    def _keep(self, tree: int, node: int, owner: str, split: Split) -> None:
        before = sum(
            len(p.columns) for p in self.federation.parties[: [p.name for p in self.federation.parties].index(owner)]
        )
        bins = self.own if owner == self.federation.active else self.passive[owner].bins
        self.model.feature[tree, node] = before + split.column
        self.model.bin[tree, node] = split.bin
        self.model.threshold[tree, node] = bins.edges[split.column][split.bin]
        self.model.weight[tree, node] = 0.0
