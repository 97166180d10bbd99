"""A quick audit of four protocols on credit, 30,000 x 23, on two workers: processor seconds and memory (P40)."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import yaml

from plumbob.auditing.costing.estimate import estimate
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.finding import read_findings
from plumbob.auditing.running.open_data import open_source
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import every
from plumbob.scoring.column_ceiling import CEILING

PROTOCOLS = ("logistic_regression", "decision_tree", "random_forest", "neural_network")
WORKERS, MINUTES, GIGABYTES, HOURS = 2, 5.0, 2.0, 1.0
LONGEST = 8  # attacks that are named, the dearest ones
EVERY = 0.5  # seconds between looks at the memory


def quick_audit(scale: Scale, seed: int) -> CheckResult:
    """The command as a user runs it, in processes of its own; a busy machine changes the clock, not processor seconds."""
    asked: dict[str, object] = {"data": "credit", "protocols": list(PROTOCOLS), "effort": "quick", "seed": seed}
    if scale == "smoke":
        asked |= {"data": {"name": "breast"}, "protocols": list(PROTOCOLS[:2]), "trials": 1, "rows": 100}
    with tempfile.TemporaryDirectory() as folder:
        plan, out = Path(folder) / "plan.yaml", Path(folder) / "out"
        plan.write_text(yaml.safe_dump(asked), encoding="utf-8")
        command = [sys.executable, "-m", "plumbob", "audit", str(plan), "--out", str(out), "--workers", str(WORKERS)]
        before = _spent()
        memory = _run(command)
        seconds = _spent() - before
        findings = read_findings(out / "findings.jsonl")
    spent: dict[str, float] = {}
    for one in findings:
        title = f"{'ceiling' if one.attack == CEILING else one.attack} on {one.protocol}"
        spent[title] = spent.get(title, 0.0) + one.seconds
    standard = make_plan(asked | {"effort": "standard"}).filled()
    hours = estimate(standard, open_source(standard.data, seed)).seconds / 3600
    minutes = seconds / WORKERS / 60
    dearest = sorted(spent, key=lambda name: -spent[name])[:LONGEST]
    measured = {
        "processor seconds": round(seconds),
        f"minutes on {WORKERS} cores": round(minutes, 1),
        "memory of all processes at once, GB": round(memory, 2),
        "findings": len(findings),
        "effort standard, estimated hours of one core": round(hours, 2),
        "longest, seconds of the clock": {name: round(spent[name], 1) for name in dearest},
    }
    expected = (
        f"at most {MINUTES:g} minutes on {WORKERS} cores, {GIGABYTES:g} GB; standard at most {HOURS:g} hour, estimated"
    )
    return CheckResult(every([minutes <= MINUTES, memory <= GIGABYTES, hours <= HOURS]), measured, expected, 1)


def _spent() -> float:
    """Processor seconds of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(command: list[str]) -> float:
    """Run it to its end; the most memory that it and its children held at once, in GB, what they share counted once."""
    peak, done = [0.0], threading.Event()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def look() -> None:
        while not done.wait(EVERY):
            peak[0] = max(peak[0], sum(_held(one) for one in _family(child.pid)))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    child.wait()
    done.set()
    watcher.join()
    return peak[0] / 1e6


def _family(process: int) -> list[int]:
    """A process and all that descend from it, where the system tells."""
    found = [process]
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for one in (task / "children").read_text(encoding="ascii").split():
                found += _family(int(one))
    return found


def _held(process: int) -> float:
    """Kilobytes of memory, shared pages divided by who shares them."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return float(line.split()[1])
    return 0.0


CLAIMS = (
    Claim("plumbob", "P40", "effort quick", "a quick audit of four protocols takes minutes on two cores", quick_audit),
)
