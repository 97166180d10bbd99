"""What all tests share: which data files a test may read, which examples hypothesis draws, and why tests were skipped.

A test that reads a data file says so: `@pytest.mark.needs_data("bank")`, or `needs_data(parameter="name")` where a parameter
names the data set or its file. It is skipped where the file is missing. All other tests, and the
collection of tests, see no data files at all, so a forgotten mark fails on every machine, not only on one without data.

The same code gets the same verdict: examples are drawn from a fixed seed, unless HYPOTHESIS_PROFILE=search asks for new ones.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

gc.disable()  # until all is collected

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("PLUMBOB_DATA", str(SHARED))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from plumbob.data.registry import data_folder, find  # noqa: E402  # the numeric libraries read the variables above as they load

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

NOWHERE = f"{os.devnull}/no-data-files"
# Handed on by a variable of its own: workers begin with the environment that is left here.
DATA = Path(os.environ.setdefault("PLUMBOB_DATA_OF_TESTS", str(data_folder() or NOWHERE)))
os.environ["PLUMBOB_DATA"] = NOWHERE


def needed_files(item: pytest.Item) -> set[str]:
    """The data files that an item's marks name; built-in sets have none."""
    names: set[str] = set()
    for mark in item.iter_markers("needs_data"):
        names.update(mark.args)
        if "parameter" in mark.kwargs:
            names.add(item.callspec.params[mark.kwargs["parameter"]])  # type: ignore[attr-defined]  # only functions have it
    return {file for name in names if (file := name if "/" in name else find(name).file) is not None}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests at the papers' sizes may take longer than the timeout of pyproject.toml."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3_600))


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking for garbage in it takes a tenth of a second, many times."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _warm() -> None:
    """Audits in this process have the process of their attacks from a server that has loaded what it needs."""
    from tests.commands import warm_attackers

    warm_attackers()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before fixtures of any scope are made: they see what the first test that asks for them may see."""
    files = needed_files(item)
    for file in sorted(files):
        if not (DATA / file).is_file():
            pytest.skip(f"data file '{file}' is not in PLUMBOB_DATA")
    os.environ["PLUMBOB_DATA"] = str(DATA) if files else NOWHERE


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    os.environ["PLUMBOB_DATA"] = NOWHERE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tests were skipped, and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section(f"{reasons.total()} skipped")
        for reason, count in sorted(reasons.items()):
            terminalreporter.line(f"{count:5}  {reason}")
