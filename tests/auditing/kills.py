"""Kill an audit with SIGKILL at random moments until it is done, and compare it with one that was left alone.

`python -m tests.auditing.kills --kills 100 --workers 2 --seed 1 > docs/results/kills.json` made the committed result. `--start
exec` starts the command anew each time, as a user does; `--start fork` forks it from a process that has loaded the libraries, to
save the minutes of loading them a hundred times. Either way it is a process group of its own that SIGKILL ends.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from plumbob.auditing.running.store import Store
from tests.commands import Running

PLAN = """
data: {name: breast, sample: 150}
protocols: [logistic_regression, decision_tree]
attacks: [{name: equation_solving, settings: {adaptive: false}}, posterior_mean, path_restriction]
unknown: [0.1, 0.3, 0.5]
defences: [none, rounding, label_only]
trials: TRIALS
rows: 60
"""
STARTUP = 4.0  # seconds within which an audit that shall find nothing more is killed


def start_exec(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "plumbob", *words]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True)


def start_fork(words: list[str], folder: Path) -> Running:
    return Running(*words, cwd=folder)


STARTS = {"exec": start_exec, "fork": start_fork}


def left_alone(words: list[str], folder: Path, start: str) -> None:
    code = STARTS[start](words, folder).wait()
    assert code == 0, f"exit code {code}"


def kill_until_done(
    words: list[str], folder: Path, store: Store, total: int, kills: int, seed: int, start: str
) -> dict[str, int]:
    """Start, kill after a random number of findings more and a random moment, and so on; then let it finish."""
    rng = random.Random(seed)
    done = at_work = 0
    while done < kills:
        before = len(store.written())
        more = rng.randint(0, max(1, (total - before) // (kills - done + 1)))
        process = STARTS[start](words, folder)
        deadline = time.monotonic() + (rng.uniform(0, STARTUP if start == "exec" else 0.5) if not more else 300)
        while len(store.written()) < before + more and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        for end in (os.killpg, os.kill):  # it may have ended, or lead no group yet
            with suppress(ProcessLookupError):
                end(process.pid, signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            break  # it was faster than we were, on its last findings
        done += 1
        at_work += len(store.written()) > before
    left_alone(words, folder, start)
    return {"kills": done, "kills after new findings": at_work}


def measure(folder: Path, kills: int, trials: int, seed: int, start: str, workers: int) -> dict[str, object]:
    """The outcome as plain data, for the committed file and for tests."""
    (folder / "plan.yaml").write_text(PLAN.replace("TRIALS", str(trials)))
    words = ["audit", "plan.yaml", "--workers", str(workers), "--out"]
    left_alone([*words, "alone"], folder, start)
    whole = (folder / "alone" / "findings.jsonl").read_bytes()
    total = len(whole.splitlines())
    store = Store(folder / "killed" / "store")
    told = kill_until_done([*words, "killed"], folder, store, total, kills, seed, start)
    computed = Counter(store.written())
    same = [name for name in ("findings.jsonl", "plan.yaml") if equal(folder, name)]
    return told | {
        "seed": seed,
        "workers": workers,
        "start": start,
        "findings": total,
        "findings computed twice": sum(count > 1 for count in computed.values()),
        "findings in the log": len(computed),
        "equal byte for byte": same,
    }


def equal(folder: Path, name: str) -> bool:
    return (folder / "alone" / name).read_bytes() == (folder / "killed" / name).read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--start", choices=sorted(STARTS), default="exec")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = measure(Path(folder), chosen.kills, chosen.trials, chosen.seed, chosen.start, chosen.workers)
    command = f"python -m tests.auditing.kills {' '.join(sys.argv[1:])}"
    print(json.dumps({"command": command} | told, indent=1))


if __name__ == "__main__":
    main()
