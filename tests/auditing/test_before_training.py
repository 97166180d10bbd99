"""The check before training from the command line: which columns are named for what, what it costs, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from plumbob.auditing.planning.joint_tables import ELEMENT, InTheClear, OnShares
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.planning.pre_training_check import precheck
from plumbob.auditing.running.before_training import check_before_training
from plumbob.crypto.sharing import SERVERS
from plumbob.federation import Column, Federation, FloatArray, Party
from tests.test_cli import plumbob, refused, two_files

RNG = np.random.default_rng(0)
OWN = RNG.random((400, 3))


def parties(classes: int, label: FloatArray | None = None, **columns: FloatArray) -> Federation:
    """A bank that holds OWN and the label, and parties with columns; `shop_income` is the shop's."""
    names = dict.fromkeys(name.partition("_")[0] for name in columns)
    held = [Party("bank", tuple(Column(f"own{i}") for i in range(3)), OWN)]
    for party in names:
        mine = {n.partition("_")[2]: values for n, values in columns.items() if n.startswith(f"{party}_")}
        held.append(Party(party, tuple(map(Column, mine)), np.column_stack(list(mine.values()))))
    drawn = np.random.default_rng(1).integers(0, classes, 400) if label is None else label.astype(np.int64)
    return Federation(tuple(held), "bank", drawn, tuple(map(str, range(classes))))


def noise(seed: int) -> FloatArray:
    return np.random.default_rng([2, seed]).random(400)


def found(federation: Federation) -> list[tuple[str, str, tuple[str, ...]]]:
    """What is found in the clear, after checking that shares find the very same."""
    clear = precheck(federation)
    assert precheck(federation, secure=True) == clear
    return [(c.party, c.reason, c.columns) for c in clear]


def test_many_classes_against_few_columns_are_named() -> None:
    three = {"shop_a": noise(0), "shop_b": noise(1), "shop_c": noise(2)}
    assert found(parties(4, **three)) == [("shop", "classes", ("a", "b", "c"))]
    assert found(parties(3, **three)) == [("shop", "many classes", ("a", "b", "c"))]
    assert found(parties(2, **three)) == []


def test_with_several_passive_parties_one_is_solved_for_where_the_others_collude() -> None:
    (shop, post) = precheck(parties(2, shop_a=noise(0), post_b=noise(1)))
    assert (shop.reason, post.reason) == ("classes", "classes")
    assert "once the other passive parties collude" in shop.words
    assert all("collude" not in c.words for c in precheck(parties(3, shop_a=noise(0), post_b=noise(1))))


def test_a_tree_with_few_leaves_for_each_class_is_named() -> None:
    assert ("leaves", ("a",)) in [(r, c) for _, r, c in found(parties(8, shop_a=noise(0)))]
    assert "leaves" not in [r for _, r, _ in found(parties(7, shop_a=noise(0)))]


def test_a_column_whose_best_split_the_class_tells_is_named_and_no_other() -> None:
    label = (noise(0) > 0.4).astype(float)
    told = 0.5 * label + 0.5 * noise(1)
    (sides,) = precheck(parties(2, label, shop_income=told, shop_visits=noise(2)))
    assert (sides.reason, sides.columns) == ("sides", ("income",))
    assert "income (98% of rows, guessed 60%)" in sides.words
    assert found(parties(2, label, shop_income=told, shop_visits=noise(2))) == [("shop", "sides", ("income",))]
    assert found(parties(2, label, shop_income=label * 0.1 + noise(1), shop_visits=noise(2))) == []


def test_columns_that_only_all_own_columns_together_tell_are_named() -> None:
    spread = OWN.sum(axis=1) / 3
    assert found(parties(2, shop_mean=spread, shop_visits=noise(0))) == [("shop", "together", ("mean",))]
    few = Federation(
        tuple(Party(p.name, p.columns, p.values[:6]) for p in parties(2, shop_a=noise(1), shop_b=noise(0)).parties),
        "bank",
        np.array([0, 1, 0, 1, 0, 1]),
        ("0", "1"),
    )
    assert "together" not in [c.reason for c in precheck(few)]


def test_what_a_colluding_party_tells_is_named() -> None:
    first = noise(0)
    shared = {"shop_a": first, "shop_b": noise(1), "post_c": 1 - first, "post_d": noise(2)}
    words = [c.words for c in precheck(parties(2, **shared)) if c.reason == "correlation"]
    assert words == [
        "'post' holds 1 of the columns of 'shop' already, up to scale and sign, whatever is trained: a",
        "'shop' holds 1 of the columns of 'post' already, up to scale and sign, whatever is trained: c",
    ]


def test_shares_give_the_sums_and_are_counted() -> None:
    left, right = RNG.integers(0, 2, (50, 3)), RNG.integers(0, 2, (50, 4))
    sums = OnShares()
    assert np.array_equal(sums.counts(left, right), InTheClear().counts(left, right))
    shares = 50 * 7 * SERVERS
    assert (sums.opened, sums.bytes_sent) == (12, ELEMENT * (shares + 12 * SERVERS * (SERVERS + 1)))
    near = OnShares().products(OWN, OWN[:, :2])
    assert near == pytest.approx(OWN.T @ OWN[:, :2], abs=1e-3)


def test_the_command_prints_the_same_warnings_either_way_and_the_cost(tmp_path: Path) -> None:
    two_files(tmp_path)
    plan = tmp_path / "plan.yaml"
    plan.write_text("data:\n  parties: {bank: bank.csv, shop: shop.csv}\n  id: id\n  label: default\n")
    clear, secure = (
        json.loads(plumbob("precheck", str(plan), "--json", *flags, cwd=tmp_path).stdout)
        for flags in ([], ["--secure"])
    )
    assert clear["warnings"] == secure["warnings"]
    assert (clear["bytes_sent"], clear["opened"]) == (0, 0)
    assert secure["bytes_sent"] > 100 * SERVERS * ELEMENT
    done = plumbob("precheck", str(plan), "--secure", cwd=tmp_path)
    assert done.returncode == 0
    assert "On secret shares" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank.csv", "plan.yaml", "shop.csv"]


def test_a_data_set_is_dealt_as_the_audits_first_trial() -> None:
    checked = check_before_training(make_plan({"data": "breast", "unknown": 0.04}))
    assert checked.columns == {"active": 29, "passive": 1}
    assert next(warning.reason for warning in checked.warnings) == "classes"


def test_what_cannot_be_checked_is_refused(tmp_path: Path) -> None:
    assert refused(plumbob("precheck", "none.yaml", cwd=tmp_path)) == "plumbob: no plan file at none.yaml\n"
    (tmp_path / "plan.yaml").write_text("data: {recorded: run.npz}\n")
    assert "a recorded run is trained already" in refused(plumbob("precheck", "plan.yaml", cwd=tmp_path))
