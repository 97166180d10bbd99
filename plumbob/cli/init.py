"""`plumbob init`: write a commented plan from options and questions."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from plumbob.cli.base import Effort, app
from plumbob.errors import BadInput

if TYPE_CHECKING:
    from plumbob.auditing.drafting.init_choices import Wishes


Parties = Annotated[list[str] | None, typer.Option(help="NAME=FILE, once for each party.")]
DataName = Annotated[str, typer.Option(help="Or a data set from `plumbob data list`.")]
IdColumn = Annotated[str, typer.Option("--id", help="The id column; the same name in every file.")]
Label = Annotated[str, typer.Option(help="The label column.")]
LabelBins = Annotated[int | None, typer.Option(help="Bin a numeric label into this many classes.")]
Active = Annotated[str, typer.Option(help="The party that holds the label, if several files have it.")]
Ignored = Annotated[list[str] | None, typer.Option(help="A column to ignore; may be repeated.")]
Sample = Annotated[int | None, typer.Option(min=40, help="Use a random sample of this many rows.")]
Protocols = Annotated[list[str] | None, typer.Option(help="How the parties train and predict; may be repeated.")]
Models = Annotated[
    list[Path] | None,
    typer.Option(help="An existing model file (.onnx, .json, .ubj, .pt, .skops, .joblib); may be repeated."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(help="One input of the model, in order, if its file does not name them; may be repeated."),
]
Threats = Annotated[list[str] | None, typer.Option(help="The threat model: who is curious; may be repeated.")]
Defences = Annotated[list[str] | None, typer.Option(help="none, sweep, or the name of a defence; may be repeated.")]
HowMuch = Annotated[Effort | None, typer.Option(help="How thorough the audit is.")]
Out = Annotated[Path | None, typer.Option(help="The plan file to write (default: plan.yaml).")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing plan.")]
TrustCode = Annotated[bool, typer.Option("--trust-code", help="Allow pickled models, which run code when loaded.")]


@app.command(epilog="Example: plumbob init --party bank=bank.csv --party shop=shop.csv --id id --label default")
def init(
    party: Parties = None,
    data: DataName = "",
    id_column: IdColumn = "",
    label: Label = "",
    label_bins: LabelBins = None,
    active: Active = "",
    ignore: Ignored = None,
    sample: Sample = None,
    protocol: Protocols = None,
    model: Models = None,
    column: Columns = None,
    threat: Threats = None,
    defence: Defences = None,
    effort: HowMuch = None,
    out: Out = None,
    force: Force = False,
    trust_code: TrustCode = False,
) -> None:
    """Write a commented plan from options; in a terminal, ask for whatever they leave open."""
    from plumbob.auditing.drafting.init_choices import Wishes, named_files
    from plumbob.trust import Trust

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
        trust=Trust(code=trust_code),
        threats=tuple(threat or ()),
        defences=tuple(defence or ()),
        effort=effort.value if effort else "",
        sample=sample,
    )
    _write(said, out, force)


def _write(said: Wishes, out: Path | None, force: bool) -> None:
    """Ask for what is missing, write the plan, and say what comes next."""
    from plumbob.app import save_text
    from plumbob.auditing.drafting.draft_plan import draft
    from plumbob.auditing.drafting.init_dialogue import completed
    from plumbob.report.phrases import plain
    from plumbob.report.terminal import say

    console = Console()
    asks = sys.stdin.isatty() and not said.enough
    place = None if asks and out is None else _free(out or Path("plan.yaml"), force)
    wishes = completed(said, _ask if asks else None, lambda sentence: say(console, plain(sentence), whole=True))
    while place is None:
        wanted = _ask("Where should the plan be written?", "plan.yaml") or "plan.yaml"
        try:
            place = _free(Path(wanted), force)
        except BadInput as error:
            say(console, plain(str(error)), whole=True)
    made = draft(wishes, place.absolute().parent)
    save_text(place, made.text)
    following = ["plumbob", "audit", str(place), *(["--trust-code"] if said.trust.code else [])]
    for line in (*made.seen, f"Plan: {place}", f"Next: {shlex.join(following)}"):
        say(console, plain(line), whole=True)


def _free(path: Path, force: bool) -> Path:
    """A path where the plan may be written; nothing is overwritten without --force."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput(f"--out: cannot write '{path}': the parent folder does not exist, or the path is a folder")
    if path.exists() and not force:
        raise BadInput(f"'{path}' already exists; name another file (--out) or overwrite it (--force)")
    return path


def _ask(question: str, default: str) -> str:
    """One answer from the terminal; an empty answer means the default."""
    try:
        return input(f"{question}{f' [{default}]' if default else ''}\n> ")
    except EOFError as error:
        raise BadInput("input ended before the last question; nothing was written") from error
