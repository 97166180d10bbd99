"""`plumbob audit`: a plan or a recorded run in, a report out, and an exit code for CI."""

from __future__ import annotations

import json
import shlex
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from plumbob.cli.base import Effort, Json, app, progress, reader_may_leave
from plumbob.errors import BadInput
from plumbob.lazy_imports import loading

if TYPE_CHECKING:  # a command loads what it needs when it runs
    from plumbob.app import Result
    from plumbob.auditing.costing.estimate import Estimate
    from plumbob.auditing.planning.gate import Outcome
    from plumbob.auditing.planning.plan import Plan


PlanFile = Annotated[Path | None, typer.Argument(help="The plan (YAML). Without one, built-in data are audited.")]
Recorded = Annotated[
    Path | None,
    typer.Option(help="A recorded run to judge instead: a saved transcript, or a folder of plain files."),
]
Threats = Annotated[
    list[str] | None, typer.Option(help="Who is curious in the recorded run; may be given several times.")
]
Out = Annotated[Path, typer.Option(help="Folder for report and findings; an interrupted audit goes on there.")]
Seed = Annotated[int | None, typer.Option(help="Seed of every random draw (default: the plan's, else 0).")]
HowMuch = Annotated[Effort | None, typer.Option(help="Trials, shares of unknown columns and rows.")]
Workers = Annotated[
    int | None, typer.Option(min=1, max=1024, help="How many work at once (default: 1, or all of a cluster).")
]
Engine = Annotated[str, typer.Option(help="Where: processes, ray, dask, ray://HOST:PORT or dask://HOST:PORT.")]
SharedStore = Annotated[
    Path | None,
    typer.Option(envvar="PLUMBOB_STORE", help="Folder of findings that audits share; none is made twice."),
]
Sweep = Annotated[bool, typer.Option("--sweep", help="Try every defence, and say which one to take.")]
Transcripts = Annotated[bool, typer.Option(help="Keep the transcripts too. They hold raw private values.")]
ShowPictures = Annotated[
    bool,
    typer.Option(
        "--show-pictures",
        help="Put pictures of the rows, real and recovered, into the report; only for data that may be shown.",
    ),
]
GateText = Annotated[
    str | None, typer.Option(help="What must hold, such as 'max_gain<0.2'; else exit code 1 (default: the plan's).")
]
TrustCode = Annotated[
    bool, typer.Option("--trust-code", help="Let the plan name code of others: pickled models, networks of packages.")
]
JUnit = Annotated[Path | None, typer.Option(help="Write the gate's outcome as JUnit XML to this file.")]
OnlyEstimate = Annotated[
    bool, typer.Option("--estimate", help="Only say how long it would take, its memory and disk; nothing is trained.")
]
DebugAttack = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="Only run the attack of this finding again, and show where it fails."),
]


@dataclass(frozen=True)
class _Asked:
    """Which audit the options mean."""

    plan: Path | None
    recorded: Path | None
    threats: tuple[str, ...]
    seed: int | None
    effort: Effort | None
    sweep: bool
    gate: str | None
    trust_code: bool


@app.command(epilog="Example: plumbob audit plan.yaml --out my-audit --workers 2")
def audit(
    plan: PlanFile = None,
    recorded: Recorded = None,
    threat: Threats = None,
    out: Out = Path("plumbob-audit"),
    seed: Seed = None,
    effort: HowMuch = None,
    workers: Workers = None,
    engine: Engine = "processes",
    store: SharedStore = None,
    sweep: Sweep = False,
    transcripts: Transcripts = False,
    show_pictures: ShowPictures = False,
    gate: GateText = None,
    trust_code: TrustCode = False,
    junit: JUnit = None,
    estimate: OnlyEstimate = False,
    debug_attack: DebugAttack = None,
    as_json: Json = False,
) -> None:
    """Run a federation, play the curious party, and write a report of what it learns."""
    with loading():
        from plumbob.app import run_audit
        from plumbob.auditing.planning.plan import check_gate

    asked = _Asked(plan, recorded, tuple(threat or ()), seed, effort, sweep, gate, trust_code)
    chosen = _chosen(asked)
    _check_junit(junit, check_gate(chosen) is not None)
    if estimate:
        _estimate(chosen, workers or 1, transcripts, trust_code, as_json)
        return
    if debug_attack is not None:
        _debug(chosen, debug_attack, trust_code)
        return
    with progress("auditing", "findings") as advance:
        result = run_audit(
            chosen,
            out,
            workers=workers,
            engine=engine,
            store=store,
            transcripts=transcripts,
            show_pictures=show_pictures,
            trust_code=trust_code,
            command=_command(asked, show_pictures, out),
            progress=advance,
            tell=_tell,
        )
    if store is not None and result.reused:
        print(f"plumbob: {result.reused:,} of {len(result.findings):,} findings were in the store", file=sys.stderr)
    if junit is not None and result.gate is not None:
        _write_junit(result.gate, junit)
    code = 0 if result.gate is None or result.gate.holds else 1
    with reader_may_leave(code):
        _print(result, as_json)
        _print_failures(result, trust_code)
        if result.gate is not None:
            _print_gate(result.gate, as_json)
    if code:
        raise typer.Exit(code)


