"""Cells that were missing, and that preparation filled, are nobody's data: they count nowhere, and no attack is told which."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.attacks.base import Guess
from plumbob.errors import BadInput
from plumbob.federation import FILLED, Federation, split_at_random
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.base import opened
from plumbob.recorded.open_recording import open_recorded
from plumbob.scoring.ceiling import learnable
from plumbob.scoring.score import Score, score
from plumbob.scoring.truth import Truth, truth_of
from plumbob.threats import LUO2021, THREATS, View, cut
from plumbob.transcript import Transcript
from tests.worlds import built_in, made_table, resealed, small, small_training, transcript, world

ROWS = 200


def some(shape: tuple[int, ...], share: float = 0.3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < share


def setting(protocol: str = "logistic_regression") -> tuple[View, Truth]:
    log = world(protocol, built_in("breast"), 0.3)
    threat = THREATS["corrupted-coordinator"] if PROTOCOLS[protocol].phase == "training" else LUO2021
    view = cut(log, threat)
    return view, truth_of(log, view)


def judged(guess: Guess, truth: Truth, view: View) -> Score:
    return score(guess, truth, view, np.random.default_rng(0))


def blurred(truth: Truth) -> Guess:
    rng = np.random.default_rng(5)
    return Guess(truth.names, truth.values + 0.1 * rng.normal(size=truth.values.shape))


def test_a_mask_of_no_cell_changes_no_number() -> None:
    view, truth = setting()
    nothing = replace(truth, filled=np.zeros(truth.values.shape, dtype=np.bool_))
    plain, masked = judged(blurred(truth), truth, view), judged(blurred(truth), nothing, view)
    assert masked.columns == plain.columns
    assert masked.rows_at_risk == plain.rows_at_risk
    assert masked.error == pytest.approx(plain.error, rel=1e-12)
    assert plain.filled == masked.filled == 0


@pytest.mark.parametrize("protocol", ["logistic_regression", "decision_tree", "secure_boost"])
def test_what_stands_in_filled_cells_changes_nothing(protocol: str) -> None:
    """Values, branches and bins alike: another truth there gives the same score."""
    view, truth = setting(protocol)
    attack = {"decision_tree": "path_restriction", "secure_boost": "reverse_sum"}.get(protocol, "posterior_mean")
    guess = attack_named(attack).run(view, np.random.default_rng(0))
    assert {"decision_tree": guess.branches, "secure_boost": guess.orders}.get(protocol, guess.values) is not None
    filled = some(truth.values.shape)
    other = truth.values.copy()
    other[filled] = np.random.default_rng(1).random(int(filled.sum()))
    bins = truth.bins
    if bins is not None:
        bins = bins.copy()
        bins[filled] = 0
    first = judged(guess, replace(truth, filled=filled), view)
    second = judged(guess, replace(truth, filled=filled, values=other, bins=bins), view)
    assert asdict(first) == asdict(second)
    assert first.filled == int(filled.sum())
    assert first.columns != judged(guess, truth, view).columns


def test_rows_that_are_filled_throughout_count_as_if_they_were_not_there() -> None:
    """The coordinator has no columns and gets no scores here: so nothing but the rows themselves could tell."""
    federation = split_at_random(made_table(ROWS), 0.4, np.random.default_rng(0))
    log = opened("logistic_regression", federation, federation.rows(np.arange(0)))
    view = cut(log, THREATS["coordinator"])
    truth = truth_of(log, view)
    rows = ~some((ROWS,))
    guess = blurred(truth)
    assert guess.values is not None
    masked = judged(guess, replace(truth, filled=np.repeat(~rows[:, None], truth.values.shape[1], axis=1)), view)
    fewer = judged(
        Guess(truth.names, guess.values[rows]),
        replace(truth, values=truth.values[rows], label=None if truth.label is None else truth.label[rows]),
        replace(view, own=view.own[rows]),
    )
    for one, other in zip(masked.columns, fewer.columns, strict=True):
        assert asdict(replace(one, rows_1_chance=None)) == pytest.approx(asdict(replace(other, rows_1_chance=None)))
    counts = {name for name in fewer.rows_at_risk if not name.endswith("chance")}
    assert {n: masked.rows_at_risk[n] for n in counts} == {n: fewer.rows_at_risk[n] for n in counts}
    assert masked.baselines == pytest.approx(fewer.baselines)
    assert (masked.error, masked.gain, masked.r2) == pytest.approx((fewer.error, fewer.gain, fewer.r2))
    assert masked.row_error_quantiles == pytest.approx(fewer.row_error_quantiles)


def test_people_of_whom_only_filled_cells_are_hit_are_not_recovered() -> None:
    """A column that is mostly filled, and a guess that names the filling: that knows nobody."""
    view, truth = setting()
    filled = np.zeros(truth.values.shape, dtype=np.bool_)
    filled[::2] = True
    values = truth.values.copy()
    values[filled] = 0.5
    truth = replace(truth, values=values)
    guess = Guess(truth.names, np.where(filled, 0.5, 2.0))
    found = judged(guess, replace(truth, filled=filled), view)
    assert all(column.exact == column.within_10 == 0 and column.rows_exact == 0 for column in found.columns)
    assert found.rows_at_risk["rows"] == (~filled[:, 0]).sum()
    assert not any(count for name, count in found.rows_at_risk.items() if not name.endswith(("chance", "rows")))
    assert judged(guess, truth, view).columns[0].exact == pytest.approx(0.5, abs=0.01)


def test_a_column_of_filled_cells_alone_says_nothing() -> None:
    view, truth = setting()
    filled = np.zeros(truth.values.shape, dtype=np.bool_)
    filled[:, 2] = True
    found = judged(blurred(truth), replace(truth, filled=filled), view)
    assert found.columns[2].claims == 0
    assert found.columns[1] == judged(blurred(truth), truth, view).columns[1]
    everything = judged(blurred(truth), replace(truth, filled=np.ones_like(filled)), view)
    assert not any(column.claims for column in everything.columns)
    assert np.isfinite([everything.error, everything.gain, everything.bound, *everything.baselines.values()]).all()


def test_ceilings_are_of_the_other_cells() -> None:
    """What stands in filled cells changes none, columns without them keep theirs, and the label is there once."""
    view, truth = setting()
    truth = truth.only(np.arange(3))
    filled = some(truth.values.shape) & np.array([False, True, True])
    view = replace(view, active="nobody")
    truth = replace(truth, label=np.arange(len(filled)) % 2)
    plain = learnable(view, truth, np.random.default_rng(0))
    masked = [
        learnable(view, replace(truth, values=np.where(filled, value, truth.values), filled=filled), rng)
        for value, rng in ((0.5, np.random.default_rng(0)), (0.9, np.random.default_rng(0)))
    ]
    assert masked[0] == masked[1]
    assert [one.name for one in masked[0]] == [one.name for one in plain]
    assert [one.rows for one in masked[0]] == [len(filled), *(~filled[:, 1:]).sum(axis=0), len(filled)]
    taken_for_data = learnable(
        view, replace(truth, values=np.where(filled, 0.5, truth.values)), np.random.default_rng(0)
    )
    for j in (1, 2):
        assert masked[0][j].full == pytest.approx(plain[j].full, abs=0.1)
        assert taken_for_data[j].full < plain[j].full - 0.2


def federation() -> Federation:
    table = made_table(ROWS)
    return split_at_random(replace(table, filled=some(table.values.shape)), 0.4, np.random.default_rng(0))


@pytest.mark.parametrize("protocol", ["logistic_regression", "secure_boost"])
def test_what_was_filled_reaches_the_truth_and_no_view(protocol: str, tmp_path: Path) -> None:
    """Of the curious party's own cells neither: it sees its columns as they went into the model."""
    parties = federation()
    if PROTOCOLS[protocol].phase == "training":
        half = np.arange(ROWS // 2)
        log = small_training(protocol).train(parties.rows(half), parties.rows(half + 100), np.random.default_rng(0))
        expected = parties["passive"].rows(half).filled
        threat = THREATS["active-training"]
    else:
        log, threat, expected = transcript(small(protocol), parties), LUO2021, None
    view = cut(log, threat)
    filled = truth_of(log, view).filled
    assert filled is not None
    assert filled.any()
    assert expected is None or (filled == expected).all()
    bare = Transcript(log.protocol, log.active, log.parties, log.features, log.classes)
    for message in log.messages:
        bare.send(**message.header, payload=message.payload)
    for name in (*log.parties, "coordinator"):
        for key, array in log.sealed(name).items():
            if key != FILLED:
                bare.seal(name, key, array)
    assert truth_of(bare, view).filled is None
    for folder, one in (("a", log), ("b", bare)):
        cut(one, threat).save(tmp_path / folder)
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / folder).iterdir()} for folder in ("a", "b"))
    assert first == second


def test_a_saved_run_keeps_what_was_filled_and_a_wrong_mask_is_refused(tmp_path: Path) -> None:
    parties = federation()
    log = small_training("secure_boost").train(parties, parties, np.random.default_rng(0))
    log.save(tmp_path / "run.zip")
    view = cut(log, THREATS["active-training"])
    before, after = truth_of(log, view).filled, truth_of(open_recorded(tmp_path / "run.zip"), view).filled
    assert before is not None
    assert after is not None
    assert (before == after).all()
    resealed(log, "passive", {FILLED: before[:-1]}).save(tmp_path / "short.zip")
    resealed(log, "passive", {FILLED: before * 2.0}).save(tmp_path / "numbers.zip")
    for name in ("short.zip", "numbers.zip"):
        with pytest.raises(BadInput, match="filled cells of 'passive'"):
            open_recorded(tmp_path / name)
