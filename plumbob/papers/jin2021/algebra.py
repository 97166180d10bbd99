"""jin2021, what its algebra says: Theorems 1 and 2, and the attack that solves instead of searching (C4, C7, C12, C13)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from plumbob.attacks.gradients._row_gradients import Separation, layer_inputs
from plumbob.attacks.gradients._worker_uploads import Uploads
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import FloatArray, split_at_random
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import every
from plumbob.papers.jin2021.federations import SOLVED_SIZES, JinSize, attacked, sets, trained
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut

PAPER_BY_BATCH = {
    "cifar10": {10: 30.83, 20: 35.70, 40: 31.83, 80: 36.87, 100: 38.94},
    "mnist": {10: 32.60, 20: 39.00, 40: 43.15, 80: 47.05, 100: 47.50},
    "linnaeus5": {10: 28.00, 20: 30.53, 40: 33.22, 80: 30.43, 100: 29.18},
}
EXACT_SHARE = 1e-5


def hessian(rows: int, batch: int) -> FloatArray:
    """Of F1 in one column of V: 2 E[s s'], the mean taken over every batch there is."""
    every_batch = np.array([[float(n in chosen) for n in range(rows)] for chosen in combinations(range(rows), batch)])
    return np.asarray(2 * every_batch.T @ every_batch / len(every_batch))


def eigenvalues(scale: Scale, seed: int) -> CheckResult:
    """C1: Theorem 1, by enumeration."""
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for rows in (4, 7, 10):
        off = []
        for batch in range(1, rows):
            found = np.linalg.eigvalsh(hessian(rows, batch))
            same = 2 * batch / rows if batch == 1 else _factor(rows, batch) * ((rows - 1) / (batch - 1) - 1)
            largest = same if batch == 1 else same + _factor(rows, batch) * rows
            off.append(float(np.abs(found - np.array([same] * (rows - 1) + [largest])).max()))
        last = np.linalg.eigvalsh(hessian(rows, rows))
        measured[f"N={rows}, largest difference over K=1..{rows - 1}"] = max(off)
        measured[f"N={rows}, rank at K=N"] = int((last > 1e-9).sum())
        answers += [max(off) < 1e-12, int((last > 1e-9).sum()) == 1]
    why = (
        "Equation 26 omits the factor 2K(K-1)/(N(N-1)) of Equation 25; with it every eigenvalue is as printed. With few "
        "batches S itself decides, not its mean: rows are told apart as soon as S has rank N, so by N batches"
    )
    expected = "eigenvalues of Equation 26 times the factor of Equation 25 for K < N, rank 1 at K = N"
    return CheckResult(every(answers), measured, expected, 1, why)


def _factor(rows: int, batch: int) -> float:
    return 2 * batch * (batch - 1) / (rows * (rows - 1))


def identified(scale: Scale, seed: int) -> CheckResult:
    """C2: Theorem 2 asks for N <= d2; a batch's rows suffice."""
    table = registry.load("breast")
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for rows, width, batch in ((30, 64, 10), (200, 64, 40), (200, 16, 40)):
        federation = split_at_random(table, 15, generator(seed, "columns"))
        protocol = SplitTraining(network="mlp", width=width, batch_size=batch)
        log = protocol.train(
            federation.rows(np.arange(rows)), federation.rows(np.arange(rows, 500)), generator(seed, rows)
        )
        uploads = Uploads(cut(log, THREATS["coordinator"]))
        worker = uploads.workers[1]
        bias, weights = (uploads.gradients(worker.name, f"1.{key}") for key in ("bias", "weight"))
        separation = Separation.of(uploads, bias.rounds)
        above = separation.rows(bias)
        alone = layer_inputs(uploads, weights, above, separation.determined)
        truth = log.sealed(worker.name)["columns"]
        error = float(np.abs(alone.values - truth)[alone.found].max(initial=0.0))
        alive = np.abs(above).max(axis=1) > 0
        words = (
            f"{int(alone.found.sum())} of {int(alive.sum())} live rows from single batches, largest error {error:.1e}"
        )
        measured[f"N={rows}, d2={width}, K={batch}"] = words
        enough = batch <= width
        answers += [bool(alone.found[alive].all()) == enough, error < 1e-3]
    why = (
        "N <= d2 is not needed: the 40 rows of a batch have independent gradients in 64 dimensions although all 200 have not. "
        "With K > d2 a single batch does not do, and the rows' own weight gradients (Step I on them) do, for any K"
    )
    expected = "H is found for N <= d2 (Theorem 2) and also for N > d2 >= K; not from single batches for K > d2"
    return CheckResult(every(answers), measured, expected, 1, why)


def batch_sizes(scale: Scale, seed: int) -> CheckResult:
    """C4: Table 3, larger batches are no defence."""
    size = replace(SOLVED_SIZES[scale], rows=120 if scale == "paper" else 24)
    batches = (10, 20, 40, 80, 100) if scale == "paper" else (4, 8, 12)
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    curves = []
    for name in sets(scale):
        found = []
        for batch in batches:
            run = attacked(trained(name, replace(size, batch=batch), 4, seed), GradientPeeling(), seed)
            measured[f"{name}, K={batch}"] = run.words
            found.append(run.psnr)
        paper = PAPER_BY_BATCH[name]
        curves.append(Curve(f"{name}, ours", [float(b) for b in batches], found))
        curves.append(Curve(f"{name}, CAFE in the paper", [float(b) for b in paper], list(paper.values())))
        answers += [min(found) >= {"cifar10": 30, "mnist": 32, "linnaeus5": 28}[name], max(found) - min(found) < 3]
    expected = "PSNR of at least 30 / 32 / 28 dB for every K; ours within 3 dB of itself over K"
    why = f"ours on {size.rows} pictures; exact tiles count as 100 dB"
    figures = (ClaimFigure("batch size", "batch size K", "mean PSNR in dB", curves),) if scale == "paper" else ()
    return CheckResult(every(answers), measured, expected, 1, why, figures)


def workers(scale: Scale, seed: int) -> CheckResult:
    """C7: Table 6, 16 workers."""
    size = replace(SOLVED_SIZES[scale], rows=200 if scale == "paper" else 24)
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for name in sets(scale):
        found = {}
        for tiles in (4, 16):
            run = attacked(trained(name, size, tiles, seed), GradientPeeling(), seed)
            measured[f"{name}, M={tiles}"] = run.words
            found[tiles] = run.psnr
        answers.append(abs(found[4] - found[16]) < 3)
    expected = "16 workers within 5 dB of 4 (28.39 / 39.28 / 30.85 against 31.83 / 43.15 / 33.22 dB); ours within 3"
    return CheckResult(every(answers), measured, expected, 1, f"ours on {size.rows} pictures")


def faces(scale: Scale, seed: int) -> CheckResult:
    """C12: all 165 photographs of faces."""
    size = JinSize(165, 40, 64, 0) if scale == "paper" else replace(SOLVED_SIZES[scale], rows=30)
    run = attacked(trained("yale", size, 4, seed), GradientPeeling(), seed)
    measured: dict[str, object] = {"ours": run.words, "processor seconds": run.seconds, "labels": run.labels or 0.0}
    why = "the photographs may be shown for research only, so there is no contact sheet of them"
    return CheckResult(run.psnr > 42, measured, "above 42 dB", 1, why)


def without_convolutions(scale: Scale, seed: int) -> CheckResult:
    """C13: logistic regression and fully connected workers, on tables and on pictures."""
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    rows = 400 if scale == "paper" else 60
    for data in ("breast", "digits") if scale == "smoke" else ("breast", "digits", "credit", "mnist"):
        for network, top in (("logistic", "sum"), ("mlp", "linear")):
            table = registry.load(data)
            order = generator(seed, "rows", data).permutation(len(table.values))
            federation = split_at_random(table.rows(order), 0.5, generator(seed, "columns", data))
            protocol = SplitTraining(network=network, top=top, batch_size=40 if scale == "paper" else 10)
            log = protocol.train(
                federation.rows(np.arange(rows)), federation.rows(np.arange(rows, rows + 100)), generator(seed, data)
            )
            view = cut(log, THREATS["coordinator"])
            guess = GradientPeeling(grid=False).run(view, generator(seed, "attack"))
            assert guess.values is not None
            off = np.abs(guess.values - truth_of(log, view).values).max(axis=1)
            right = float(np.mean(guess.labels == log.sealed(log.active)["label"]))
            measured[f"{data}, {network}"] = (
                f"{(off < EXACT_SHARE).mean():.1%} of rows within {EXACT_SHARE:g}, largest error of the others "
                f"{off[off >= EXACT_SHARE].max(initial=0.0):.2g}, labels {right:.1%}"
            )
            answers.append(bool((off < EXACT_SHARE).all()))
    expected = "Steps I and II alone recover the data: every column to 1e-5, whole numbers not rounded"
    why = "the others are rows whose first layer is dead, so that their gradient is zero"
    return CheckResult(every(answers), measured, expected, 1, why)


CLAIMS = (
    Claim("jin2021", "C1", "Theorem 1", "F1 is strongly convex for K < N, with the printed eigenvalues", eigenvalues),
    Claim("jin2021", "C2", "Theorem 2", "the first layer's inputs are identified", identified),
    Claim("jin2021", "C4", "Table 3", "PSNR does not fall as the batch size grows", batch_sizes),
    Claim("jin2021", "C7", "Table 6", "16 workers leak as much as 4", workers),
    Claim("jin2021", "C12", "Section 4.5", "faces are recovered", faces),
    Claim(
        "jin2021", "C13", "Section 3.3", "without convolutions Steps I and II recover the data", without_convolutions
    ),
)
