"""ye2022, attacks: rotations that cannot be seen, exact cover, and binary columns found (Y1-Y5, Y8, Y9)."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np

from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.attacks.embeddings._meet_in_the_middle import search
from plumbob.attacks.embeddings.binary_columns import BinaryColumns, exact
from plumbob.attacks.embeddings.leverage_sampling import LeverageSampling
from plumbob.attacks.embeddings.linear_equations import LinearEquations, solve
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences.embeddings.rotation import random_orthogonal
from plumbob.federation import Column, Federation, FloatArray, Party
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Part, Scale
from plumbob.papers.evidence import every, falls
from plumbob.papers.ye2022.federations import (
    SIZES,
    TABLE_1,
    agreement_either_way,
    binaries,
    by_table,
    combined,
    federation,
    found,
    trained,
    usual,
    with_sums,
)
from plumbob.papers.ye2022.rotated import Rotated
from plumbob.protocols.embeddings.split_network import Optimizer, SplitNetwork
from plumbob.scoring.score import sum_of
from plumbob.transcript import Transcript

SAME_ERROR = 1e-9
SIGMAS = (0.1, 0.3, 0.5)
SAMPLED = 5_000  # rows of the embeddings that Algorithm 2 is given


def names(scale: Scale) -> tuple[str, ...]:
    """All five tables at the paper's size; two small ones for a quick look."""
    return tuple(TABLE_1) if scale == "paper" else ("bank", "nursery")


def rotations(scale: Scale, seed: int) -> CheckResult:
    """Y1: the same training with (W, X) and with (W U', X U'), all numbers of 64 bits."""
    target, others = federation("bank", 2_000, seed)
    columns = len(target["passive"].columns)
    turn = random_orthogonal(columns, generator(seed, "turn"))
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    rates: dict[Optimizer, float] = {"sgd": 0.1, "momentum": 0.1, "rmsprop": 1e-3, "adam": 1e-3}
    for optimizer, rate in rates.items():
        seen = []
        for by in (np.eye(columns), turn):
            protocol = SplitNetwork(optimizer=optimizer, learning_rate=rate, epochs=5, double=True)
            log = protocol.guarded(Rotated(by)).train(target, others, generator(seed, "Y1"))
            seen.append(np.concatenate([m.payload for m in log.messages if m.name in ("outputs", "embeddings")]))
        off = float(np.abs(seen[0] - seen[1]).max() / np.abs(seen[0]).max())
        measured[f"{optimizer}, largest difference of any message"] = off
        answers.append(off < SAME_ERROR)
    why = (
        "Remark 2 extends Theorem 1 to RMSprop and Adam, because an update depends on past gradients only. These two divide "
        "every cell of a gradient by a size of its own, and a rotation mixes cells: the rotated training sends other messages. "
        "So the theorem holds for SGD and momentum, and with RMSprop or Adam the axes of the columns do show, if only a little"
    )
    expected = "no message differs, for SGD, momentum, RMSprop and Adam"
    return CheckResult(every(answers), measured, expected, 1, why)


def cover_matrix(elements: int, sets: list[frozenset[int]]) -> FloatArray:
    """The matrix A of Theorem 2: a binary column in its span is an exact cover."""
    m = len(sets)
    below = np.array([[float(u in s) for s in sets] + [-1.0] for u in range(elements)])
    last = np.array([[2.0 * len(s) for s in sets] + [-2.0 * elements]])
    return np.vstack([np.eye(m + 1), below.reshape(elements, m + 1), last])


def covers(elements: int, sets: list[frozenset[int]]) -> bool:
    """Whether some of the sets hold every element once, by trying all."""
    return any(
        sum(len(s) for s in some) == elements and len(frozenset().union(*some)) == elements
        for size in range(1, len(sets) + 1)
        for some in combinations(sets, size)
    )


