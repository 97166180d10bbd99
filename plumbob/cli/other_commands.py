"""The commands other than `audit` and `init`: claims, lists, data, benchmarks, and the viewer."""

from __future__ import annotations

import json
import sys
import webbrowser
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from plumbob.cli.base import Interrupted, Json, app, data_app, progress
from plumbob.errors import BadInput


class Scale(StrEnum):
    smoke = "smoke"
    paper = "paper"


class Listing(StrEnum):
    attacks = "attacks"
    defences = "defences"
    protocols = "protocols"
    threats = "threats"
    matrix = "matrix"
    data = "data"
    claims = "claims"


@app.command(epilog="Example: plumbob reproduce luo2021/L3 --scale smoke")
def reproduce(
    what: Annotated[str, typer.Argument(help="PAPER or PAPER/CLAIM (default: every claim).")] = "",
    scale: Annotated[Scale, typer.Option(help="smoke: seconds per claim; paper: the paper's sizes.")] = Scale.smoke,
    out: Annotated[
        Path | None, typer.Option(help="Folder for outcomes; a claim with an outcome there is not run again.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Number of groups of claims to check in parallel.")] = 1,
    as_json: Json = False,
) -> None:
    """Check the papers' claims: reproduced, contradicted (with the reason), or open."""
    from plumbob import papers
    from plumbob.app import environment
    from plumbob.papers.results import write_pages

    claims = papers.select(what)
    with progress("reproducing", "claims") as advance:
        outcomes = []
        advance(0, len(claims))
        for found in papers.outcomes(claims, scale.value, seed, out, workers):
            outcomes += found
            advance(len(outcomes), len(claims))
            for one in found if as_json else ():
                print(one.to_line(), flush=True)
    if not as_json:
        order = [claim.name for claim in claims]
        papers.print_outcomes(sorted(outcomes, key=lambda one: order.index(one.claim)), Console())
    if out is not None:
        for page in write_pages(out, list(papers.CLAIMS.values()), environment()):
            print(f"Page: {page}", file=sys.stderr)


@app.command("list", epilog="Example: plumbob list threats")
def list_(what: Annotated[Listing, typer.Argument(help="What to list.")], as_json: Json = False) -> None:
    """List attacks, defences, protocols, threats, data sets or claims, or the matrix of which attack applies where."""
    from plumbob import listing

    entries = listing.entries(what.value)
    if as_json:
        print(json.dumps(entries, indent=1))
        return
    listing.show(what.value, entries, Console())


@app.command(epilog="Example: plumbob view my-audits --port 0 --no-browser")
def view(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; audits in its subfolders are included.")],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Local port; 0 picks a free one.")] = 8765,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")] = False,
    as_json: Json = False,
) -> None:
    """Browse the audits in a folder: list, filter, compare two, open reports. Served on this machine only; Control-C stops it."""
    from plumbob.view.runs import Runs
    from plumbob.view.server import Server

    if as_json:
        print(json.dumps([run.facts() for run in Runs(folder).all()], indent=1))
        return
    try:
        with Server(folder, port) as server:
            print(f"Audits: {server.url} (Control-C stops it)", flush=True)
            if not no_browser and sys.stdout.isatty():
                webbrowser.open(server.url)
            server.serve_forever()
    except Interrupted:  # the only way to end it, so it is no failure: exit code 0
        return


@app.command(epilog="Example: plumbob bench encryption --json")
def bench(
    words: Annotated[str, typer.Argument(help="Run only benchmarks whose name contains one of these words.")] = "",
    as_json: Json = False,
) -> None:
    """Measure speed as ratios within one run: fast code against a plain loop, and cost against size."""
    benches = _benchmarks()
    console = Console()
    for measured in benches.run(words, Console(stderr=True) if sys.stderr.isatty() else None):
        if as_json:
            print(json.dumps(measured), flush=True)
        else:
            benches.show(measured, console)


def _benchmarks() -> Any:
    """The benchmarks are in the source tree and are not installed with the package."""
    import plumbob

    tree = Path(plumbob.__file__).parents[1]
    if not (tree / "benchmarks" / "__init__.py").exists():
        raise BadInput("benchmarks are part of the source tree, not of the installed package; run this in a checkout")
    sys.path.insert(0, str(tree))
    return import_module("benchmarks")


@data_app.command("list", epilog="Example: plumbob data list")
def data_list(as_json: Json = False) -> None:
    """List the data sets, their sizes and whether their files are present."""
    list_(Listing.data, as_json)


@data_app.command("verify", epilog="Example: plumbob data verify drive")
def data_verify(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets (default: all).")] = None,
) -> None:
    """Verify the files against their checksums."""
    from plumbob.data import registry
    from plumbob.data.catalogue import DATA_SETS

    grid = Grid("data set", "file", box=None)
    states = [(name, registry.verify(name)) for name in names or DATA_SETS]
    for name, state in states:
        grid.add_row(name, state)
    Console().print(grid)
    if any(state == "changed" for _, state in states):
        raise BadInput("a file does not match its checksum; fetch it again")


@data_app.command("fetch", epilog="Example: plumbob data fetch satellite")
def data_fetch(names: Annotated[list[str], typer.Argument(help="Data sets to download.")]) -> None:
    """Download data sets from their official sources and verify size and checksum."""
    from plumbob.data import fetch

    for name in names:
        print(f"{name}: {fetch.fetch(name)}")
