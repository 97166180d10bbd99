"""The command line: parse, call, print."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import traceback
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as Grid

from plumbob import __version__
from plumbob.errors import BadInput

if TYPE_CHECKING:  # a command loads what it needs when it runs
    from plumbob.audit.estimate import Estimate
    from plumbob.audit.finding import Finding
    from plumbob.audit.gate import Gate
    from plumbob.audit.plan import Plan

app = typer.Typer(
    name="plumbob",
    help="Find the leaks in vertical federated learning: audit a federation you take part in, on data you may use.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data_app = typer.Typer(help="The data sets Plumbob knows.", no_args_is_help=True)
app.add_typer(data_app, name="data")

TRACEBACK = "PLUMBOB_TRACEBACK"  # set it to see tracebacks of our own mistakes
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class Effort(StrEnum):
    quick = "quick"
    standard = "standard"
    thorough = "thorough"


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


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"plumbob {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Find the leaks in vertical federated learning."""


@app.command(epilog="Example: plumbob init --party bank=bank.csv --party shop=shop.csv --id id --label default")
def init(
    party: Annotated[list[str] | None, typer.Option(help="NAME=FILE, once for each party.")] = None,
    data: Annotated[str, typer.Option(help="Or the name of a data set of `plumbob data list`.")] = "",
    id_column: Annotated[str, typer.Option("--id", help="The column with the ids, in every file.")] = "",
    label: Annotated[str, typer.Option(help="The label column.")] = "",
    label_bins: Annotated[int | None, typer.Option(help="Cut a label of many numbers into so many classes.")] = None,
    active: Annotated[str, typer.Option(help="The party with the label, if several files have it.")] = "",
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=40, help="So many rows, for files larger than memory or to save time.")
    ] = None,
    protocol: Annotated[list[str] | None, typer.Option(help="How they train and predict; may be repeated.")] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(help="A model you have already (.onnx, .json, .ubj, .pt, .skops, .joblib); may be repeated."),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="The model's inputs in order, if its file does not name them; repeated.")
    ] = None,
    threat: Annotated[list[str] | None, typer.Option(help="Who is curious; may be repeated.")] = None,
    defence: Annotated[list[str] | None, typer.Option(help="none, sweep or names; may be repeated.")] = None,
    effort: Annotated[Effort | None, typer.Option(help="How much work the audit is.")] = None,
    out: Annotated[Path | None, typer.Option(help="The plan to write (default: plan.yaml).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the plan if it is there.")] = False,
    trust_code: Annotated[
        bool, typer.Option("--trust-code", help="Let the model be a pickle, which runs code.")
    ] = False,
) -> None:
    """Write a commented plan from flags, or by asking where they do not say enough and a person is there."""
    from plumbob.app import write_whole
    from plumbob.audit.draft import Wishes, completed, draft, named_files
    from plumbob.report.answer import plain
    from plumbob.report.terminal import say

    console = Console()
    said = Wishes(
        data=data,
        parties=named_files(party or ()),
        id=id_column,
        label=label,
        label_bins=label_bins,
        active=active,
        ignore=tuple(ignore or ()),
        protocols=tuple(protocol or ()),
        models=tuple(model or ()),
        columns=tuple(column or ()),
        trust_code=trust_code,
        threats=tuple(threat or ()),
        defences=tuple(defence or ()),
        effort=effort.value if effort else "",
        sample=sample,
    )
    asks = sys.stdin.isatty() and not said.enough
    place = None if asks and out is None else _free(out or Path("plan.yaml"), force)
    wishes = completed(said, _ask if asks else None, lambda sentence: say(console, plain(sentence), whole=True))
    while place is None:
        wanted = _ask("Where is the plan written?", "plan.yaml") or "plan.yaml"
        try:
            place = _free(Path(wanted), force)
        except BadInput as error:
            say(console, plain(str(error)), whole=True)
    made = draft(wishes, place.absolute().parent)
    write_whole(place, made.text)
    following = ["plumbob", "audit", str(place), *(["--trust-code"] if trust_code else [])]
    for line in (*made.seen, f"Plan: {place}", f"Next: {shlex.join(following)}"):
        say(console, plain(line), whole=True)


def _free(path: Path, force: bool) -> Path:
    """A place where a plan may be written: nothing is overwritten unasked."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput(f"--out: '{path}' is no file in a folder that exists")
    if path.exists() and not force:
        raise BadInput(f"'{path}' is there already; name another file (--out) or overwrite it (--force)")
    return path


def _ask(question: str, default: str) -> str:
    """One answer from the person at the terminal; nothing typed means the default."""
    try:
        return input(f"{question}{f' [{default}]' if default else ''}\n> ")
    except EOFError as error:
        raise BadInput("the answers ended before the last question; nothing was written") from error


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
    from plumbob.audit.plan import Plan, check_gate, read_plan
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
    with _progress("auditing", "findings") as advance:
        result = run_audit(
            chosen,
            out,
            workers=workers,
            engine=engine,
            store=store,
            transcripts=transcripts,
            show_pictures=show_pictures,
            trust_code=trust_code,
            command=_command(plan, seed, effort, sweep, show_pictures, gate, recorded, threat, trust_code),
            progress=advance,
            tell=_tell,
        )
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
    from plumbob.app import write_whole
    from plumbob.audit.run import unmeasured
    from plumbob.report import gating

    checks, untold = gate.check(findings), unmeasured(plan)
    if junit is not None:
        write_whole(junit, gating.junit(gate, checks, untold))
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
    from plumbob.audit.plan import make_plan

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
    return shlex.join(words)


@app.command(epilog="Example: plumbob reproduce luo2021/L3 --scale smoke")
def reproduce(
    what: Annotated[str, typer.Argument(help="PAPER or PAPER/CLAIM; without it, every claim.")] = "",
    scale: Annotated[Scale, typer.Option(help="smoke: seconds a claim; paper: the paper's sizes.")] = Scale.smoke,
    out: Annotated[
        Path | None, typer.Option(help="Folder to keep outcomes in; a claim found there is not run again.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Groups of claims to check at the same time.")] = 1,
    as_json: Json = False,
) -> None:
    """Check the papers' claims: reproduced, contradicted (and why), or open."""
    from plumbob import papers
    from plumbob.app import environment
    from plumbob.papers.results import write_pages

    claims = papers.select(what)
    with _progress("reproducing", "claims") as advance:
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
        for page in write_pages(out, papers.CLAIMS, environment()):
            print(f"Page: {page}", file=sys.stderr)