def exact_cover(scale: Scale, seed: int) -> CheckResult:
    """Y2: random instances, each answered by the attack and by trying all sub-collections."""
    rng = generator(seed, "Y2")
    counted = {True: 0, False: 0}
    wrong = 0
    for _ in range(60 if scale == "smoke" else 400):
        elements, m = int(rng.integers(3, 8)), int(rng.integers(3, 9))
        sets = list({frozenset(rng.permutation(elements)[: rng.integers(1, 4)].tolist()): 0 for _ in range(m)})
        truth = covers(elements, sets)
        columns, complete = exact(EmbeddingSpan.of(cover_matrix(elements, sets), affine=False), rng)
        counted[truth] += 1
        wrong += bool(columns.shape[1]) != truth or not complete
    measured: dict[str, object] = {"instances with a cover": counted[True], "without": counted[False], "wrong": wrong}
    why = "NP-hard in general but fast here: hardness concerns the worst case, which tables of people are not"
    return CheckResult(wrong == 0 and min(counted.values()) > 0, measured, "every instance answered right", 1, why)


def _recovered(name: str, scale: Scale, seed: int) -> Part:
    """One table of Y3."""
    size, case = SIZES[scale], TABLE_1[name]
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for trial in range(size.trials):
        log = trained(name, scale, seed + trial)
        true = binaries(log)
        told = []
        for attack in (LinearEquations(), BinaryColumns(affine=False)):
            started = time.perf_counter()
            guess = found(log, attack, seed + trial)
            seconds = time.perf_counter() - started
            assert guess.vectors is not None
            same = agreement_either_way(guess.vectors, true) == 1
            other = guess.vectors[:, ~same.any(axis=1)]
            foreign = int((~combined(other, true)).sum())
            told.append(
                f"{attack.name} {guess.vectors.shape[1]} vectors: {int(same.any(axis=0).sum())} of {true.shape[1]} columns, "
                f"{other.shape[1] - foreign} sums or differences of them, {foreign} other; {seconds:.2f} s"
            )
            answers += [bool(same.any(axis=0).all()), foreign == 0, guess.vectors.shape[1] == case.vectors]
        measured[f"{name}, trial {trial + 1}"] = "; ".join(told)
        if trial == 0:
            measured[f"{name}, certificate"] = guess.certificate
    return Part(measured, answers)


def binary_columns(scale: Scale, seed: int) -> CheckResult:
    """Y3: Algorithm 1 and ours on the embeddings of all rows."""
    sets = names(scale) if scale == "paper" else (*names(scale), "mushroom")
    done = by_table(_recovered, sets, scale, seed)
    expected = "exactly bank 1, credit 1, mushroom 5, nursery 1, covertype 15 = 2^4 - 1 (all sums of 4 codes)"
    why = (
        "every column is found and nothing that is not made of them. Mushroom has more vectors than the paper says: where one "
        "column implies another (the rarer gill attachment goes with one size, spacing and stalk shape only) their difference is "
        "binary too, and no attacker can tell it from a column"
    )
    return CheckResult(every(done.answers), done.measured, expected, SIZES[scale].trials, why)


def _table(rows: int, columns: int, rng: np.random.Generator) -> FloatArray:
    """Made-up numbers with one binary column, as the embeddings of a random network."""
    x = rng.random((rows, columns))
    x[:, 0] = x[:, 0] < 0.4
    return np.asarray(x @ rng.standard_normal((columns, columns)))


def run_time(scale: Scale, seed: int) -> CheckResult:
    """Y4: seconds of Algorithm 1 by dimension and rows, and of ours at dimensions it cannot reach."""
    dims, counts = ((10, 12, 14, 16, 18), (5_000, 10_000)) if scale == "paper" else ((12, 14, 16), (1_000, 2_000))
    rng = generator(seed, "Y4")
    seconds: dict[tuple[int, int], float] = {}
    for rows in counts:
        for d in dims:
            a = _table(rows, d, rng)
            started = time.process_time()
            assert solve(a).shape[1] == 1
            seconds[rows, d] = time.process_time() - started
    slope = float(np.polyfit(dims[1:], np.log2([seconds[counts[1], d] / d for d in dims[1:]]), 1)[0])
    ratio = float(np.median([seconds[counts[1], d] / seconds[counts[0], d] for d in dims[1:]]))
    measured: dict[str, object] = {
        f"Algorithm 1, n = {rows:,}": [round(seconds[rows, d], 3) for d in dims] for rows in counts
    }
    measured |= {"d": list(dims), "slope of log2(seconds / d) in d": slope, "seconds, twice the rows over once": ratio}
    curves = [Curve(f"Algorithm 1, n = {r:,}", list(map(float, dims)), [seconds[r, d] for d in dims]) for r in counts]
    ours = (20, 28, 36, 40) if scale == "paper" else (20,)
    took = []
    for d in ours:
        started = time.process_time()
        span = EmbeddingSpan.of(_table(5_000, d, rng))
        assert search(span).columns.shape[1] == 1
        took.append(time.process_time() - started)
    measured["ours, n = 5,000"] = {str(d): round(value, 3) for d, value in zip(ours, took, strict=True)}
    curves.append(Curve("ours, n = 5,000", list(map(float, ours)), took))
    figure = (ClaimFigure("run time", "dimension d", "processor seconds", curves),) if scale == "paper" else ()
    expected = "time grows as 2^d d and as n"
    why = "ours meets in the middle: its lists have 2^(d/2) entries"
    answers = [0.7 < slope < 1.3, 1.5 < ratio < 2.6 if scale == "paper" else None]  # too short to time when small
    return CheckResult(every(answers), measured, expected, 1, why, figure)


def _accuracy(log: Transcript, attack: BinaryColumns | LeverageSampling, seed: int) -> tuple[float, float]:
    """How far the first column agrees with the true one it is nearest to, and how far the best of those found."""
    guess = found(log, attack, seed)
    assert guess.vectors is not None
    same = agreement_either_way(guess.vectors, with_sums(binaries(log)))
    return float(same[0].max()), float(same.max())


def _noisy(name: str, scale: Scale, seed: int) -> Part:
    """One table of Y5."""
    measured: dict[str, object] = {}
    by_sigma: dict[str, list[list[float]]] = {"Algorithm 2": [], "ours": [], "ours, best of those offered": []}
    for sigma in SIGMAS:
        runs = []
        for trial in range(SIZES[scale].trials):
            log = thinned(trained(name, scale, seed + trial, "gaussian_masking", sigma=sigma))
            theirs, _ = _accuracy(
                log, LeverageSampling.preset("sharp", runs=20 if scale == "paper" else 5, adaptive=True), seed + trial
            )
            first, best = _accuracy(log, BinaryColumns(), seed + trial)
            runs.append((theirs, first, best))
        for key, values in zip(by_sigma, zip(*runs, strict=True), strict=True):
            by_sigma[key].append(list(values))
    for key, lists in by_sigma.items():
        measured[f"{name}, {key}"] = [round(float(np.mean(values)), 4) for values in lists]
    measured[f"{name}, guessing the usual value"] = round(float(usual(with_sums(binaries(log))).max()), 4)
    curves = [
        Curve(f"{name}, {key}", list(SIGMAS), [float(np.mean(v)) for v in lists]) for key, lists in by_sigma.items()
    ]
    theirs_all = by_sigma["Algorithm 2"]
    answers: list[bool | None] = [float(np.mean(theirs_all[-1])) <= float(np.mean(theirs_all[0]))]
    better = [float(np.mean(o)) >= float(np.mean(t)) for o, t in zip(by_sigma["ours"], theirs_all, strict=True)]
    measured[f"{name}, ours at least as good at each sigma"] = better
    return Part(measured, answers, curves)


