"""What the commands share: the program itself, the bar that shows progress, Control-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from plumbob import __version__

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

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class Effort(StrEnum):
    quick = "quick"
    standard = "standard"
    thorough = "thorough"


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


@contextmanager
def progress(doing: str, what: str) -> Iterator[Callable[[int, int], None]]:
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


class Interrupted(BaseException):
    """Control-C. A type of our own, so that no library on the way answers it in our place."""


def interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted
