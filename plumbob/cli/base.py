"""What the commands share: the program, the progress bar, Control-C."""

from __future__ import annotations

import os
import sys
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
    help="Find leaks in vertical federated learning. Audit only federations you take part in and data you may use.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data_app = typer.Typer(help="List, verify and download known data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find leaks in vertical federated learning."""


@contextmanager
def reader_may_leave(code: int) -> Iterator[None]:
    """Print to somebody who may stop reading, as `head` does; the exit code stays what the command found."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:  # rich turns the first into the second
        if not isinstance(error, BrokenPipeError) and not isinstance(error.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(code) from None


@contextmanager
def progress(doing: str, what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with the time left if stderr is a terminal, else nothing."""
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
    """Control-C. A separate type, so that no library catches it first."""


def interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted
