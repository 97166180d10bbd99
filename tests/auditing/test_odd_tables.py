"""Odd tables on which "none" was said although ten lines of NumPy learn the column: outliers, rare values, people who come again.

Every test first plays the simple attacker on what was sent, and then asks for the verdict on an attack that failed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from plumbob.attacks.base import Guess
from plumbob.auditing.concluding.judging import LIMIT, Verdict, judge_column, judge_label
from plumbob.federation import FloatArray
from plumbob.scoring._repeated_rows import first_of_each
from plumbob.scoring.ceiling import learnable
from plumbob.scoring.column_ceiling import ColumnCeiling
from plumbob.scoring.evidence import label_tie
from plumbob.scoring.held_columns import held_columns
from plumbob.scoring.score import Score, score
from plumbob.scoring.truth import Truth
from plumbob.threats import View
from tests.report import samples


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(25)


@dataclass(frozen=True)
class Judged:
    """One attack on one hidden column."""

    verdict: Verdict
    ceiling: ColumnCeiling
    score: Score

    @property
    def safe(self) -> bool:
        return self.verdict.level in ("none", "held already") and self.ceiling.high <= LIMIT


def judged(own: FloatArray, hidden: FloatArray, sent: FloatArray, guess: FloatArray) -> Judged:
    """The verdict on a guess of the hidden column, and the ceiling, where the active party gets a score of two classes."""
    up = 1 / (1 + np.exp(-sent))
    view = View.from_arrays(own=own, scores=np.stack([1 - up, up], axis=1), unknown=1)
    truth = Truth(view.unknown_names, hidden[:, None], np.zeros((0, 1)), np.zeros(0, dtype=np.int64))
    found = score(Guess(view.unknown_names, values=guess[:, None]), truth, view, np.random.default_rng(0))
    ceiling = learnable(view, truth, np.random.default_rng(0))[0]
    return Judged(judge_column(list(found.columns), found.metric, found.rows, 1), ceiling, found)


def unit(values: FloatArray) -> FloatArray:
    return (values - values.min()) / np.ptp(values)


def dull(hidden: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The guess of an attack that found nothing: about the mean for everybody."""
    return hidden.mean() + 0.05 * hidden.std() * rng.normal(size=len(hidden))


def test_an_outlier_elsewhere_hides_no_leak(rng: np.random.Generator) -> None:
    """A code such as 9999999999 for "not known" sets the range, and nobody who is attacked has it: the rest lie within 1e-6."""
    own, amounts = rng.random((600, 3)), rng.normal(1000, 300, 601)
    amounts[0] = 9_999_999_999
    hidden = unit(amounts)[1:]
    solved = (amounts[1:] - amounts.min()) / np.ptp(amounts)  # what algebra on exact scores gives
    assert np.corrcoef(solved, hidden)[0, 1] > 0.999
    assert judged(own, hidden, own[:, 0], solved).verdict.level == "exact"
    assert judged(own, np.full(600, 0.25), own[:, 0], np.full(600, 0.25)).verdict.level == "none"  # nothing varies


def test_who_has_a_rare_value_is_told_by_the_order(rng: np.random.Generator) -> None:
    """40 of 20,000 people: their rank correlation with any ranking is 0.08 at most, even if all are named."""
    own, hidden = rng.random((20_000, 2)), np.zeros(20_000)
    hidden[rng.permutation(20_000)[:40]] = 1.0
    sent = 3 * hidden + rng.normal(size=20_000)
    first = np.argsort(-sent)[:40]  # the simple attacker names those who are first
    assert hidden[first].mean() > 50 * hidden.mean()
    found = judged(own, hidden, sent, hidden.mean() + 1e-4 * (unit(sent) - 0.5))
    assert abs(found.verdict.rank) < 0.1
    assert found.verdict.level == "order"
    assert not judged(own, hidden, sent, dull(hidden, rng)).safe


def test_a_ceiling_says_nothing_of_a_value_that_four_people_have(rng: np.random.Generator) -> None:
    own, hidden = rng.random((1_500, 2)), np.zeros(1_500)
    hidden[:4] = 1.0
    assert judged(own, hidden, rng.normal(size=1_500), dull(hidden, rng)).ceiling.high == 1.0


@pytest.mark.parametrize("times", [2, 5, 25])
def test_people_who_come_again_are_no_code_and_teach_nothing(times: int, rng: np.random.Generator) -> None:
    """The same person under several ids: each row confirms the others, and whoever has all other rows has the person's own."""
    people = 1_500 // times
    own = np.repeat(rng.random((people, 3)), times, axis=0)
    hidden = np.repeat(unit(rng.normal(size=people)), times)
    sent = 4 * hidden - 2
    assert np.corrcoef(sent, hidden)[0, 1] > 0.999  # the score is the column
    found = judged(own, hidden, sent, dull(hidden, rng))
    assert found.verdict.level != "held already"
    assert found.ceiling.own < 0.2
    assert found.ceiling.low > 0.5
    assert found.score.rows == people  # nobody is counted twice
    assert not found.safe


def test_tables_of_few_combinations_keep_their_rows(rng: np.random.Generator) -> None:
    """Codes are found in discrete tables, where rows are alike because there are few ways to differ."""
    region = rng.integers(0, 12, 400)
    code = rng.permutation(12)[region] / 11
    assert first_of_each(region[:, None] / 11, code[:, None]) is None
    assert held_columns(region[:, None] / 11, ("region",), code[:, None]) == ("a code of 'region'",)


def test_swapped_names_of_classes_are_no_safety(rng: np.random.Generator) -> None:
    """A guess that is wrong for 65 % of the rows is right for 65 % once the names of the two classes are swapped."""
    label = np.repeat([0, 1], 600)
    guess = np.where(rng.random(1_200) < 0.65, 1 - label, label)
    swapped = float(np.mean(1 - guess == label))
    assert swapped > 0.6
    right, usual = float(np.mean(guess == label)), 0.5
    trial = samples.finding([samples.column("shop.basket", 0.04, rng)])
    trial = replace(
        trial,
        score=replace(
            trial.score, label_accuracy=right, label_baseline=usual, label_tie=label_tie(guess, label), rows=1_200
        ),
    )
    found = judge_label([trial], 1)
    assert found.level == "undecided"
    assert found.unseen is not None
    assert found.unseen > (swapped - usual) / (1 - usual)
