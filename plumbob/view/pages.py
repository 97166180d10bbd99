"""The two pages as HTML: the list of audits, and two of them side by side. Every text from a file is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from jinja2 import Environment

from plumbob.report.answer import LEVEL_WORDS
from plumbob.report.page import templates
from plumbob.report.phrases import plain, short
from plumbob.scoring.leak_levels import Level
from plumbob.view.compare import compare
from plumbob.view.runs import Opened, Run

VERDICTS = {str(level): words for level, words in LEVEL_WORDS.items()} | {"": "no verdict"}


def list_page(folder: str, runs: Sequence[Run]) -> str:
    """Every audit in a table that can be filtered and sorted, with a form to choose two of them."""
    return (
        _templates()
        .get_template("view.html.j2")
        .render(
            folder=plain(folder),
            runs=runs,
            verdicts=[level for level in VERDICTS if any(run.verdict == level for run in runs)],
            protocols=sorted({name for run in runs for name in run.protocols}),
            defences=sorted({name for run in runs for name in run.defences}),
        )
    )


def compare_page(one: Opened, other: Opened) -> str:
    """Two audits side by side."""
    return (
        _templates()
        .get_template("compare.html.j2")
        .render(
            one=one.run, other=other.run, found=compare(one, other), swapped=compare_link(other.run.path, one.run.path)
        )
    )


def message_page(heading: str, words: str) -> str:
    """A page with one sentence, and the way back."""
    return _templates().get_template("message.html.j2").render(heading=heading, words=words)


def style() -> str:
    """The report's style sheet, and what the pages add to it."""
    found = _templates()
    return found.get_template("_style.css.j2").render() + found.get_template("view.css").render()


def script() -> str:
    """Sorting as in the report, filtering, choosing two, dark mode and keys."""
    found = _templates()
    return found.get_template("_sort.js.j2").render() + found.get_template("view.js").render()


def report_link(path: str) -> str:
    """Where the report of an audit is served.

    >>> report_link("a b/ü"), report_link(".")
    ('/run/a%20b/%C3%BC/report.html', '/run/./report.html')
    """
    return f"/run/{quote(path)}/report.html"


def compare_link(one: str, other: str) -> str:
    return "/compare?" + urlencode([("run", one), ("run", other)])


def _templates() -> Environment:
    found = templates()
    found.globals |= {"report_link": report_link, "level_ranks": {level: i for i, level in enumerate(("", *Level))}}
    found.filters |= {"short": short, "pair": lambda name: (plain(name), short(name))}
    found.filters |= {"pair_verdict": lambda level: (level, VERDICTS[level])}
    return found
