"""An active party that brings the label and no column: a usual federation, attacked from both sides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import plumbob
from plumbob.auditing.concluding.summarise import attacked
from plumbob.data.prepare import prepare
from plumbob.errors import BadInput
from plumbob.report import facts, tally
from plumbob.report.answer import answers
from plumbob.scoring.leak_levels import Level

ROWS = 160


def files() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 50, (ROWS, 3))
    label = (columns @ [1, -2, 3] + rng.normal(0, 20, ROWS) > 40).astype(int)
    shop = pd.DataFrame({"id": range(ROWS), "basket": columns[:, 0], "visits": columns[:, 1], "returns": columns[:, 2]})
    return pd.DataFrame({"id": range(ROWS), "default": label}), shop


def test_both_sides_are_attacked(tmp_path: Path) -> None:
    bank, shop = files()
    result = plumbob.audit(
        bank=bank,
        shop=shop,
        id="id",
        label="default",
        out=tmp_path / "out",
        protocols=["logistic_regression", {"name": "split_network", "settings": {"epochs": 3}}],
        threats=["active", "passive-known-people"],
        attacks=["lattice_decoding", "complete_rows"],
        trials=1,
    )
    found = {
        (one.situation.protocol.partition(" ")[0], one.situation.threat): one for one in answers(result.conclusion)
    }
    active, passive = found["logistic_regression", "active"], found["split_network", "passive-known-people"]
    assert {column.level for column in active.columns} == {Level.EXACT}
    assert (passive.columns, passive.label is not None and passive.label.level.leaks) == ((), True)
    assert passive.headline.startswith("Yes: the label leaks to a passive party")
    assert tally.brief(passive.every, "column") == "the label leaks"
    (label,) = passive.every
    untested = replace(label, verdict=replace(label.verdict, column="age", level=Level.NOT_TESTED))
    beside = tally.headline([untested, untested, label], "column", "")
    assert beside == "Yes: the label leaks; all 2 columns are not tested"
    said = next(
        one.said for one in facts.facts(answers(result.conclusion), result.asked) if one.name == "Who learns it"
    )
    assert "nothing" not in said
    assert "the label" in str(result)


def test_a_file_whose_columns_are_all_unusable_is_still_refused() -> None:
    frame = pd.DataFrame({"default": [0, 1] * 20, "branch": ["north"] * 40})
    with pytest.raises(BadInput, match="no columns usable"):
        prepare(frame, name="bank", label="default", where="party 'bank'", label_alone=True)
    alone = prepare(frame[["default"]], name="bank", label="default", where="party 'bank'", label_alone=True)
    assert alone.values.shape == (40, 0)


def test_defences_are_judged_by_the_label_alone(tmp_path: Path) -> None:
    bank, shop = files()
    result = plumbob.audit(
        bank=bank,
        shop=shop,
        id="id",
        label="default",
        out=tmp_path / "out",
        protocols=[{"name": "secure_boost", "settings": {"key_bits": 0, "trees": 1, "depth": 2}}],
        threats=["passive-training"],
        defences=["none", "shared_indicators", "grafting_ldp"],
        attacks=["latent_leaves"],
        trials=1,
    )
    assert {finding.score.metric for finding in attacked(result.findings)} == {"labels"}
    assert {one.situation.defence.partition(" ")[0] for one in answers(result.conclusion)} >= {"none", "grafting_ldp"}
