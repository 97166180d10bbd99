"""`plumbob precheck`: warnings before anything is trained, in the clear or on secret shares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from plumbob.cli.base import Json, app

if TYPE_CHECKING:
    from plumbob.auditing.running.before_training import Checked

PlanFile = Annotated[Path, typer.Argument(help="The plan (YAML); only its data are read.")]
Secure = Annotated[
    bool, typer.Option("--secure", help="Compute on secret shares, as parties would who show each other no column.")
]


@app.command(epilog="Example: plumbob precheck plan.yaml --secure")
def precheck(plan: PlanFile, secure: Secure = False, as_json: Json = False) -> None:
    """Warn of columns that predictions will give away, before anything is trained."""
    from plumbob.auditing.planning.plan_file import read_plan
    from plumbob.auditing.running.before_training import check_before_training

    found = check_before_training(read_plan(plan), secure=secure)
    if as_json:
        print(json.dumps(found.as_dict()))
        return
    _print(found, Console())


def _print(found: Checked, console: Console) -> None:
    from plumbob.report.phrases import count
    from plumbob.report.terminal import say

    held = ", ".join(f"{party} {count(number, 'column')}" for party, number in found.columns.items())
    say(console, f"{count(found.rows, 'row')}; {held}", whole=True)
    for warning in found.warnings:
        say(console, f"- {warning.words}", whole=True)
    if not found.warnings:
        say(console, "No warning. That is no proof of safety.", whole=True)
    if found.secure:
        cost = f"{found.seconds:.1f} s of a processor for all, {found.bytes_sent / 1e6:,.1f} MB between parties and servers"
        say(console, f"On secret shares: {cost}; {count(found.opened, 'sum')} opened, no cell shown", whole=True)
