"""P8: on unseen data, from files to verdicts without code, planted leaks are reported exact and safe columns safe.

Each seed makes files (`unseen_worlds.py`), which go through `plumbob init` and `plumbob audit`, the first of them as commands
in processes of their own. A seed counts only if every planted column of it is judged right.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from plumbob.app import run_audit, save_text
from plumbob.auditing.concluding.summarise import summarise
from plumbob.auditing.drafting.draft_plan import draft
from plumbob.auditing.drafting.init_choices import Wishes
from plumbob.auditing.running.finding import Finding, read_findings
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.ours.unseen_worlds import World, world, write
from plumbob.scoring.leak_levels import Level
from plumbob.transcript import Transcript

SEEDS, SMOKE_SEEDS = 100, 10
RIGHT = 0.95  # share of seeds in which all is right
COMMANDS = 5  # seeds that go through the command line
SEEDS_PER_SHARE = 10  # seeds kept as one share of the work


def audited(made: World, folder: Path, seed: int, *, commands: bool) -> list[Finding]:
    """The findings of a world: files, plan, audit."""
    files = write(made, folder, seed)
    plan, out = folder / "plan.yaml", folder / "out"
    if commands:
        parties = [word for party, file in files.items() for word in ("--party", f"{party}={file}")]
        chosen = ["--protocol", made.protocol, "--threat", made.threat, "--defence", made.defence, "--effort", "quick"]
        _command("init", *parties, "--id", "id", "--label", "target", *chosen, "--out", str(plan))
        _command("audit", str(plan), "--out", str(out), *(["--transcripts"] if made.premise else []))
    else:
        wishes = Wishes(
            parties=files,
            id="id",
            label="target",
            protocols=(made.protocol,),
            threats=(made.threat,),
            defences=(made.defence,),
            effort="quick",
        )
        save_text(plan, draft(wishes, folder).text)
        run_audit(plan, out, transcripts=bool(made.premise))
    return read_findings(out / "findings.jsonl")


def _command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "plumbob", *words], check=True, capture_output=True, stdin=subprocess.DEVNULL)


def wrong(made: World, findings: list[Finding]) -> list[str]:
    """Planted columns that are judged otherwise than is proven, with what was said of them."""
    levels: dict[str, tuple[Level, str]] = {}
    for summary in summarise(findings):
        for verdict in summary.verdicts:
            said = (verdict.level, f"{verdict.level} by {summary.setting.attack}, gain {verdict.gain:.3f}")
            levels[verdict.column] = max(levels.get(verdict.column, said), said, key=lambda one: one[0].rank)
    silent = (Level.NOT_TESTED, "no verdict")
    lost = [name for name in made.exact if levels.get(name, silent)[0] is not Level.EXACT]
    alarms = [name for name in made.safe if name not in levels or levels[name][0].leaks]
    expected = dict.fromkeys(lost, "exact") | dict.fromkeys(alarms, "no leak")
    return [f"{name}: {levels.get(name, silent)[1]}, expected {what}" for name, what in expected.items()]


def premise_holds(made: World, out: Path) -> bool:
    """Whether every row of every trial got the same release, where the proof needs it."""
    if not made.premise:
        return True
    logs = [Transcript.load(path) for path in (out / "transcripts").glob(f"{made.protocol}*.zip")]
    scores = [[message.payload for message in log.messages if message.name == "scores"] for log in logs]
    return bool(logs) and all(len(np.unique(np.concatenate(told), axis=0)) == 1 for told in scores)


def judged(seed: int, *, commands: bool = False) -> tuple[World, list[str]]:
    """The world of a seed and what was judged wrong in it. Where a premise fails the seed is wrong."""
    made = world(seed)
    with tempfile.TemporaryDirectory() as place:
        findings = audited(made, Path(place), seed, commands=commands)
        if not premise_holds(made, Path(place) / "out"):
            return made, ["the premise of the proof does not hold: the released class is not always the same"]
    return made, wrong(made, findings)


def unseen(scale: Scale, seed: int) -> CheckResult:
    """So many seeds, shared out over the cores; seeds of the check's own seed follow on those of the one before."""
    from joblib import Parallel, delayed

    count = SMOKE_SEEDS if scale == "smoke" else SEEDS
    answers: list[bool | None] = []
    measured: dict[str, object] = {}

    def share(first: int) -> Part:
        seeds = range(first, min(first + SEEDS_PER_SHARE, (seed + 1) * count))
        pool = Parallel(n_jobs=min(os.cpu_count() or 1, len(seeds)))
        told = pool(delayed(judged)(one, commands=one - seed * count < COMMANDS) for one in seeds)
        found = {
            str(one): {
                "world": made.kind,
                "rows": len(made.label),
                "exact": len(made.exact),
                "safe": len(made.safe),
                "wrong": mistakes,
            }
            for one, (made, mistakes) in zip(seeds, told, strict=True)
        }
        return Part(found, [not mistakes for _, mistakes in told])

    for first in range(seed * count, (seed + 1) * count, SEEDS_PER_SHARE):
        done = part(f"from-{first}", lambda first=first: share(first))  # type: ignore[misc]  # mypy knows no default here
        answers += done.answers
        measured |= done.measured
    right = sum(bool(answer) for answer in answers)
    seeds = [name for name, told in measured.items() if told["wrong"]]  # type: ignore[index]  # dicts made above
    planted = {kind: sum(told[kind] for told in measured.values()) for kind in ("exact", "safe")}  # type: ignore[index]  # too
    heads = {"right": f"{right} of {count} seeds", "exact columns": planted["exact"], "safe columns": planted["safe"]}
    why = f"wrong verdicts in: {', '.join(seeds)}" if seeds else ""
    expected = f"every planted column judged right in at least {RIGHT:.0%} of the seeds"
    return CheckResult(right >= RIGHT * count, heads | {"seeds": measured}, expected, count, why)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob",
        "P8",
        "any CSV files",
        "on unseen files, planted leaks are found exactly and safe columns are never said to leak",
        unseen,
    ),
)
