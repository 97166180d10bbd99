"""Checks before training (luo2021, Section VII): what they cost on secret shares, and whether columns they name do leak (P25)."""

from __future__ import annotations

import math
import time
from functools import partial

from plumbob.auditing.planning.joint_tables import OnShares
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.planning.pre_training_check import Caution, precheck
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import Source, open_source
from plumbob.auditing.running.run import generator
from plumbob.federation import Federation
from plumbob.papers.claims import CheckResult, Claim, Curve, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.scoring.intervals import mean_and_margin

CHECKED: dict[Scale, tuple[str, ...]] = {"smoke": ("satellite",), "paper": ("credit", "bank", "drive")}
CHECKED_TRIALS: dict[Scale, int] = {"smoke": 2, "paper": 8}
HIDDEN = 0.3


def checks_foretell(scale: Scale, seed: int) -> CheckResult:
    """Same warnings either way; sides that the class tells, and how often path restriction is right about them."""
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    warned, others = list[float](), list[float]()
    for data in CHECKED[scale]:
        done = part(data, partial(_checked, data, scale, seed))
        told = {"warned": done.curves[0].y, "others": done.curves[1].y} if done.curves else {}
        warned += told.get("warned", [])
        others += told.get("others", [])
        measured |= done.measured
        answers += done.answers
    if len(warned) > 1 and len(others) > 1:
        (high, wide), (low, narrow) = mean_and_margin(warned), mean_and_margin(others)
        measured["sides told right in trees, columns warned of"] = f"{high:.3f} ± {wide:.3f} of {len(warned)} columns"
        measured["sides told right in trees, other columns"] = f"{low:.3f} ± {narrow:.3f} of {len(others)} columns"
        margin = math.hypot(wide, narrow)
        answers.append(True if high - low > margin else False if low - high > margin else None)
    expected = "the same warnings on secret shares; columns warned of lose more of their branches than others"
    why = "sums of products are the same on shares; a class that tells the side at the root tells it in the tree"
    return CheckResult(every(answers), measured, expected, CHECKED_TRIALS[scale], why)


def _checked(data: str, scale: Scale, seed: int) -> Part:
    """One data set: the check of the first split both ways, and trees of every split."""
    plan = make_plan(
        {
            "data": {"name": data} | ({"sample": 1_000} if scale == "smoke" else {}),
            "protocols": ["decision_tree"],
            "attacks": ["path_restriction"],
            "unknown": HIDDEN,
            "trials": CHECKED_TRIALS[scale],
            "rows": 1_000,
            "seed": seed,
            "ceiling": False,
        }
    ).filled()
    source = open_source(plan.data, seed)
    clear, words, same = _both_ways(source, seed)
    reasons = sorted({caution.reason for caution in clear})
    measured: dict[str, object] = {data: words, f"{data}, warnings": ", ".join(reasons) or "none"}
    right: dict[bool, list[float]] = {True: [], False: []}
    for finding in run(plan, source):
        told = {n for c in precheck(_dealt(source, seed, finding.trial)) if c.reason == "sides" for n in c.columns}
        for column in finding.score.columns:
            if column.claims:
                right[column.name.rpartition(".")[2] in told].append(1 - column.error)
    curves = [
        Curve(w, [float(i) for i in range(len(y))], y) for w, y in (("warned", right[True]), ("others", right[False]))
    ]
    return Part(measured, [same], curves)


def _both_ways(source: Source, seed: int) -> tuple[list[Caution], str, bool]:
    federation = _dealt(source, seed, 0)
    clear, sums, started = precheck(federation), OnShares(), time.process_time()
    same = precheck(federation, sums=sums) == clear
    seconds = time.process_time() - started
    sizes = f"{len(federation):,} rows, {' and '.join(str(len(p.columns)) for p in federation.parties)} columns"
    return (
        clear,
        f"{sizes}: {seconds:.1f} s of a processor, {sums.bytes_sent / 1e6:.0f} MB, {sums.opened:,} sums opened",
        same,
    )


def _dealt(source: Source, seed: int, trial: int) -> Federation:
    return source.deal(HIDDEN, generator(seed, "columns", HIDDEN, trial))[0]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob",
        "P25",
        "checks before training",
        "checks on secret shares find what they find in the clear",
        checks_foretell,
    ),
)
