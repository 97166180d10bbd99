"""How benchmarks are timed: the shortest of several runs, as a ratio, with the peak memory of the process."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

Measured = dict[str, Any]


def best(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The shortest of several runs, and what it returned."""
    seconds, result = [], None
    for _ in range(times):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    return min(seconds), result


def result(name: str, ratio: float, goal: float | None, size: str, seconds: float) -> Measured:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"name": name, "ratio": ratio, "goal": goal, "size": size, "seconds": seconds, "peak_mb": round(peak)}


def core_seconds(work: Callable[[], Any], times: int) -> float:
    """The fewest seconds of processor time of several runs, all threads and ended child processes counted: what one core
    would need, whatever else the machine does."""
    spent = []
    for _ in range(times):
        started = _processor_time()
        work()
        spent.append(_processor_time() - started)
    return min(spent)


def _processor_time() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)
