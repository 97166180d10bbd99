"""Many cases of every target: `python -m tests.fuzz --cases 100000 --seed 0`; prints progress and a summary as JSON.

Each target runs in a process of its own. A process that dies or hangs in a library is a failure of the case it was at, and
the next one goes on behind it. `--target plans --only 4711` repeats one case.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.fuzz.guard import GROWTH, SECONDS, judged, peak

SHOWN = 20  # failures that a summary names


def rng_of(seed: int, target: str, number: int) -> random.Random:
    """The choices of one case."""
    return random.Random(f"{seed} {target} {number}")


def run(name: str, seed: int, first: int, last: int, status: Path) -> dict[str, Any]:
    """Cases of one target in this process; `status` always holds what is known, for whoever finds it dead."""
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix="plumbob-fuzz-") as scratch:
        folder = Path(scratch) / "case"
        elsewhere = Path(scratch) / "elsewhere"
        elsewhere.mkdir()
        os.chdir(elsewhere)
        target.make(rng_of(seed, name, -1))  # examples are made and libraries loaded before anything is measured
        folder.mkdir()
        judged(target.read, folder, target.make(rng_of(seed, name, -1)), peak())
        start = peak()
        _limit_memory()
        done: dict[str, Any] = {"cases": 0, "accepted": 0, "refused": 0, "slowest": 0.0, "failures": []}
        for number in range(first, last):
            if number % 200 == 0 or number == first:
                status.write_text(json.dumps(done | {"peak_mb": round(peak() / 1e6)}))
            status.with_suffix(".at").write_text(str(number))
            faulthandler.dump_traceback_later(4 * SECONDS, exit=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            outcome = judged(target.read, folder, target.make(rng_of(seed, name, number)), start)
            faulthandler.cancel_dump_traceback_later()
            done["cases"] += 1
            done["accepted"] += not outcome.sentence and not outcome.failure
            done["refused"] += bool(outcome.sentence) and not outcome.failure
            done["slowest"] = max(done["slowest"], outcome.seconds)
            failure = outcome.failure or ("a file in the working folder" if any(elsewhere.iterdir()) else "")
            if failure:
                done["failures"].append({"case": number, "why": failure})
        status.write_text(json.dumps(done | {"peak_mb": round(peak() / 1e6)}))
        os.chdir(Path(scratch).parent)
    return done


def _limit_memory() -> None:
    """No case can take more than four times what it may: the machine is not ours alone."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        most = pages * resource.getpagesize() + 4 * GROWTH
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def watch(name: str, seed: int, cases: int) -> dict[str, Any]:
    """All cases of a target, in as many processes as it takes."""
    total: dict[str, Any] = {"cases": 0, "accepted": 0, "refused": 0, "slowest": 0.0, "peak_mb": 0, "failures": []}
    began, first = time.perf_counter(), 0
    with tempfile.TemporaryDirectory(prefix="plumbob-fuzz-") as scratch:
        status = Path(scratch) / "status"
        while first < cases:
            for stale in (status, status.with_suffix(".at")):
                stale.unlink(missing_ok=True)
            words = ["--target", name, "--seed", str(seed), "--first", str(first), "--cases", str(cases)]
            command = [sys.executable, "-m", "tests.fuzz", *words, "--status", str(status)]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
                said = process.communicate()[1]
            if not status.exists():
                raise SystemExit(f"{name}: its process could not start:\n{said[-2000:]}")
            part = json.loads(status.read_text())
            for key in ("cases", "accepted", "refused"):
                total[key] += part[key]
            for key in ("slowest", "peak_mb"):
                total[key] = max(total[key], part[key])
            total["failures"] += part["failures"]
            if process.returncode == 0:
                break
            at = int(status.with_suffix(".at").read_text())
            total["failures"].append(
                {"case": at, "why": f"its process ended with {process.returncode}: {said[-300:]!r}"}
            )
            total["cases"] += at + 1 - first - part["cases"]  # of the last few before it only the number is known
            first = at + 1
    total["seconds"] = round(time.perf_counter() - began, 1)
    total["slowest"] = round(total["slowest"], 3)
    print(
        f"{name}: {total['cases']:,} cases, {total['accepted']:,} accepted, {len(total['failures'])} failures, "
        f"{total['seconds']:.0f} s",
        file=sys.stderr,
    )
    return total


def repeat(name: str, seed: int, number: int) -> None:
    """One case again, with the traceback, and its files for who wants to look."""
    from tests.fuzz.targets import TARGETS

    folder = Path(tempfile.mkdtemp(prefix="plumbob-case-"))
    files = TARGETS[name].make(rng_of(seed, name, number))
    print(f"its files are in {folder}")
    print(judged(TARGETS[name].read, folder, files, peak()))
    TARGETS[name].read(folder)


def main() -> None:
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("--cases", type=int, default=100_000, help="in all, shared by the targets")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--target", help="this one only")
    words.add_argument("--only", type=int, help="repeat the case of this number")
    words.add_argument("--workers", type=int, default=2)
    words.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    words.add_argument("--status", type=Path, help=argparse.SUPPRESS)
    asked = words.parse_args()
    if asked.status is not None:
        run(asked.target, asked.seed, asked.first, asked.cases, asked.status)
        return
    if asked.only is not None:
        repeat(asked.target, asked.seed, asked.only)
        return
    from tests.fuzz.targets import TARGETS

    if asked.target is not None and asked.target not in TARGETS:
        words.error(f"no target '{asked.target}'; known: {', '.join(TARGETS)}")
    names = [asked.target] if asked.target else list(TARGETS)
    weights = [TARGETS[name].share for name in names]
    shares = [max(1, asked.cases * weight // sum(weights)) for weight in weights]
    began = time.perf_counter()
    with ThreadPoolExecutor(asked.workers) as pool:
        found = dict(
            zip(
                names,
                pool.map(lambda pair: watch(pair[0], asked.seed, pair[1]), zip(names, shares, strict=True)),
                strict=True,
            )
        )
    failed = {name: part.pop("failures") for name, part in found.items()}
    kinds = Counter(f"{name}: {one['why']}" for name, many in failed.items() for one in many)
    for kind, count in kinds.most_common(SHOWN):
        name = kind.partition(":")[0]
        number = next(one["case"] for one in failed[name] if f"{name}: {one['why']}" == kind)
        print(
            f"{count} x {kind}\n    python -m tests.fuzz --seed {asked.seed} --target {name} --only {number}",
            file=sys.stderr,
        )
    summary = {
        "command": f"python -m tests.fuzz --cases {asked.cases} --seed {asked.seed}"
        + (f" --target {asked.target}" if asked.target else ""),
        "cases": sum(part["cases"] for part in found.values()),
        "failures": sum(map(len, failed.values())),
        "slowest_seconds": max(part["slowest"] for part in found.values()),
        "peak_mb": max(part["peak_mb"] for part in found.values()),
        "wall_seconds": round(time.perf_counter() - began, 1),
        "targets": {name: part | {"failures": len(failed[name])} for name, part in found.items()},
    }
    print(json.dumps(summary, indent=1))
    sys.exit(1 if summary["failures"] else 0)


if __name__ == "__main__":
    main()
