"""Labels of split networks and of a recorded loop, by a passive party (P26), and published attacks beside ours (P27)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumbob.attacks import attack_named
from plumbob.attacks.labels._cut_gradients import batches
from plumbob.attacks.labels._two_sides import two_sides
from plumbob.attacks.labels.direction_scoring import direction_scores
from plumbob.attacks.labels.norm_scoring import norm_scores
from plumbob.data import registry
from plumbob.federation import BoolArray, Federation, FloatArray, IntArray, Table, halves, split
from plumbob.lazy_imports import nn, stats, torch
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import every
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.recorded.tap import tap
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.label_claims import LabelScore, score_labels
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript

TABLES = ("bank", "credit", "breast", "mushroom", "covertype")
KNOWN = THREATS["passive-known-labels"]
ENOUGH = 0.99
APART = 1e-4  # of its size, by which a gradient differs from that of another class
WIDTH, HIDDEN, RATE, EPOCHS, BATCH = 16, 32, 0.01, 10, 128  # of the loop that is recorded
PUBLISHED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("norm_scoring", {}),
    ("direction_scoring", {}),
    ("model_completion", {}),
    ("model_completion", {"weight": 1.0}),
)


@dataclass(frozen=True)
class Size:
    """How much is run: rows of a table at most, half of which are trained on, and trials."""

    rows: int
    trials: int
    tables: tuple[str, ...]
    steps: int  # of model completion


SIZES: dict[Scale, Size] = {
    "smoke": Size(400, 1, ("breast",), 60),
    "paper": Size(4_000, 1, TABLES, 5 * 1_024),
}


def sample(name: str, rows: int, rng: np.random.Generator) -> Table:
    """So many rows of a table, drawn at random, or all of them."""
    table = registry.load(name)
    label = labelled(table)
    picked = np.sort(rng.permutation(len(label))[:rows])
    return replace(table, values=table.values[picked], label=label[picked])


def labelled(table: Table) -> IntArray:
    assert table.label is not None
    return table.label


def dealt(table: Table, passive: int, rng: np.random.Generator) -> Federation:
    """Half of the columns at the active party, the others among so many passive ones."""
    names = [table.columns[i].name for i in rng.permutation(len(table.columns))]
    half = len(names) // 2
    owners = {"active": names[:half]} | {f"p{k + 1}": names[half + k :: passive] for k in range(passive)}
    return split(table, owners, "active")


def network(table: Table, passive: int, rng: np.random.Generator) -> Transcript:
    """A split network with its default settings, trained on half of the rows."""
    federation = dealt(table, passive, rng)
    train, others = halves(federation.label, rng)
    return SplitNetwork().train(federation.rows(train), federation.rows(others), rng)


def loop(table: Table, rng: np.random.Generator) -> tuple[Transcript, float]:
    """A user's own loop under the tap; and the share of labels that an oracle reads which is given the model in every round."""
    columns = rng.permutation(table.values.shape[1])
    half = len(columns) // 2
    everyone = labelled(table)
    rows = np.sort(rng.permutation(len(everyone))[: len(everyone) // 2])
    mine, theirs = (table.values[np.ix_(rows, part)] for part in (columns[:half], columns[half:]))
    label = everyone[rows]
    torch.manual_seed(int(rng.integers(2**31)))
    bottom = nn.Linear(theirs.shape[1], WIDTH)
    top = nn.Sequential(
        nn.Linear(mine.shape[1] + WIDTH, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, len(table.classes)),
    )
    optimiser = torch.optim.Adam([*bottom.parameters(), *top.parameters()], lr=RATE)
    inputs, own, truth = (torch.tensor(part, dtype=torch.float32) for part in (theirs, mine, label))
    told = np.zeros(len(label), dtype=np.bool_)
    with tap(active="active", passive={"p1": bottom}, columns={"active": mine, "p1": theirs}, label=label) as recorded:
        for _ in range(EPOCHS):
            for picked in np.array_split(rng.permutation(len(label)), max(1, len(label) // BATCH)):
                sent = bottom(inputs[picked])
                logits = top(torch.cat([own[picked], sent], dim=1))
                seen = oracle(top, own[picked], sent.detach(), label[picked])
                loss = nn.functional.cross_entropy(logits, truth[picked].long())
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                optimiser.step()
                told[picked] |= seen
        recorded.predict()
        with torch.no_grad():
            bottom(inputs)
    return recorded.transcript, float(told.mean())


def oracle(top: torch.nn.Module, own: torch.Tensor, sent: torch.Tensor, label: IntArray) -> BoolArray:
    """Of which rows the gradient at the cut is that of the true class and of no other, by the top model as it is."""
    inputs = sent.clone().requires_grad_()
    logits = top(torch.cat([own, inputs], dim=1))
    classes = logits.shape[1]
    slopes = [torch.autograd.grad(logits[:, c].sum(), inputs, retain_graph=True)[0].numpy() for c in range(classes)]
    chances = torch.softmax(logits.detach(), dim=1).numpy()
    possible = np.stack(
        [np.einsum("ic,icw->iw", chances - np.eye(classes)[c], np.stack(slopes, axis=1)) for c in range(classes)],
        axis=1,
    )
    every_row = np.arange(len(label))
    true = possible[every_row, label]
    sizes = np.maximum(1e-30, np.linalg.norm(true, axis=1))
    apart = np.linalg.norm(possible - true[:, None], axis=2) / sizes[:, None]
    apart[every_row, label] = np.inf
    return np.asarray(apart.min(axis=1) > APART)


def judged(name: str, settings: dict[str, Any], view: View, log: Transcript) -> tuple[LabelScore | None, float]:
    """An attack's guess against the truth, and its seconds of processor time."""
    started = time.process_time()
    guess = attack_named(name, **settings).run(view, np.random.default_rng(0))
    seconds = time.process_time() - started
    return score_labels(guess, truth_of(log, view), view), seconds


def scenes(name: str, size: Size, seed: int) -> Iterator[tuple[str, list[tuple[Transcript, float | None]]]]:
    """A table's federations, each with all its trials; of the recorded loop also what the oracle reads."""
    makers: dict[str, Callable[[Table, np.random.Generator], tuple[Transcript, float | None]]] = {
        "split network, 2 passive": lambda table, rng: (network(table, 2, rng), None),
        "split network, 5 passive": lambda table, rng: (network(table, 5, rng), None),
        "recorded loop": loop,
    }
    for scene, maker in makers.items():
        rngs = [np.random.default_rng([seed, trial]) for trial in range(size.trials)]
        yield scene, [maker(sample(name, size.rows, rng), rng) for rng in rngs]


def labels(scale: Scale, seed: int) -> CheckResult:
    """Share of labels that our attack reads, and its gain over own columns with the same known labels."""
    size = SIZES[scale]
    measured: dict[str, Any] = {}
    read: dict[str, list[float]] = {}
    answers: list[bool | None] = []
    for name in size.tables:
        for scene, trials in scenes(name, size, seed):
            scores = [judged("label_directions", {}, cut(log, KNOWN), log)[0] for log, _ in trials]
            told = [score for score in scores if score is not None]
            gains = [(one.accuracy - one.baseline) / max(1e-9, 1 - one.baseline) for one in told]
            shares = [one.accuracy for one in told]
            rows = len(trials[0][0].sealed("active")["label"])
            share = float(np.mean(shares))
            error = (max(1e-12, share * (1 - share)) / rows) ** 0.5 / max(1e-9, 1 - told[0].baseline)
            mean, margin = mean_and_margin(gains, error)
            oracles = [ceiling for _, ceiling in trials if ceiling is not None]
            measured[f"{name}, {scene}"] = {
                "labels": round(float(np.mean(shares)), 4),
                "without messages": round(float(np.mean([one.baseline for one in told])), 4),
                "gain": [round(mean, 4), round(mean - margin, 4), round(min(1.0, mean + margin), 4)],
                "rows": rows,
            } | ({"oracle with the model": round(float(np.mean(oracles)), 4)} if oracles else {})
            read.setdefault(name, []).append(float(np.mean(shares)))
            answers.append(mean - margin > 0)
    whole = [name for name, shares in read.items() if min(shares) >= ENOUGH]
    measured["tables with at least 99 % of the labels in all three"] = whole
    answers.append(len(whole) >= min(3, len(size.tables)))
    expected = "a gain over own columns with the same labels everywhere, and at least 99 % of the labels on three of five tables"
    return CheckResult(every(answers), measured, expected, size.trials)


def auc(scores: FloatArray, positive: IntArray) -> float:
    """The area under the curve, of whichever sign; rows without a score come last."""
    told = np.nan_to_num(scores, nan=float(np.nanmin(scores)))
    ranks = stats.rankdata(told)
    count = int(positive.sum())
    area = (ranks[positive == 1].sum() - count * (count + 1) / 2) / max(1, count * (len(positive) - count))
    return float(max(area, 1 - area))


def scored(name: str, view: View) -> FloatArray | None:
    """The scores by which an attack orders rows, of two classes."""
    if name == "norm_scoring":
        return norm_scores(view)
    if name == "direction_scoring":
        found = direction_scores(view)
        return found[:, 1] - found[:, 0]
    return two_sides(batches(view), len(view.own)).margin if name == "label_directions" else None


def _mean(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return round(float(np.mean(told)), 4) if told else None


def beside(scale: Scale, seed: int) -> CheckResult:
    """Published attacks and ours on the same messages: share of labels, AUC where rows are scored, seconds."""
    size = SIZES[scale]
    measured: dict[str, Any] = {}
    answers: list[bool | None] = []
    for table in size.tables:
        rows: dict[str, list[tuple[float, float | None, float]]] = {}
        usual: list[float] = []
        for trial in range(size.trials):
            rng = np.random.default_rng([seed, trial])
            log = network(sample(table, size.rows, rng), 1, rng)
            view, label = cut(log, KNOWN), log.sealed("active")["label"]
            for name, chosen in (("label_directions", {}), *PUBLISHED):
                settings = chosen | ({"steps": size.steps} if name == "model_completion" else {})
                score, seconds = judged(name, settings, view, log)
                if score is None:
                    continue
                order = scored(name, view) if len(view.classes) == 2 else None
                area = None if order is None else auc(order, label)
                title = name + (" (weight 1)" if chosen else "")
                rows.setdefault(title, []).append((score.accuracy, area, seconds))
                usual.append(score.baseline)
        measured[table] = {"without messages": round(float(np.mean(usual)), 4)} | {
            name: {
                "labels": round(float(np.mean([one[0] for one in found])), 4),
                "AUC": _mean([one[1] for one in found]),
                "seconds": round(float(np.mean([one[2] for one in found])), 2),
            }
            for name, found in rows.items()
        }
        best = max(
            float(np.mean([one[0] for one in found])) for name, found in rows.items() if name != "label_directions"
        )
        answers.append(float(np.mean([one[0] for one in rows["label_directions"]])) >= best)
    expected = "on every table ours reads at least as many labels as each published attack"
    return CheckResult(every(answers), measured, expected, size.trials)


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P26", "labels at the cut", "a passive party of a split network reads the labels", labels),
    Claim(
        "plumbob", "P27", "labels at the cut", "label directions beside published attacks, on the same messages", beside
    ),
)
