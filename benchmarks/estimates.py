"""Estimates against real runs: every plan is estimated, then run in a process of its own; the share within a factor of 2.

    python -m benchmarks.estimates docs/results/estimates.json

Seconds are of processor time, so that a busy machine does not blame the estimate; memory is the highest of the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from plumbob.app import environment, estimate_audit
from plumbob.auditing.planning.plan_file import make_plan

FACTOR = 2.0
_LINEAR = ["equation_solving", "gradient_inversion", "posterior_mean", "lattice_decoding"]
PLANS: dict[str, dict[str, Any]] = {
    "quick, built-in data, two protocols": {"data": "breast", "effort": "quick"},
    "standard, tree": {"data": "satellite", "effort": "standard", "protocols": ["decision_tree"]},
    "standard, logistic regression": {
        "data": "breast",
        "effort": "standard",
        "protocols": ["logistic_regression"],
        "attacks": ["equation_solving", "gradient_inversion"],
    },
    "logistic regression, six classes": {
        "data": {"name": "satellite", "sample": 2_000},
        "protocols": ["logistic_regression"],
        "attacks": _LINEAR,
        "unknown": [0.2, 0.5],
        "trials": 2,
    },
    "defences on scores": {
        "data": "breast",
        "protocols": ["logistic_regression"],
        "unknown": [0.3],
        "trials": 1,
        "attacks": _LINEAR,
        "defences": ["none", "rounding", "noise", "purifier", "verification"],
    },
    "defence in training": {
        "data": "breast",
        "protocols": ["logistic_regression"],
        "unknown": [0.3],
        "trials": 1,
        "attacks": _LINEAR,
        "defences": ["none", "dp_sgd"],
    },
    "forest": {"data": "breast", "protocols": ["random_forest"], "unknown": [0.3], "trials": 1},
    "network": {"data": "breast", "protocols": ["neural_network"], "unknown": [0.2], "trials": 1},
    "split models, black box": {
        "data": "breast",
        "protocols": ["split_models"],
        "threats": ["active-black-box-auxiliary"],
        "unknown": [0.3],
        "trials": 2,
    },
    "encrypted regression": {
        "data": "breast",
        "protocols": [{"name": "encrypted_logistic_regression", "settings": {"key_bits": 1_024, "epochs": 1}}],
        "threats": ["corrupted-coordinator"],
        "unknown": [0.3],
        "trials": 1,
    },
    "boosting, encrypted": {
        "data": "breast",
        "protocols": [{"name": "secure_boost", "settings": {"key_bits": 1_024, "trees": 2}}],
        "threats": ["active-training"],
        "unknown": [0.3],
        "trials": 1,
    },
    "split training, with a defence": {
        "data": "breast",
        "protocols": ["split_training"],
        "threats": ["coordinator"],
        "defences": ["none", "quantised_gradients"],
        "unknown": [0.3],
        "trials": 2,
    },
    "cut layer, with a defence": {
        "data": "satellite",
        "protocols": ["split_network"],
        "threats": ["active-training"],
        "defences": ["none", "gaussian_masking"],
        "unknown": [0.3],
        "trials": 2,
    },
    "larger table, tree and regression": {
        "data": "bank",
        "protocols": ["decision_tree", "logistic_regression"],
        "attacks": ["path_restriction", "equation_solving"],
        "unknown": [0.3, 0.5],
        "trials": 3,
    },
    # The last two were added when the laws were finished.
    "afterwards: forest and tree": {
        "data": {"name": "credit", "sample": 3_000},
        "protocols": ["random_forest", "decision_tree"],
        "attacks": ["forest_boxes", "path_restriction"],
        "unknown": [0.4],
        "trials": 1,
    },
    "afterwards: network, many columns": {
        "data": {"name": "digits", "sample": 600},
        "protocols": ["neural_network"],
        "attacks": ["gradient_inversion", "generative_regression"],
        "unknown": [0.2],
        "trials": 1,
    },
}


def compare(name: str, plan: Mapping[str, Any], real: Mapping[str, float] | None = None) -> dict[str, Any]:
    """What is estimated for a plan, and what its run took; a run that was measured before is not made again."""
    told = estimate_audit(make_plan(dict(plan)))
    real = real or took(name, plan)
    guessed = {"seconds": told.seconds, "bytes": told.peak_bytes, "disk": told.disk_bytes}
    ratios = {key: round(guessed[key] / real[key], 3) for key in real}
    return {"name": name, "plan": plan, "estimated": guessed, "real": real, "ratios": ratios}


# Linux counts the memory of whoever starts a process as that process's highest: a small one starts it, and says what it took.
_METER = """
import json, os, subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def tree(pid):
    try:
        lists = [open(f"/proc/{pid}/task/{task}/children").read() for task in os.listdir(f"/proc/{pid}/task")]
        below = [int(word) for text in lists for word in text.split()]
        share = next(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0
    return share + sum(map(tree, below))
peak = 0
while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
    peak = max(peak, tree(child.pid))
    time.sleep(0.05)
_, status, used = ended
peak = max(1024.0 * peak, used.ru_maxrss * 1024.0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, peak]))
"""


def took(name: str, plan: Mapping[str, Any]) -> dict[str, float]:
    """Processor time, highest memory of all its processes together, and disk of a plan's run."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "plan.yaml").write_text(yaml.safe_dump(dict(plan)), encoding="utf-8")
        words = [sys.executable, "-m", "plumbob", "audit", "plan.yaml", "--out", "out"]
        meter = [sys.executable, "-S", "-c", _METER, *words]
        code, seconds, peak = json.loads(subprocess.run(meter, cwd=folder, capture_output=True, check=True).stdout)
        if code:
            raise RuntimeError(f"plan '{name}' did not run: exit code {code}")
        disk = sum(path.stat().st_size for path in (Path(folder) / "out").iterdir())
    return {"seconds": seconds, "bytes": peak, "disk": float(disk)}


def share(results: Sequence[Mapping[str, Any]], what: str) -> float:
    """The share of plans whose estimate is within the factor."""
    good = [one for one in results if 1 / FACTOR <= one["ratios"][what] <= FACTOR]
    return len(good) / len(results)


def main(path: str) -> None:
    """Measure the plans that the file does not hold yet, estimate them all anew, and write the file."""
    place, results = Path(path), []
    before = json.loads(place.read_text(encoding="utf-8"))["plans"] if place.exists() else []
    known = {one["name"]: one["real"] for one in before if one["plan"] == PLANS.get(one["name"])}
    for name, plan in PLANS.items():
        results.append(compare(name, plan, known.get(name)))
        print(f"{name}: {results[-1]['ratios']}, {results[-1]['real']['seconds']:.1f} s", flush=True)
        made = {
            "command": f"python -m benchmarks.estimates {path}",
            "factor": FACTOR,
            "within": {what: round(share(results, what), 3) for what in ("seconds", "bytes", "disk")},
            "environment": environment(),
            "plans": results,
        }
        place.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