def thinned(log: Transcript, most: int = SAMPLED) -> Transcript:
    """The same with at most that many rows, for attacks that read all rows of 2^r candidates."""
    rows = len(log.sealed(log.active)["columns"])
    if rows <= most:
        return log
    kept = np.sort(np.random.default_rng(0).permutation(rows)[:most])
    made = Transcript(log.protocol, log.active, log.parties, log.features, log.classes)
    passive = [party for party in log.parties if party != log.active]
    for party in log.parties:
        made.seal(party, "columns", log.sealed(party)["columns"][kept])
    for party in passive:
        parts = [m.payload for m in log.messages if m.name == "embeddings" and m.sender == party]
        made.send(party, log.active, "predict", 0, "embeddings", np.concatenate(parts)[kept])
    for key, array in log.sealed(log.active).items():
        if key.startswith("notes/"):
            made.seal(log.active, key, array[kept])
    for key, array in log.sealed("coordinator").items():
        made.seal("coordinator", key, array)
    return made


def noise(scale: Scale, seed: int) -> CheckResult:
    """Y5: accuracy of Algorithm 2 and of ours against Gaussian masking."""
    sets = names(scale) if scale == "paper" else ("nursery",)
    done = by_table(_noisy, sets, scale, seed)
    measured = done.measured | {"sigma": list(SIGMAS), "rows for the attacks, at most": SAMPLED}
    answers, curves = done.answers, done.curves
    points = [(x, y) for c in curves if "Algorithm 2" in c.name for x, y in zip(c.x, c.y, strict=True)]
    answers.append(falls([x for x, _ in points], [y for _, y in points]))
    figure = (ClaimFigure("noise", "sigma", "share of rows that agree", curves),) if scale == "paper" else ()
    expected = "accuracy of Algorithm 2 falls as sigma grows from 0.1 to 0.5"
    why = (
        "agreement is with the nearest true column or sum, 0 and 1 swapped if that is better, so half is nothing. Algorithm 2 as "
        "printed returns e = (1, 0, ..., 0) whenever there is noise, because that is within 1 of any span; here distances are "
        "taken relative to the column's variance"
    )
    return CheckResult(every(answers), measured, expected, SIZES[scale].trials, why, figure)


def deal(columns: FloatArray, labels: tuple[str, ...], seed: int, parties: int = 1) -> tuple[Federation, Federation]:
    """Made-up columns for passive parties, with nursery's label and an active party that has one column of its own."""
    table = registry.load("nursery")
    assert table.label is not None
    rng = generator(seed, "deal")
    order = rng.permutation(len(columns))
    kinds = [Column(label) for label in labels]
    shares = np.array_split(np.arange(columns.shape[1]), parties)
    made = [
        Party(f"passive {i + 1}", tuple(kinds[j] for j in share), columns[:, share]) for i, share in enumerate(shares)
    ]
    active = Party("active", table.columns[:1], table.values[: len(columns), :1])
    whole = Federation((active, *made), "active", table.label[: len(columns)], table.classes)
    return whole.rows(order[: int(0.9 * len(order))]), whole.rows(order[int(0.9 * len(order)) :])


def _coded(values: FloatArray) -> FloatArray:
    """Codes of every column's categories, side by side, the last of each left out."""
    return (
        np.column_stack([values[:, j] == v for j in range(values.shape[1]) for v in np.unique(values[:, j])[:-1]]) * 1.0
    )


def _made_of(vector: FloatArray, columns: FloatArray) -> bool:
    """Whether a vector or its opposite is a sum of columns that do not overlap, or a multiple of one of them."""
    sums = sum_of(columns, vector) is not None or sum_of(columns, 1 - vector) is not None
    return sums or any(np.linalg.matrix_rank(np.column_stack([vector, column])) == 1 for column in columns.T)


