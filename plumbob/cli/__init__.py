"""The command line: parse, call, print. Each command loads what it needs when it runs."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import NoReturn, TextIO

from plumbob.cli import audit, init, other_commands, precheck  # noqa: F401  # importing a command adds it to the program
from plumbob.cli.base import Interrupted, app, interrupt
from plumbob.errors import BadInput
from plumbob.files import wrong_path
from plumbob.registry import BrokenPackage

__all__ = ["app", "main"]
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
TRACEBACK = "PLUMBOB_TRACEBACK"  # set it to see tracebacks of our own mistakes


def main() -> None:
    """Entry point. Bad input is one sentence and exit code 2; an interruption is exit code 130 and keeps finished work."""
    signal.signal(signal.SIGINT, interrupt)
    warnings.showwarning = _warn
    try:
        _run()
    except BadInput as error:
        _stop(str(error), 2)
    except Interrupted:
        _stop("interrupted; finished work is kept, run the same command again to continue", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing more to say
        sys.exit(0)
    except SystemExit as stop:
        if isinstance(stop.__context__, OSError) and stop.__context__.errno == errno.EPIPE:
            sys.exit(0)  # the reader left, which typer counts as a failure
        raise
    except Exception as error:
        wrong = wrong_path(error) if isinstance(error, OSError) else None
        if wrong is not None:  # whatever a path of the user's leads to, wherever it was opened
            _stop(str(wrong), 2)
        if (
            isinstance(error, OSError) and error.filename is None and error.errno in FULL
        ):  # files are named: see plumbob/app.py
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            _stop(f"cannot write to standard output: {os.strerror(error.errno).lower()}", 2)
        if os.environ.get(TRACEBACK):
            raise
        _stop(_mistake(error), 70)


def _run() -> None:
    try:
        app()
    except SystemExit as stop:
        if not stop.code:
            sys.stdout.flush()  # now, for at the interpreter's end nobody could say what went wrong
        raise


def _mistake(error: Exception) -> str:
    """Where Plumbob itself failed, without the exception's message: messages of libraries often contain cells of the data."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "plumbob" in Path(frame.filename).parts]
    place = f" in {Path(ours[-1].filename).name}, line {ours[-1].lineno}" if ours else ""
    return (
        f"internal error: {type(error).__name__}{place}; please report it; {TRACEBACK}=1 shows the whole "
        "traceback, which may hold private values"
    )


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A package that is broken, as one line; what libraries warn of, as Python does."""
    if issubclass(category, BrokenPackage):
        _tell(f"warning: {message}")
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr)


def _tell(sentence: str) -> None:
    """One line on stderr. Names in it come from files, so terminal control characters are removed."""
    from plumbob.report.phrases import plain

    print(f"plumbob: {' '.join(plain(sentence).split())}", file=sys.stderr)


def _stop(sentence: str, code: int) -> NoReturn:
    _tell(sentence)
    sys.exit(code)