def _chosen(asked: _Asked) -> Plan:
    """The plan, with what the options change in it."""
    from plumbob.auditing.planning.plan import Plan
    from plumbob.auditing.planning.plan_file import read_plan
    from plumbob.trust import Trust

    if asked.recorded is not None:
        plan = _plan_of_recording(asked.plan, asked.recorded, asked.threats)
    elif asked.threats:
        raise BadInput("--threat goes with --recorded; a plan names its own ('threats')")
    elif asked.plan is not None:
        plan = read_plan(asked.plan, trust=Trust(code=asked.trust_code))
    else:
        plan = Plan(effort="quick")
    changes: dict[str, Any] = {}
    if asked.seed is not None:
        changes["seed"] = _at_least(asked.seed, 0, "--seed")
    if asked.effort is not None:
        changes["effort"] = asked.effort.value
    if asked.gate is not None:
        changes["gate"] = asked.gate
    plan = plan.model_copy(update=changes)
    return plan.swept() if asked.sweep else plan


def _print(result: Result, as_json: bool) -> None:
    """The findings for programs, or the answer for people."""
    from plumbob.report.terminal import print_summary

    if as_json:
        for finding in result.findings:
            print(finding.to_line())
        return
    console = Console()
    print_summary(result.findings, console, result.conclusion, result.asked)
    console.print(f"Report: {result.report}", markup=False, highlight=False, soft_wrap=True)


def _print_failures(result: Result, trust_code: bool) -> None:
    """Which attacks failed, and the command that shows why."""
    from plumbob.auditing.concluding.failures import failures
    from plumbob.report.terminal import say

    console, plan = Console(stderr=True), result.folder / "plan.yaml"
    for failure in failures(result.findings):
        command = ["plumbob", "audit", str(plan), "--debug-attack", failure.key[:12], *["--trust-code"] * trust_code]
        say(console, f"plumbob: {failure.words}; to see why: {shlex.join(command)}", whole=True)


def _debug(plan: Plan, key: str, trust_code: bool) -> None:
    """One attack in this process, with its traceback if it fails or is interrupted."""
    from plumbob.app import attack_again

    again = attack_again(plan, key, trust_code=trust_code)
    try:
        again()
    except BaseException as error:
        traceback.print_exc()
        if isinstance(error, Exception):
            raise typer.Exit(1) from None
        raise
    print("plumbob: the attack ended well; here it ran without limits of time and memory", file=sys.stderr)


def _estimate(plan: Plan, workers: int, transcripts: bool, trust_code: bool, as_json: bool) -> None:
    from plumbob.app import estimate_audit
    from plumbob.report.estimated_cost import print_estimate

    made = estimate_audit(plan, workers=workers, transcripts=transcripts, trust_code=trust_code)
    if as_json:
        print(json.dumps(made.as_dict()))
    else:
        print_estimate(made, Console())


def _tell(made: Estimate) -> None:
    """One line beforehand, where somebody would have to wait for more than a minute."""
    from plumbob.report.estimated_cost import notice

    if notice(made):
        print(f"plumbob: {notice(made)}", file=sys.stderr)


def _write_junit(outcome: Outcome, junit: Path) -> None:
    from plumbob.app import save_text
    from plumbob.report import gating

    save_text(junit, gating.junit(outcome))


def _print_gate(outcome: Outcome, as_json: bool) -> None:
    """Say whether the gate holds."""
    from plumbob.report import gating

    if as_json:
        print(gating.gate_line(outcome))
    else:
        gating.print_gate(outcome, Console())


def _check_junit(path: Path | None, gated: bool) -> None:
    """Before the work starts: there must be something to write, and somewhere to write it."""
    if path is None:
        return
    if not gated:
        raise BadInput("--junit writes what the gate found; say which gate (--gate, or 'gate' in the plan)")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput(f"--junit: cannot write '{path}': the parent folder does not exist, or the path is a folder")


def _plan_of_recording(plan: Path | None, recorded: Path, threats: tuple[str, ...]) -> Plan:
    """The plan that `--recorded` stands for."""
    from plumbob.auditing.planning.plan_file import make_plan

    if plan is not None:
        raise BadInput("--recorded takes no plan; or name the run in the plan ('data: {recorded: ...}')")
    raw: dict[str, Any] = {"data": {"recorded": str(recorded)}}
    return make_plan(raw | ({"threats": list(threats)} if threats else {}), source="--recorded")


def _command(asked: _Asked, show_pictures: bool, out: Path) -> str:
    """The command that repeats an audit, without folders of this machine."""
    words = ["plumbob", "audit"] + ([asked.plan.name] if asked.plan else [])
    words += ["--recorded", asked.recorded.name] if asked.recorded else []
    words += [word for threat in asked.threats for word in ("--threat", threat)]
    words += ["--effort", asked.effort.value] if asked.effort else []
    words += ["--seed", str(asked.seed)] if asked.seed is not None else []
    words += ["--sweep"] if asked.sweep else []
    words += ["--show-pictures"] if show_pictures else []
    words += ["--trust-code"] if asked.trust_code else []
    words += ["--gate", asked.gate] if asked.gate is not None else []
    words += ["--out", out.name] if out.name else []
    return shlex.join(words)


def _at_least(value: int, least: int, option: str) -> int:
    if value < least:
        raise BadInput(f"{option}: expected at least {least}, got {value}")
    return value