def variants(scale: Scale, seed: int) -> CheckResult:
    """Y8: biases, other pairs of values, codes of categories, columns of several known values."""
    rows = 1_500 if scale == "smoke" else 12_960
    table = registry.load("nursery").values[:, 1:]  # the first column is the active party's
    rng = generator(seed, "Y8")
    table = table[rng.permutation(len(table))[:rows]]
    binary = [j for j in range(table.shape[1]) if len(np.unique(table[:, j])) == 2]
    shifted = table.copy()
    shifted[:, binary] = 0.7 - 1.3 * shifted[:, binary]
    worlds = {
        "a bias": (table, True, BinaryColumns()),
        "values 0.7 and -0.6 in place of 0 and 1, and a bias": (shifted, True, BinaryColumns()),
        "codes of all categories": (_coded(table), False, BinaryColumns()),
        "columns of three known values": (table, False, BinaryColumns(values=(0.0, 0.5, 1.0))),
    }
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for told, (columns, bias, attack) in worlds.items():
        labels = tuple(f"column {j}" for j in range(columns.shape[1]))
        protocol = SplitNetwork(hidden=(60, 30), epochs=3, bias=bias, double=False)
        log = protocol.train(*deal(columns, labels, seed), generator(seed, told))
        vectors = found(log, attack, seed).vectors
        assert vectors is not None
        real = log.sealed("passive 1")["columns"]
        if attack.values == (0.0, 1.0):
            two = real[:, [len(np.unique(real[:, j])) == 2 for j in range(real.shape[1])]]
            two = np.round((two - two.min(axis=0)) / np.ptp(two, axis=0))
            same = agreement_either_way(vectors, two) == 1
        else:
            two = real[:, [set(np.unique(real[:, j])) == {0.0, 0.5, 1.0} for j in range(real.shape[1])]]
            same = np.array([[bool((v == t).all()) for t in two.T] for v in vectors.T]).reshape(-1, two.shape[1])
        other = vectors[:, ~same.any(axis=1)]
        measured[told] = (
            f"{int(same.any(axis=0).sum())} of {two.shape[1]} columns exact, {other.shape[1]} other vectors, of which "
            f"{int(sum(_made_of(v, real) for v in other.T))} are sums of columns, their opposites or multiples of one"
        )
        answers += [bool(same.any(axis=0).all()) and two.shape[1] > 0, all(_made_of(v, real) for v in other.T)]
    why = "codes of one category have sums that are binary, and half of a column of 0 and 1 takes known values, too"
    return CheckResult(every(answers), measured, "every such column found exactly", 1, why)


def parties(scale: Scale, seed: int) -> CheckResult:
    """Y9: three passive parties, each by itself and behind secure aggregation."""
    rows = 1_500 if scale == "smoke" else 12_960
    table = registry.load("nursery").values[:, 1:]
    table = table[generator(seed, "Y9").permutation(len(table))[:rows]]
    values = np.column_stack([table, generator(seed, "more").random((len(table), 9)) < np.linspace(0.1, 0.9, 9)])
    labels = tuple(f"column {j}" for j in range(values.shape[1]))
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for aggregation in ("none", "masked"):
        protocol = SplitNetwork(hidden=(60, 30), epochs=3, aggregation=aggregation)
        log = protocol.train(*deal(values, labels, seed, 3), generator(seed, aggregation))
        guess = found(log, BinaryColumns(), seed)
        assert guess.vectors is not None
        true = binaries(log)
        same = agreement_either_way(guess.vectors, true) == 1
        measured[f"aggregation: {aggregation}"] = (
            f"{int(same.any(axis=0).sum())} of {true.shape[1]} columns exact, {int((~same.any(axis=1)).sum())} other; "
            f"{guess.certificate}"
        )
        answers += [bool(same.any(axis=0).all()), bool(same.any(axis=1).all())]
    return CheckResult(
        every(answers), measured, "every binary column found exactly, from each party and from the sum", 1
    )


CLAIMS = (
    Claim("ye2022", "Y1", "Theorem 1", "a rotation of the columns is undetectable, whatever the optimiser", rotations),
    Claim("ye2022", "Y2", "Theorem 2", "exact cover reduces to finding a binary column", exact_cover),
    Claim("ye2022", "Y3", "Section VI-C", "every binary column is recovered", binary_columns),
    Claim("ye2022", "Y4", "Figure 4", "run time grows with n and with 2^d", run_time),
    Claim("ye2022", "Y5", "Figure 5b", "noise lowers the accuracy of Algorithm 2", noise),
    Claim("ye2022", "Y8", "Section VII", "biases, other values, codes and several values do not protect", variants),
    Claim("ye2022", "Y9", "Section VII", "several parties and secure aggregation do not protect", parties),
)
