"""The rounds of training alone give two-valued columns away: one batch, every batch, all rows (P22; ye2022, III-B)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.attacks.embeddings._training_rounds import Batch, batches
from plumbob.attacks.embeddings.binary_columns import BinaryColumns
from plumbob.attacks.embeddings.linear_equations import LinearEquations, independent_columns, solve
from plumbob.auditing.running.run import generator
from plumbob.federation import FloatArray
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.papers.ye2022.federations import (
    TABLE_1,
    THREAT,
    agreement_either_way,
    attack_accuracy,
    binaries,
    combined,
    federation,
)
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.threats import View, cut

EPOCHS = 3
TABLES: dict[Scale, dict[str, int]] = {
    "smoke": {"nursery": 1_500},
    "paper": dict.fromkeys(TABLE_1, 10**7) | {"covertype": 29_051},  # rows at most
}
MOST_BATCHES = 40  # of the first epoch, on which Algorithm 1 is run one by one


def alone(view: View) -> View:
    """The same without prediction, and without what the active party worked out itself."""
    return replace(view, messages=tuple(m for m in view.messages if m.phase == "train"), notes={})


def _batch(one: Batch, true: FloatArray) -> tuple[bool, int]:
    """Whether Algorithm 1 finds every true column in one batch, and how many vectors are none of them nor their sums."""
    rank = EmbeddingSpan.of(one.cells, affine=False).rank
    vectors = solve(independent_columns(one.cells, rank))
    here = true[one.rows]
    there = here[:, here.any(axis=0)]  # a column that is 0 in all of the batch is in no vector
    same = attack_accuracy(vectors, there) == 1
    other = vectors[:, ~same.any(axis=1)]
    return bool(same.any(axis=0).all()), int((~combined(other, there)).sum())


def _table(name: str, scale: Scale, seed: int) -> Part:
    """One table."""
    target, others = federation(name, TABLES[scale][name], seed)
    protocol = SplitNetwork(hidden=TABLE_1[name].hidden, epochs=EPOCHS, archive_mb=4_000)
    log = protocol.train(target, others, generator(seed, "training", name))
    view, true = alone(cut(log, THREAT)), binaries(log)
    (some,) = batches(view).values()
    first = [one for one in some[: -(-len(target) // protocol.batch_size)] if len(one.rows) == protocol.batch_size]
    found = [_batch(one, true) for one in first[:MOST_BATCHES]]
    measured: dict[str, object] = {
        "rows": len(target),
        "columns": true.shape[1],
        "rows of a batch": protocol.batch_size,
        "batches tried": len(found),
        "batches with all columns": sum(whole for whole, _ in found),
        "other vectors": sum(other for _, other in found),
    }
    answers: list[bool | None] = [found[0][0]]
    for attack in (LinearEquations(), BinaryColumns(affine=False)):
        guess = attack.run(view, generator(seed, "P22", attack))
        assert guess.vectors is not None
        exact = int((agreement_either_way(guess.vectors, true) == 1).any(axis=0).sum())
        measured[attack.name] = {"exact": exact, "vectors": guess.vectors.shape[1], "certificate": guess.certificate}
        answers.append(exact == true.shape[1])
    return Part({name: measured}, answers)


def rounds_alone(scale: Scale, seed: int) -> CheckResult:
    """P22: no prediction, no defence, three epochs."""
    parts = [part(name, partial(_table, name, scale, seed)) for name in TABLES[scale]]
    measured = {"epochs": EPOCHS} | {key: value for one in parts for key, value in one.measured.items()}
    expected = "every two-valued column exactly: in the first batch of 256 its rows, in three epochs combined all rows"
    why = (
        "a batch has weights of its own, but its outputs span what its columns span. Columns of all rows are those that lie in "
        "the span of every batch of every epoch, and the batches overlap: nothing else does"
    )
    return CheckResult(every([answer for one in parts for answer in one.answers]), measured, expected, 1, why)


CLAIMS = (
    Claim(
        "plumbob", "P22", "training alone", "the rounds of training alone reveal every two-valued column", rounds_alone
    ),
)
