"""Big batches over all cores: the first part is worked here, every other part in a forked process.

gmpy2 keeps the interpreter's lock while it multiplies, so threads would take turns. A forked process inherits tables and
ciphertexts as they are; only its results travel, as numbers of a fixed width through a pipe. Nothing is pickled, and a
worker that fails prints nothing: its part is worked again here, where an error is raised as it would be without workers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from itertools import pairwise

from gmpy2 import mpz

Work = Callable[[slice], Sequence[mpz]]


def available() -> int:
    """How many cores this process may use; pinning it to one (`taskset`) makes everything here run in one process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parts(count: int, least: int) -> list[slice]:
    """range(count) cut into one run for each core, none shorter than `least`; always at least one."""
    pieces = max(1, min(available(), count // max(1, least)))
    edges = [count * i // pieces for i in range(pieces + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def over_cores(work: Work, count: int, least: int, width: int) -> list[Sequence[mpz]]:
    """work(part) for every part of range(count), in order; results are non-negative and fit into `width` bytes."""
    first, *others = parts(count, least if hasattr(os, "fork") else count + 1)
    workers: list[tuple[int, int]] = []
    try:
        for part in others:
            workers.append(_start(work, part, width))
        results = [work(first)]
        for (_, reader), part in zip(workers, others, strict=True):
            results.append(_received(reader, width) or work(part))  # a worker that died leaves its part to us
    except BaseException:
        for process, _ in workers:
            os.kill(process, signal.SIGKILL)
        raise
    finally:
        for process, reader in workers:
            os.close(reader)
            os.waitpid(process, 0)
    return results


def _start(work: Work, part: slice, width: int) -> tuple[int, int]:
    """A forked process at work on one part, and the pipe to read its results from."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return process, reader
    try:
        os.close(reader)
        payload = b"".join(value.to_bytes(width, "big") for value in work(part))
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(len(payload).to_bytes(8, "big") + payload)
    finally:
        os._exit(0)  # whatever happened, the parent's cleanup, buffers and tracebacks are not this process's


def _received(reader: int, width: int) -> list[mpz] | None:
    """The numbers a worker sent, or None when it did not send all of them."""
    with os.fdopen(reader, "rb", closefd=False) as pipe:
        data = pipe.read()
    if len(data) < 8 or int.from_bytes(data[:8], "big") != len(data) - 8:
        return None
    return [mpz.from_bytes(data[i : i + width], "big") for i in range(8, len(data), width)]
