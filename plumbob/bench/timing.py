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
