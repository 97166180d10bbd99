"""Alignment: the same rows in the same order at every party, with every message through the channel."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.data.align import HOW, align, canonical
from plumbob.data.matched import Matched
from plumbob.data.prepare import Rules
from plumbob.errors import BadInput
from plumbob.federation import ByteArray


def party(ids: object, **columns: object) -> pd.DataFrame:
    frame = pd.DataFrame({"customer": ids})
    return frame.assign(own=[str(one) for one in frame["customer"]], **columns)


def aligned(frames: dict[str, pd.DataFrame], **options: object) -> dict[str, pd.DataFrame]:
    settled: dict[str, object] = {"id_column": "customer", "active": "bank", "how": "ids"} | options
    return align(frames, **settled).frames  # type: ignore[arg-type]  # options vary by test


def refused(frames: dict[str, pd.DataFrame], **options: object) -> str:
    with pytest.raises(BadInput) as caught:
        aligned(frames, **options)
    return str(caught.value)


@pytest.mark.parametrize("how", HOW)
def test_rows_of_three_parties_agree(how: str) -> None:
    rng = np.random.default_rng(0)
    frames = {
        "bank": party(rng.permutation(np.arange(0, 80))),
        "shop": party(rng.permutation(np.arange(20, 100))),
        "post": party(rng.permutation(np.arange(40, 120))),
    }
    rows = aligned(frames, how=how)
    expected = sorted(str(i) for i in range(40, 80))
    assert {name: frame["own"].tolist() for name, frame in rows.items()} == dict.fromkeys(frames, expected)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 60), unique=True), st.lists(st.integers(0, 60), unique=True))
def test_both_ways_find_the_same_rows(ours: list[int], theirs: list[int]) -> None:
    common = list(range(100, 125))  # enough shared rows for any federation
    frames = {"bank": party(ours + common), "shop": party(common + theirs)}
    ways = [aligned(frames, how=how)["shop"]["own"].tolist() for how in HOW]
    assert ways[0] == ways[1] == sorted(map(str, {*ours, *common} & {*theirs, *common}))


def test_the_id_column_is_removed() -> None:
    rows = aligned({"bank": party(range(30)), "shop": party(range(30))})
    assert {tuple(frame.columns) for frame in rows.values()} == {("own",)}


def test_each_party_may_name_its_own_id_column() -> None:
    frames = {"bank": party(range(30)), "shop": party(range(30)).rename(columns={"customer": "client"})}
    assert len(aligned(frames, id_column={"bank": "customer", "shop": "client"})["shop"]) == 30


@pytest.mark.parametrize("cell", [7, 7.0, "7", " 7 ", "7.0", np.int64(7)])
def test_one_id_in_many_spellings(cell: object) -> None:
    assert canonical(pd.Series([cell])) == ["7"]


def test_ids_that_differ_stay_different() -> None:
    assert len(set(canonical(pd.Series(["7", "07", "7.5", "70", "a7"])))) == 5


@pytest.mark.parametrize(("rule", "kept"), [("first", "early"), ("last", "late")])
def test_of_repeated_ids_the_rule_picks_one(rule: str, kept: str) -> None:
    bank = party([5, *range(30)], when=["early"] * 5 + ["late"] * 26)
    made = align(
        {"bank": bank, "shop": party(range(30))},
        id_column="customer",
        active="bank",
        how="ids",
        rules=Rules(duplicates=rule),
    )
    bank_rows = made.frames["bank"]
    assert bank_rows.loc[bank_rows["own"] == "5", "when"].tolist() == [kept]
    assert f"party 'bank': 1 rows with duplicate ids were dropped; the {rule} row of each id was kept" in made.notes


def test_repeated_ids_can_be_refused() -> None:
    frames = {"bank": party([5, *range(30)]), "shop": party(range(30))}
    assert "party 'bank': 1 rows have duplicate ids" in refused(frames, rules=Rules(duplicates="refuse"))


@pytest.mark.parametrize("how", HOW)
def test_no_overlap_is_refused_with_the_counts(how: str) -> None:
    frames = {"bank": party(range(1_000)), "shop": party(range(1_000, 2_200))}
    assert refused(frames, how=how) == (
        "ids of 'bank' and 'shop' do not overlap: 0 of 1,000 and 1,200 rows shared; check the id column 'customer'"
    )


def test_zeros_in_front_of_ids_are_named_where_they_are_the_reason() -> None:
    frames = {"bank": party([f"{one:04}" for one in range(100)]), "shop": party([str(one) for one in range(100)])}
    assert refused(frames).endswith("; some files have leading zeros in their ids, others do not")


def test_a_small_overlap_is_refused() -> None:
    sentence = refused({"bank": party(range(30)), "shop": party(range(11, 40))})
    assert "overlap too little: 19 of 30 and 29 rows shared, expected at least 20" in sentence


def test_missing_ids_are_refused_by_row() -> None:
    sentence = refused({"bank": party([1, 2, None, 4]), "shop": party(range(30))})
    assert "party 'bank': id column 'customer' has 1 missing values, the first in row 3" in sentence


def test_an_unknown_id_column_is_refused_with_a_suggestion() -> None:
    frames = {"bank": party(range(30)), "shop": party(range(30))}
    assert "no id column 'custommer'; did you mean 'customer'" in refused(frames, id_column="custommer")


@pytest.mark.parametrize(
    ("options", "sentence"), [({"active": "bnak"}, "did you mean 'bank'"), ({"how": "hash"}, "expected psi or ids")]
)
def test_wrong_words_are_refused(options: dict[str, object], sentence: str) -> None:
    assert sentence in refused({"bank": party(range(30)), "shop": party(range(30))}, **options)


def test_one_party_alone_is_refused() -> None:
    assert "at least two parties, got 1" in refused({"bank": party(range(30))})


@pytest.mark.parametrize(
    ("how", "names"),
    [("psi", ["psi request", "psi setup", "psi response", "shared ids"]), ("ids", ["ids", "shared ids"])],
)
def test_everything_crosses_the_channel(how: str, names: list[str]) -> None:
    crossed: list[tuple[str, str, str]] = []

    def send(sender: str, receiver: str, name: str, payload: ByteArray) -> ByteArray:
        crossed.append((sender, receiver, name))
        return payload

    aligned({"bank": party(range(30)), "shop": party(range(30))}, how=how, send=send)
    assert [name for _, _, name in crossed] == names


def test_a_passive_party_uses_the_list_it_received() -> None:
    def send(sender: str, receiver: str, name: str, payload: ByteArray) -> ByteArray:
        if name != "shared ids":
            return payload
        return np.frombuffer(json.dumps(json.loads(payload.tobytes())[::-1]).encode(), dtype=np.uint8)

    rows = aligned({"bank": party(range(30)), "shop": party(range(30))}, send=send)
    assert rows["shop"]["own"].tolist() == rows["bank"]["own"].tolist()[::-1]


def test_by_psi_a_passive_partys_unshared_ids_do_not_cross_in_the_clear() -> None:
    crossed = b""

    def send(sender: str, receiver: str, name: str, payload: ByteArray) -> ByteArray:
        nonlocal crossed
        crossed += payload.tobytes()
        return payload

    shared = [f"shared-{i}" for i in range(30)]
    aligned({"bank": party([*shared, "only-bank"]), "shop": party([*shared, "only-shop"])}, how="psi", send=send)
    assert b"shared-0" in crossed
    assert b"only-" not in crossed


@pytest.mark.parametrize("how", HOW)
def test_matching_tells_each_party_which_of_its_people_the_others_have(how: str) -> None:
    frames = {"bank": party(range(100)), "shop": party(range(40, 130)), "gym": party(range(70, 400))}
    told = align(frames, id_column="customer", active="bank", how=how).matched
    shop = Matched("bank", ("shop",), rows=100, shared=60, listed=90, ids_shown=how == "ids")
    gym = Matched("bank", ("gym",), rows=60, shared=30, listed=330, ids_shown=how == "ids")
    asked = {"psi": (100, 60), "ids": (30, 30)}[
        how
    ]  # the blinded ids that reach a passive party, or the shared ones alone
    to_shop = Matched("shop", ("bank", "gym"), rows=90, shared=30, listed=asked[0])
    to_gym = Matched("gym", ("bank", "shop"), rows=330, shared=30, listed=asked[1])
    assert told == (shop, gym, to_shop, to_gym)


@pytest.mark.parametrize("how", HOW)
def test_what_matching_is_said_to_tell_is_what_crossed(how: str) -> None:
    """Counted from the messages: the ids in them, not what the code says it learnt."""
    crossed: list[tuple[str, str, str, ByteArray]] = []

    def send(*message: Any) -> ByteArray:
        crossed.append(message)
        return message[-1]

    frames = {"bank": party(range(100)), "shop": party(range(40, 130))}
    to_bank, to_shop = align(frames, id_column="customer", active="bank", how=how, send=send).matched
    shared = next(json.loads(payload.tobytes()) for _, _, name, payload in crossed if name == "shared ids")
    assert {len(shared)} == {to_bank.shared, to_shop.shared}
    shown = [json.loads(payload.tobytes()) for _, _, name, payload in crossed if name == "ids"]
    assert [to_bank.ids_shown, to_bank.listed] == ([True, len(shown[0])] if shown else [False, 90])
