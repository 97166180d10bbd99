"""Audit folders without an audit: written from synthetic findings, whole, unfinished and broken ones."""

from __future__ import annotations

import os
from pathlib import Path

from plumbob.auditing.running.finding import Finding
from plumbob.report.page import About, render
from tests.report import samples

PLAN = "data: {name: breast}\nprotocols: [logistic_regression]\nattacks: [posterior_mean]\ntrials: 1\nunknown: [0.3]\nseed: 7\n"
HOSTILE = (
    "<script>window.hacked=1</script>",
    "=cmd()",
    "\x1b[31mred\x1b[0m",
    "\"><img src=x onerror='window.hacked=2'>",
)


def write(
    folder: Path,
    findings: list[Finding],
    *,
    plan: str | None = PLAN,
    report: bool = True,
    pages: bool = False,
    day: int = 1,
) -> Path:
    folder.mkdir(parents=True)
    store = folder / "findings.jsonl"
    keyed = [f.to_line().replace(f'"key":"{f.key}"', f'"key":"{i}"', 1) for i, f in enumerate(findings)]
    store.write_text("".join(f"{line}\n" for line in keyed), encoding="utf-8")
    if plan is not None:
        (folder / "plan.yaml").write_text(plan, encoding="utf-8")
    if report:
        page = "<!doctype html>"
        if pages:
            page = render(findings, About(title="T", question="Q", command="c"))
        (folder / "report.html").write_text(page, encoding="utf-8")
    for file in folder.iterdir():
        os.utime(file, (86_400 * day, 86_400 * day))
    return folder


def one(names: tuple[str, ...] = samples.NAMES, **setting: object) -> list[Finding]:
    return samples.values(names, shares=(0.3,), trials=1, attacks=("box_solving",), **setting)


def tree(root: Path, *, pages: bool = True) -> Path:
    """Three whole audits at different depths, one unfinished, three broken, and things that are no audits."""
    write(root / "bare", samples.capped(one()), day=4, pages=pages)
    write(
        root / "team" / "rounded",
        samples.capped(samples.harmless(trials=1)),
        day=5,
        plan=PLAN.replace("seed: 7", "seed: 8"),
    )
    write(root / "hostile" / "a b ü", one(HOSTILE, data=HOSTILE[0], defence=HOSTILE[2]), day=3, pages=pages)
    write(root / "half", one(), report=False, day=2)
    write(root / "planless", one(), plan=None, day=1)
    write(root / "torn", [], plan="data: [", report=False, day=1)
    (root / "torn" / "findings.jsonl").write_bytes(b"\xff\xfe\n")
    strange = write(root / "strange", one(), report=False, day=1)
    line = (strange / "findings.jsonl").read_text().replace('"gain":', '"gain":"x","gone":', 1)
    (strange / "findings.jsonl").write_text(line)
    for broken in ("torn", "strange"):
        os.utime(root / broken / "findings.jsonl", (86_400, 86_400))
    (root / "notes").mkdir()
    (root / "notes" / "plan.yaml").write_text(PLAN)
    return root
