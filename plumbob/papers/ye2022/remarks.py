"""ye2022, what stands beside the algorithms: columns that depend on each other (Y12), biases and other values (Y13)."""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Attack
from plumbob.attacks.embeddings.leverage_sampling import LeverageSampling
from plumbob.attacks.embeddings.linear_equations import LinearEquations
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences.embeddings.masquerade import Masquerade, Masqueraded
from plumbob.federation import Federation, FloatArray
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import every
from plumbob.papers.ye2022.attacks import deal
from plumbob.papers.ye2022.federations import agreement_either_way, attack_accuracy, found
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline
from plumbob.transcript import Transcript

SEEDS = {"smoke": 1, "paper": 3}
ROWS = {"smoke": 1_500, "paper": 12_960}
OTHER = (0.7, -0.6)  # in place of 0 and 1


class Undropped(Masquerade):
    """Masquerade on all columns, whether or not they depend on each other."""

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[Masquerade]:
        return Masqueraded(self, outline.bias, drops=False)


def _values(scale: Scale, seed: int) -> FloatArray:
    table = registry.load("nursery").values
    return table[generator(seed, "rows").permutation(len(table))[: ROWS[scale]]]


def _codes(values: FloatArray) -> FloatArray:
    """All codes of finance, of two values, and of housing, of three: two complete groups."""
    by_kind = {len(np.unique(column)): column for column in values.T}
    return np.column_stack([by_kind[kinds] == v for kinds in (2, 3) for v in np.unique(by_kind[kinds])]) * 1.0


def _federation(columns: FloatArray, seed: int) -> tuple[Federation, Federation]:
    return deal(columns, tuple(f"column {j}" for j in range(columns.shape[1])), seed)


def _given_away(log: Transcript, true: FloatArray, seed: int) -> tuple[int, int, int]:
    """How many true columns Algorithm 1 finds, whether it finds the fabricated one, and how many vectors it tells."""
    vectors = found(log, LinearEquations(), seed).vectors
    assert vectors is not None
    same = attack_accuracy(vectors, true) == 1
    fake = attack_accuracy(vectors, log.sealed("passive 1")["fabricated"]) == 1
    return int(same.any(axis=0).sum()), int(fake.any()), vectors.shape[1]


def dependent(scale: Scale, seed: int) -> CheckResult:
    """Y12: masquerade on two complete groups of codes, with Remark 4 and without."""
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for told, defence in (("all columns", Undropped()), ("dependent ones dropped", Masquerade())):
        for trial in range(SEEDS[scale]):
            target, others = _federation(_codes(_values(scale, seed + trial)), seed + trial)
            protocol = SplitNetwork(hidden=(60, 30), epochs=3).guarded(defence)
            log = protocol.train(target, others, generator(seed + trial, "Y12"))
            true = log.sealed("passive 1")["columns"]
            columns, fake, vectors = _given_away(log, true, seed)
            measured[f"{told}, seed {seed + trial}"] = {
                "true columns": columns,
                "of": true.shape[1],
                "fabricated": fake,
                "vectors": vectors,
                "dropped": len(log.sealed("passive 1").get("dropped columns", ())),
            }
            safe = (columns, fake, vectors) == (0, 1, 1)
            answers.append(safe if type(defence) is Masquerade else columns > 0)
    expected = "with dependent columns dropped the fabricated one alone; without, true ones too"
    why = "codes of two categories span one dimension less than there are codes, so a rank of d - 1 keeps all of them"
    return CheckResult(every(answers), measured, expected, SEEDS[scale], why)


def differences(scale: Scale, seed: int) -> CheckResult:
    """Y13: Algorithms 1 and 2 on finance with values 0.7 and -0.6, with and without a bias, with and without differences."""
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    values = _values(scale, seed)[:, 1:]  # the first column is the active party's
    two = [j for j in range(values.shape[1]) if len(np.unique(values[:, j])) == 2]
    columns = values.copy()
    columns[:, two] = OTHER[0] + (OTHER[1] - OTHER[0]) * columns[:, two]
    for bias in (False, True):
        protocol = SplitNetwork(hidden=(60, 30), epochs=3, bias=bias)
        log = protocol.train(*_federation(columns, seed), generator(seed, "Y13"))
        true = (log.sealed("passive 1")["columns"][:, two] - OTHER[0]) / (OTHER[1] - OTHER[0])
        for told, taken in (("as they are", False), ("differences of rows", True)):
            attacks: tuple[Attack, ...] = (
                LinearEquations(differences=taken),
                LeverageSampling(runs=20 if scale == "paper" else 5, differences=taken),
            )
            here: dict[str, object] = {}
            for attack in attacks:
                vectors = found(log, attack, seed).vectors
                assert vectors is not None
                agreed = agreement_either_way(vectors, np.round(true))
                here[attack.name] = int((agreed == 1).any(axis=0).sum())
                if taken:
                    answers.append(bool((agreed == 1).any(axis=0).all()))
                if attack.name == "linear_equations":
                    here["vectors"] = vectors.shape[1]
            measured[f"{'a bias' if bias else 'no bias'}, {told}"] = here | {"of": len(two)}
    expected = "with differences of rows both algorithms find the column, whatever its values and with a bias"
    why = (
        "which of the two values is which stays open. Behind a bias the constant lies in the span, so Algorithm 1 finds the "
        "column without differences too, with its opposite and the constant, in one dimension more; other values without a bias "
        "hide it"
    )
    return CheckResult(every(answers), measured, expected, 1, why)


CLAIMS = (
    Claim("ye2022", "Y12", "Remark 4", "masquerade needs columns that do not depend on each other", dependent),
    Claim("ye2022", "Y13", "Section VII", "differences of rows undo biases and other values", differences),
)
