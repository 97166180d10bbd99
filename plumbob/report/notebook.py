"""A result for people in Python: as text, as a table in a notebook, as a DataFrame."""

from __future__ import annotations

import html
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console

from plumbob.auditing.concluding.conclusion import Conclusion
from plumbob.auditing.concluding.summarise import Summary
from plumbob.auditing.running.finding import Finding
from plumbob.report import answer as words
from plumbob.report import phrases
from plumbob.report.facts import Asked
from plumbob.report.terminal import print_summary

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 110  # characters of a line of text


def as_text(findings: Sequence[Finding], conclusion: Conclusion, asked: Asked) -> str:
    """What the command line prints, without colours."""
    stream = StringIO()
    print_summary(findings, Console(file=stream, width=WIDTH, no_color=True, highlight=False), conclusion, asked)
    return stream.getvalue().rstrip()


def as_html(conclusion: Conclusion) -> str:
    """The answer and the worst verdict on every column, for a notebook."""
    found = words.answers(conclusion)
    told = [
        (
            column.verdict.column,
            f"{words.LEVEL_ICONS[column.level]} {column.words}",
            phrases.label(column.attack),
            column.where,
            column.learner,
        )
        for column in words.worst_columns(found)
    ]
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>" for cells in told)
    heads = "".join(f"<th>{head}</th>" for head in ("column", "verdict", "worst attack", "where", "who learns it"))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<p><b>{html.escape(words.overall(found))}.</b></p>{table}"


def as_frame(summaries: Sequence[Summary]) -> pd.DataFrame:
    """One row per column and setting: what the attack learnt of it, with its interval."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "data": summary.setting.data,
                "protocol": summary.setting.protocol,
                "threat": summary.setting.threat,
                "defence": summary.setting.defence,
                "attack": summary.setting.attack,
                "unknown": summary.setting.unknown,
                "column": verdict.column,
                "level": str(verdict.level),
                "gain": verdict.gain,
                "low": verdict.low,
                "high": verdict.high,
                "unseen": verdict.unseen,
                "r2": verdict.r2,
                "verdict": verdict.words,
            }
            for summary in summaries
            for verdict in (*summary.verdicts, *([summary.label] if summary.label is not None else []))
        ]
    )
