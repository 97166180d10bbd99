"""Benchmark of ceilings: what they add to a quick audit. Both audits are new processes, one after the other."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.timing import Measured, result
from plumbob.app import run_audit

GOAL = 1.2
TIMES = 3
PLAN = {"data": "breast", "effort": "quick"}  # what `plumbob audit` runs without a plan


def ceilings_against_none() -> Iterator[Measured]:
    """Processor seconds of the audit over those without ceilings: the median over pairs of new processes."""
    ratios = []
    for _ in range(TIMES):
        without, spent = (_audit(how) for how in ("without", "with"))
        ratios.append(spent / without)
    size = f"the built-in audit, {TIMES} pairs of runs from {min(ratios):.3f} to {max(ratios):.3f}"
    yield result("ceilings: processor time with them over without", median(ratios), GOAL, size, spent)


def _audit(how: str) -> float:
    """Processor seconds of one audit in a new process, its children included."""
    before = _children()
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", "from benchmarks.ceilings import main; main()", how, folder]
        subprocess.run(words, check=True, cwd=Path(__file__).parents[1])
    return _children() - before


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    how, folder = sys.argv[1:]
    run_audit(PLAN | {"ceiling": how == "with"}, Path(folder) / "out")
