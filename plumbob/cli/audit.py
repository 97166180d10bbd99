"""`plumbob audit`: a plan or a recorded run in, a report out, and an exit code for CI."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from plumbob.cli.base import Effort, Json, app, progress
from plumbob.errors import BadInput

if TYPE_CHECKING:  # a command loads what it needs when it runs
    from plumbob.auditing.estimate import Estimate
    from plumbob.auditing.finding import Finding
    from plumbob.auditing.gate import Gate
    from plumbob.auditing.plan import Plan


@app.command(epilog="Example: plumbob audit plan.yaml --out my-audit --workers 2")
def audit(
    plan: Annotated[
        Path | None, typer.Argument(help="The plan (YAML). Without one, built-in data are audited.")
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(help="A recorded run to judge instead: a saved transcript, or a folder of plain files."),
    ] = None,
    threat: Annotated[
        list[str] | None, typer.Option(help="Who is curious in the recorded run; may be given several times.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for report and findings; an interrupted audit goes on there.")
    ] = Path("plumbob-audit"),
    seed: Annotated[int | None, typer.Option(help="Seed of every random draw (default: the plan's, else 0).")] = None,
    effort: Annotated[Effort | None, typer.Option(help="Trials, shares of unknown columns and rows.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="How many work at once (default: 1, or all of a cluster).")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Where: processes, ray, dask, ray://HOST:PORT or dask://HOST:PORT.")
    ] = "processes",
    store: Annotated[
        Path | None,
        typer.Option(envvar="PLUMBOB_STORE", help="Folder of findings that audits share; none is made twice."),
    ] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="Try every defence, and say which one to take.")] = False,
    transcripts: Annotated[bool, typer.Option(help="Keep the transcripts too. They hold raw private values.")] = False,
    show_pictures: Annotated[
        bool,
        typer.Option(
            "--show-pictures",
            help="Put pictures of the rows, real and recovered, into the report; only for data that may be shown.",
        ),
    ] = False,
    gate: Annotated[
        str | None, typer.Option(help="What must hold, such as 'max_gain<0.2'; else exit code 1 (default: the plan's).")
    ] = None,
    trust_code: Annotated[
        bool,
        typer.Option("--trust-code", help="Let the plan name code of others: pickled models, networks of packages."),
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Write the gate's outcome as JUnit XML to this file.")] = None,
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="Only say how long it would take, its memory and disk; nothing is trained."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a federation, play the curious party, and write a report of what it learns."""
    from plumbob.app import run_audit
    from plumbob.auditing.plan import Plan, check_gate
    from plumbob.auditing.plan_file import read_plan
    from plumbob.protocols.networks import trusting
    from plumbob.report.terminal import print_summary

    if recorded is not None:
        chosen = _plan_of_recording(plan, recorded, threat)
    elif threat:
        raise BadInput("--threat goes with --recorded; a plan names its own ('threats')")
    else:
        chosen = read_plan(plan, trust_code=trust_code) if plan is not None else Plan(effort="quick")
    changes: dict[str, Any] = {}
    if seed is not None:
        changes["seed"] = _at_least(seed, 0, "--seed")
    if effort is not None:
        changes["effort"] = effort.value
    if gate is not None:
        changes["gate"] = gate
    chosen = chosen.model_copy(update=changes)
    with trusting(trust_code):
        chosen = chosen.swept() if sweep else chosen
    conditions = check_gate(chosen)
    _check_junit(junit, conditions is not None)
    if estimate:
        _estimate(chosen, workers or 1, transcripts, trust_code, as_json)
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
            command=_command(plan, seed, effort, sweep, show_pictures, gate, recorded, threat, trust_code, out),
            progress=advance,
            tell=_tell,
        )
    if store is not None and result.reused:
        print(f"plumbob: {result.reused:,} of {len(result.findings):,} findings were in the store", file=sys.stderr)
    if as_json:
        for finding in result.findings:
            print(finding.to_line())
    else:
        console = Console()
        print_summary(result.findings, console)
        console.print(f"Report: {result.report}", markup=False, highlight=False, soft_wrap=True)
    if conditions is not None:
        with trusting(trust_code):
            _pass(conditions, chosen, result.findings, junit, as_json)


def _estimate(plan: Plan, workers: int, transcripts: bool, trust_code: bool, as_json: bool) -> None:
    from plumbob.app import estimate_audit
    from plumbob.report.expense import print_estimate

    made = estimate_audit(plan, workers=workers, transcripts=transcripts, trust_code=trust_code)
    if as_json:
        print(json.dumps(made.as_dict()))
    else:
        print_estimate(made, Console())


def _tell(made: Estimate) -> None:
    """One line beforehand, where somebody would have to wait for more than a minute."""
    from plumbob.report.expense import notice

    if notice(made):
        print(f"plumbob: {notice(made)}", file=sys.stderr)


def _pass(gate: Gate, plan: Plan, findings: Sequence[Finding], junit: Path | None, as_json: bool) -> None:
    """Say whether the gate holds, and leave with exit code 1 if it does not."""
    from plumbob.app import save_text
    from plumbob.auditing.expand import unmeasured
    from plumbob.report import gating

    checks, untold = gate.check(findings), unmeasured(plan)
    if junit is not None:
        save_text(junit, gating.junit(gate, checks, untold))
    if as_json:
        print(gating.gate_line(gate, checks, untold))
    else:
        gating.print_gate(gate, checks, untold, Console())
    if not all(check.holds for check in checks):
        raise typer.Exit(1)


def _check_junit(path: Path | None, gated: bool) -> None:
    """Before the work starts: there must be something to write, and somewhere to write it."""
    if path is None:
        return
    if not gated:
        raise BadInput("--junit writes what the gate found; say which gate (--gate, or 'gate' in the plan)")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput(f"--junit: '{path}' is no file in a folder that exists")


def _plan_of_recording(plan: Path | None, recorded: Path, threats: list[str] | None) -> Plan:
    """The plan that `--recorded` stands for."""
    from plumbob.auditing.plan_file import make_plan

    if plan is not None:
        raise BadInput("--recorded takes no plan; or name the run in the plan ('data: {recorded: ...}')")
    raw: dict[str, Any] = {"data": {"recorded": str(recorded)}}
    return make_plan(raw | ({"threats": threats} if threats else {}), source="--recorded")


def _command(
    plan: Path | None,
    seed: int | None,
    effort: Effort | None,
    sweep: bool,
    show_pictures: bool,
    gate: str | None = None,
    recorded: Path | None = None,
    threats: list[str] | None = None,
    trust_code: bool = False,
    out: Path | None = None,
) -> str:
    """The command that repeats an audit, without folders of this machine."""
    words = ["plumbob", "audit"] + ([plan.name] if plan else [])
    words += ["--recorded", recorded.name] if recorded else []
    words += [word for threat in threats or () for word in ("--threat", threat)]
    words += ["--effort", effort.value] if effort else []
    words += ["--seed", str(seed)] if seed is not None else []
    words += ["--sweep"] if sweep else []
    words += ["--show-pictures"] if show_pictures else []
    words += ["--trust-code"] if trust_code else []
    words += ["--gate", gate] if gate is not None else []
    words += ["--out", out.name] if out and out.name else []
    return shlex.join(words)


def _at_least(value: int, least: int, option: str) -> int:
    if value < least:
        raise BadInput(f"{option}: expected at least {least}, got {value}")
    return value