@app.command("list", epilog="Example: plumbob list threats")
def list_(what: Annotated[Listing, typer.Argument(help="What to list.")], as_json: Json = False) -> None:
    """List what Plumbob has: attacks, defences, protocols, threats, the matrix of what fits whom, data, claims."""
    from plumbob import listing

    entries = listing.entries(what.value)
    if as_json:
        print(json.dumps(entries, indent=1))
        return
    listing.show(what.value, entries, Console())


@app.command(epilog="Example: plumbob view my-audits --port 0 --no-browser")
def view(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; audits in folders below it count too.")],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on this machine; 0 picks a free one.")] = 8765,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")] = False,
    as_json: Json = False,
) -> None:
    """Browse the audits under a folder: list, filter, compare two, open reports. On this machine only; Control-C ends it."""
    from plumbob.view.runs import Runs
    from plumbob.view.server import Server

    if as_json:
        print(json.dumps([run.facts() for run in Runs(folder).all()], indent=1))
        return
    try:
        with Server(folder, port) as server:
            print(f"Audits: {server.url} (Control-C ends it)", flush=True)
            if not no_browser and sys.stdout.isatty():
                webbrowser.open(server.url)
            server.serve_forever()
    except _Interrupted:  # the only way to end it, so it is no failure: exit code 0
        return


@app.command(epilog="Example: plumbob bench encryption --json")
def bench(
    words: Annotated[str, typer.Argument(help="Only benchmarks with these words in their name.")] = "",
    as_json: Json = False,
) -> None:
    """Measure speed as ratios in one run: ours against the plain loop, and cost against size."""
    import plumbob.bench as benches

    console = Console()
    for measured in benches.run(words, Console(stderr=True) if sys.stderr.isatty() else None):
        if as_json:
            print(json.dumps(measured), flush=True)
        else:
            benches.show(measured, console)


@data_app.command("list", epilog="Example: plumbob data list")
def data_list(as_json: Json = False) -> None:
    """List the data sets, their sizes and whether their files are here."""
    list_(Listing.data, as_json)


@data_app.command("verify", epilog="Example: plumbob data verify drive")
def data_verify(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets; all if none is named.")] = None,
) -> None:
    """Compare the files with their checksums."""
    from plumbob.data import registry
    from plumbob.data.catalogue import DATA_SETS

    grid = Grid("data set", "file", box=None)
    states = [(name, registry.verify(name)) for name in names or DATA_SETS]
    for name, state in states:
        grid.add_row(name, state)
    Console().print(grid)
    if any(state == "changed" for _, state in states):
        raise BadInput("a file differs from its checksum; fetch it again")


@data_app.command("fetch", epilog="Example: plumbob data fetch satellite")
def data_fetch(names: Annotated[list[str], typer.Argument(help="Data sets to download.")]) -> None:
    """Download data sets from their official sources, checked by size and checksum."""
    from plumbob.data import fetch

    for name in names:
        print(f"{name}: {fetch.fetch(name)}")


@contextmanager
def _progress(doing: str, what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left when a person watches, nothing otherwise."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    bar = Progress(
        TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeRemainingColumn(), console=console
    )
    with bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _at_least(value: int, least: int, option: str) -> int:
    if value < least:
        raise BadInput(f"{option}: expected at least {least}, got {value}")
    return value


class _Interrupted(BaseException):
    """Control-C. A type of our own, so that no library on the way answers it in our place."""


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise _Interrupted


def main() -> None:
    """Entry point: bad input is one sentence and exit code 2, an interruption is 130; what is done is kept."""
    signal.signal(signal.SIGINT, _interrupt)
    try:
        app()
    except BadInput as error:
        _stop(str(error), 2)
    except _Interrupted:
        _stop("interrupted; what is done is kept, the same command goes on from there", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing more to say
        sys.exit(0)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _stop(_mistake(error), 70)


def _mistake(error: Exception) -> str:
    """Where Plumbob itself failed, without the message: those of libraries often hold cells of the data."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "plumbob" in Path(frame.filename).parts]
    place = f" in {Path(ours[-1].filename).name}, line {ours[-1].lineno}" if ours else ""
    return (
        f"a mistake of Plumbob's own: {type(error).__name__}{place}; please report it; {TRACEBACK}=1 shows the whole "
        "traceback, which may hold private values"
    )


def _stop(sentence: str, code: int) -> NoReturn:
    """One line on stderr. Names in it come from files: what would steer the terminal is left out."""
    from plumbob.report.answer import plain

    print(f"plumbob: {' '.join(plain(sentence).split())}", file=sys.stderr)
    sys.exit(code)
