"""Benchmark of the wall: what it costs that attacks run in a process of their own, as a share of the built-in audit.

Both are measured as new processes: `here` with the attacks in the process of the audit, without any wall, `apart` as it is.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

from benchmarks.timing import Measured, result
from plumbob.app import run_audit
from plumbob.attacks import Attack
from plumbob.auditing.running import run as workbench
from plumbob.auditing.running.isolation import attacker
from plumbob.auditing.running.isolation.attacker import Attempt
from plumbob.auditing.running.isolation.limits import Limits
from plumbob.threats import View

GOAL = 1.1
TIMES = 3
PLAN = {"data": "breast", "effort": "quick"}  # what `plumbob audit` runs without a plan


def wall_against_none() -> Iterator[Measured]:
    """Processor seconds, and seconds, of the audit over those without the wall: medians over pairs of new processes."""
    processor, clock = [], []
    for _ in range(TIMES):
        (spent_here, waited_here), (spent, waited) = (_audit(how) for how in ("here", "apart"))
        processor.append(spent / spent_here)
        clock.append(waited / waited_here)
    size = f"the built-in audit, {TIMES} pairs of runs from {min(processor):.3f} to {max(processor):.3f}"
    yield result("wall: processor time with it over without", median(processor), GOAL, size, spent)
    size = f"the built-in audit, {TIMES} pairs of runs from {min(clock):.3f} to {max(clock):.3f}"
    yield result("wall: time with it over without", median(clock), GOAL, size, waited)


def _audit(how: str) -> tuple[float, float]:
    """Processor seconds and seconds of one audit in a new process, its children included."""
    before, started = _children(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", "from benchmarks.wall import main; main()", how, folder]
        subprocess.run(words, check=True, cwd=Path(__file__).parents[1])
    return _children() - before, time.perf_counter() - started


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def here(attack: Attack, view: View, seed: bytes, limits: Limits) -> Attempt:
    """An attack in this process, which holds the truth, without limits: for comparison only."""
    guess = attack.run(view, np.random.default_rng(np.frombuffer(seed, dtype=np.uint32)))
    return Attempt(guess, "", "", view.digest, 0.0, 0.0, "")


def main() -> None:
    how, folder = sys.argv[1:]
    with ExitStack() as stack:
        if how == "here":
            stack.enter_context(patch.object(workbench, "attempt", here))
            stack.enter_context(patch.object(attacker, "warm"))
        run_audit(PLAN, Path(folder) / "out")
