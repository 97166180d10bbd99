"""Benchmark of many runs: how much sooner a sweep is done by two worker processes than by one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.timing import Measured, best, result
from plumbob.app import run_audit

GOAL = 1.7
PLAN = {
    "data": "breast",
    "protocols": ["logistic_regression"],
    "attacks": ["equation_solving", "posterior_mean", "shadow_inversion"],
    "unknown": [0.3],
    "defences": "sweep",
    "trials": 4,
}


def workers_against_one() -> Iterator[Measured]:
    """Seconds of a sweep by one process over those by two, their start included. A machine at other work says so."""
    busy = os.getloadavg()[0]
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for workers in (1, 2):
            out = Path(folder) / str(workers)
            seconds[workers], made = best(partial(run_audit, PLAN, out, workers=workers), 1)
    size = f"sweep over breast, {len(made.findings)} findings, 2 worker processes on {os.cpu_count()} cores"
    size += f", while the machine was busy (load {busy:.1f} before)" if busy > 0.5 else ""
    yield result("workers: two against one", seconds[1] / seconds[2], GOAL, size, seconds[2])
