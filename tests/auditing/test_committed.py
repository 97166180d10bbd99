"""The rules of verdicts hold on every finding that the docs show."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.judging import Verdict
from plumbob.auditing.running.finding import read_findings
from plumbob.report.answer import answers, overall
from plumbob.scoring.leak_levels import Level

DOCS = Path(__file__).parents[2] / "docs"
COMMITTED = sorted(DOCS.rglob("findings.jsonl"))


def keeps_the_rules(verdict: Verdict) -> bool:
    if verdict.level is Level.LEAK and verdict.low <= 0:
        return False
    if verdict.level is Level.NONE and (verdict.unseen is None or verdict.gain > verdict.unseen):
        return False
    return verdict.low <= verdict.gain <= verdict.high


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.relative_to(DOCS).as_posix())
def test_no_verdict_contradicts_its_numbers(path: Path) -> None:
    conclusion = conclude(read_findings(path))
    told = [verdict for summary in conclusion.summaries for verdict in summary.verdicts]
    told += [one.verdict for judged in conclusion.situations for one in judged.standings]
    assert told
    assert [verdict for verdict in told if not keeps_the_rules(verdict)] == []
    headline = overall(answers(conclusion))
    assert headline.startswith("Yes") == conclusion.level.leaks
    assert headline.startswith("No leak") == (conclusion.level is Level.NONE)
