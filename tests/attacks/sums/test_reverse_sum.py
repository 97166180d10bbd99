"""Reverse sum and code decoding: what their codes promise, and what any attack must keep."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks import attacks
from plumbob.attacks.base import Guess, Orders
from plumbob.attacks.sums._exact_cover import Group
from plumbob.attacks.sums.code_decoding import CodeDecoding
from plumbob.attacks.sums.reverse_sum import Magic, ReverseSum
from plumbob.crypto import plain
from plumbob.errors import BadInput
from plumbob.protocols.shared.gradient_plaintexts import HiddenCode
from plumbob.protocols.shared.hidden_codes import LabelledGroups, MagicNumbers, labels_of
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.protocols.sums.test_secure_boost import parties, trained, trees
from tests.worlds import with_truth

THREAT = THREATS["active-training"]
CODES = {"reverse_sum": MagicNumbers(), "code_decoding": LabelledGroups()}


@cache
def world(name: str) -> Transcript:
    return trained(code=CODES[name], packed=False)


def guess(name: str, view: View) -> Guess:
    return attacks()[name].run(view, np.random.default_rng(5))


def claimed(name: str, view: View) -> np.ndarray:
    orders = guess(name, view).orders
    assert orders is not None
    return orders.bins


def test_the_worked_example_of_section_5_1_3() -> None:
    """Five rows in a bin, two of them with magic numbers 0x30001 and 0x20010: their sum 0x50011 gives both away."""
    table = np.array([[2, 0, 0, 0, 3], [17, 0, 0, 1, 2], [3, 0, 0, 0, 9], [18, 0, 0, 1, 14]])
    magic = Magic(table, base=16, sections=1, groups=4, identifier_bits=16, random_bits=4)
    other = 0x90001 + 0xE0010
    assert magic.reversed([[0x30001 + 0x20010, other]], effort=20) == {2: 0, 17: 0, 3: 1, 18: 1}
    assert 0x30001 + 0x20010 == 0x50011


@pytest.mark.parametrize(
    ("base", "supergroups", "rows"),
    [(2, 2, 1_860), (2, 4, 1_888), (4, 2, 2_784), (8, 2, 4_340), (16, 2, 6_960), (32, 2, 11_532)]
    + [(4, 4, 2_688), (8, 4, 4_200), (16, 4, 6_720), (32, 4, 11_160)],
)
def test_capacities_are_those_of_table_6(base: int, supergroups: int, rows: int) -> None:
    code = MagicNumbers(base=base, supergroups=supergroups)
    assert code.capacity(2) == rows
    assert code.bits <= 960 + 12
    if (base, supergroups) != (2, 4):
        assert ReverseSum.preset("table_6", base=base, supergroups=supergroups).sends().capacity(2) == rows


@settings(max_examples=40, deadline=None)
@given(
    base=st.sampled_from([2, 3, 4, 8]),
    supergroups=st.integers(1, 3),
    bins=st.integers(1, 7),
    random_bits=st.integers(0, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_row_of_a_random_code_gets_a_bin_with_the_right_counts(
    base: int, supergroups: int, bins: int, random_bits: int, seed: int
) -> None:
    """At base 2 that is the truth; else the rows of each group are at least as many in each bin as they are."""
    rng = np.random.default_rng(seed)
    code = MagicNumbers(base=base, supergroups=supergroups, identifier_bits=40, random_bits=random_bits)
    made, memory = code.codes(0, np.arange(500), 2, rng)
    places = rng.integers(bins, size=500)
    sums = [[sum(n for row, n in channel.items() if places[row] == b) for b in range(bins)] for channel in made]
    assert max(max(channel) for channel in sums) < 2**code.bits
    found = Magic(memory["magic"], *memory["magic settings"].tolist()).reversed(sums, effort=12)
    assert sorted(found) == list(range(code.capacity(2)))
    table = memory["magic"]
    for key in {tuple(row) for row in table[:, 1:4].tolist()}:
        rows = table[(table[:, 1:4] == key).all(axis=1), 0]
        assert sorted(found[int(r)] for r in rows) == sorted(places[rows].tolist())
    if base == 2:
        assert all(place == places[row] for row, place in found.items())


@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 6), bins=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_labels_far_apart_leave_one_partition(size: int, bins: int, seed: int) -> None:
    labels = [3**i for i in range(size)]  # no two sets of them have the same sum
    places = np.random.default_rng(seed).integers(bins, size=size)
    sums = np.bincount(places, weights=labels, minlength=bins).astype(np.int64)
    assert Group(labels).parted(sums).tolist() == places.tolist()


def test_large_groups_are_parted_by_sets_of_few_rows() -> None:
    rng = np.random.default_rng(2)
    labels = labels_of(42, 20)
    group, right = Group(labels.tolist()), 0
    for _ in range(8):
        places = rng.integers(32, size=42)
        sums = np.bincount(places, weights=labels, minlength=32).astype(np.int64)
        right += int((group.parted(sums) == places).sum())
    assert right > 0.9 * 8 * 42


def test_sums_that_are_none_are_not_parted() -> None:
    assert Group([1, 2, 4]).parted(np.array([3, 3])).tolist() == [-1, -1, -1]
    assert Group([2, 4]).parted(np.array([3, 3])).tolist() == [-1, -1]


@pytest.mark.parametrize("code", [MagicNumbers(), MagicNumbers(base=8, supergroups=4), LabelledGroups()], ids=repr)
def test_trees_are_the_same_with_and_without_a_code(code: HiddenCode) -> None:
    """W10: evasive."""
    assert trees(trained(packed=False, precision=40)) == trees(trained(packed=False, precision=40, code=code))


@pytest.mark.parametrize("name", CODES)
def test_base_2_is_exact(name: str) -> None:
    log = world(name)
    assert (claimed(name, cut(log, THREAT)) == log.sealed("passive")["bins"]).all()


def test_it_is_exact_with_real_ciphertexts() -> None:
    log = trained(rows=40, code=MagicNumbers(), packed=False, key_bits=1_024, trees=1)
    assert (claimed("reverse_sum", cut(log, THREAT)) == log.sealed("passive")["bins"]).all()


@pytest.mark.parametrize("name", CODES)
def test_garbage_in_place_of_the_truth_changes_no_guess(name: str) -> None:
    log = world(name)
    garbage = np.random.default_rng(9).random(log.sealed("passive")["columns"].shape)
    one, two = (claimed(name, cut(each, THREAT)) for each in (log, with_truth(log, "passive", garbage)))
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("name", CODES)
def test_a_saved_view_attacked_in_another_process_gives_the_same_bins(name: str, tmp_path: Path) -> None:
    view = cut(world(name), THREAT)
    view.save(tmp_path / "view.zip")
    script = (
        "import sys; from pathlib import Path; from plumbob.threats import View\n"
        "from tests.attacks.sums.test_reverse_sum import claimed\n"
        "sys.stdout.buffer.write(claimed(sys.argv[1], View.load(Path(sys.argv[2]))).tobytes())"
    )
    command = [sys.executable, "-c", script, name, str(tmp_path / "view.zip")]
    done = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[3])
    assert done.stdout == claimed(name, view).tobytes()


@pytest.mark.parametrize("name", CODES)
def test_without_a_code_nothing_is_claimed(name: str) -> None:
    log = trained()
    view = cut(log, THREAT)
    assert (claimed(name, view) == -1).all()
    judged = score(guess(name, view), truth_of(log, view), view, np.random.default_rng(0))
    assert judged.metric == "orders"
    assert all(column.claims == 0 and column.gain == 0 for column in judged.columns)


@pytest.mark.parametrize("name", CODES)
def test_blinding_leaves_nothing_to_read(name: str) -> None:
    log = trained(code=CODES[name], packed=False, blinding=True)
    view = cut(log, THREAT)
    bins, truth = claimed(name, view), log.sealed("passive")["bins"]
    assert ((bins == truth) & (bins >= 0)).mean() < 0.2  # eight bins, so chance is an eighth
    assert trees(log) == trees(trained(packed=False, precision=_precision(log)))


def _precision(log: Transcript) -> int:
    return int(log.sealed("active")["notes/layout"][2])


def test_noise_for_differential_privacy_does_not_reach_the_code() -> None:
    log = trained(code=LabelledGroups(), packed=False, epsilon=0.01)
    assert (claimed("code_decoding", cut(log, THREAT)) == log.sealed("passive")["bins"]).all()
    assert trees(log) != trees(trained(packed=False))


def test_codes_of_later_trees_are_of_other_rows() -> None:
    log = trained(code=LabelledGroups(space=40), packed=False, trees=3)
    bins = claimed("code_decoding", cut(log, THREAT))
    assert (bins[:200] >= 0).all(axis=1).sum() == 3 * 80 - 40  # two channels of 40 rows in each tree, the third wraps


def test_histograms_of_nodes_tell_more_than_the_root() -> None:
    log = trained(code=LabelledGroups(size=20, width=10, space=50), packed=False, trees=1, depth=4)
    view, truth = cut(log, THREAT), log.sealed("passive")["bins"]
    right = [
        int((CodeDecoding(nodes=nodes).run(view, np.random.default_rng(0)).orders.bins == truth).sum())
        for nodes in (False, True)
    ]
    assert right[1] > right[0]
    assert right[1] > 0.9 * truth.size


def test_orders_are_scored_by_bins() -> None:
    log = world("reverse_sum")
    view = cut(log, THREAT)
    truth = truth_of(log, view)
    assert truth.bins is not None
    wrong = truth.bins.copy()
    wrong[:50, 0] = (wrong[:50, 0] + 1) % 8
    wrong[50:100, 0] = -1
    judged = score(
        Guess(view.unknown_names, orders=Orders(wrong, np.full(3, 8))), truth, view, np.random.default_rng(0)
    )
    assert judged.columns[0].error == pytest.approx(50 / 150)
    assert judged.columns[0].claims == 150
    assert judged.columns[1].gain == 1
    assert judged.columns[1].rank > 0.95
    with pytest.raises(ValueError, match="bins of shape"):
        score(Guess(view.unknown_names, orders=Orders(wrong[:5], np.full(3, 8))), truth, view, np.random.default_rng(0))


def test_awkward_columns_are_survived() -> None:
    federation, others = parties()
    from dataclasses import replace

    flat = [replace(p, values=np.where(np.arange(p.values.shape[1]) == 0, 0.5, p.values)) for p in federation.parties]
    for name, code in CODES.items():
        protocol = SecureBoost(trees=1, key_bits=0, packed=False, code=code)
        log = protocol.train(replace(federation, parties=tuple(flat)), others, np.random.default_rng(0))
        view = cut(log, THREAT)
        judged = score(guess(name, view), truth_of(log, view), view, np.random.default_rng(0))
        assert judged.error == 0
        assert np.isfinite(judged.columns[0].gain)


def test_codes_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadInput, match="cannot sum to less than"):
        LabelledGroups(size=20, width=5)
    with pytest.raises(BadInput, match="base"):
        MagicNumbers(base=1)
    with pytest.raises(BadInput, match="are too few for a digit"):
        MagicNumbers(base=32, supergroups=4, identifier_bits=8)


def test_attacks_say_what_they_are_and_where_they_fit() -> None:
    cheating = THREATS["active-low-bits"]
    for attack in (ReverseSum(), CodeDecoding()):
        assert attack.why_not("secure_boost", cheating) is None
        assert attack.why_not("secure_boost", THREATS["active-any-gradient"]) is None
        assert attack.why_not("secure_boost", THREAT) == "needs an active party that sets the low bits of its gradients"
        assert "only" in (attack.why_not("logistic_regression", cheating) or "")


def test_a_code_that_is_there_is_read_whoever_is_curious_and_no_other_code() -> None:
    assert ReverseSum().why_not("secure_boost", THREAT, "magic numbers") is None
    assert CodeDecoding().why_not("secure_boost", THREATS["active-low-bits"], "magic numbers") == (
        "reads labelled groups, and what is hidden here are magic numbers"
    )
    assert ReverseSum().why_not("secure_boost", THREATS["active-low-bits"], "") == (
        "reads magic numbers, and nothing is hidden here"
    )


@pytest.mark.parametrize(("base", "supergroups", "bits"), [(2, 2, 900), (4, 4, 840), (32, 2, 900)])
def test_what_reverse_sum_sends_is_algorithm_1_within_960_bits(base: int, supergroups: int, bits: int) -> None:
    """Lines 5 and 11: 30 random bits for each supergroup, identifiers in the rest. Sums need a few bits more."""
    code = ReverseSum(base=base, supergroups=supergroups).sends()
    assert (code.identifier_bits, code.random_bits) == (bits, 30)
    made, _ = code.codes(0, np.arange(20_000), 2, np.random.default_rng(0))
    assert max(number.bit_length() for channel in made for number in channel.values()) == 960
    SecureBoost(key_bits=1_024, packed=False, code=code).ready(30_000)


def test_rows_chosen_by_distribution_have_the_gradients_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    gradients = np.sort(rng.integers(-1_000, 1_000, size=20_000))  # in order, the first rows would be all negative
    code = ReverseSum(rows="by_distribution").sends()
    _, memory = code.codes(0, np.arange(20_000), 2, rng, gradients)
    chosen = gradients[memory["magic"][:, 0]]
    assert len(set(memory["magic"][:, 0])) == code.capacity(2) == 1_800
    assert np.quantile(chosen, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(gradients, [0.1, 0.5, 0.9]), abs=5)
    log = trained(code=ReverseSum(rows="by_distribution").sends(), packed=False)
    assert (claimed("reverse_sum", cut(log, THREAT)) == log.sealed("passive")["bins"]).all()


def test_notes_hold_no_key() -> None:
    log = trained(rows=40, key_bits=1_024, trees=1)
    (key,) = (m.payload for m in log.messages if m.name == "key")
    (n,) = plain.integers(key)
    assert n.bit_length() == 1_024
    kept = {name for party in (*log.parties, COORDINATOR) for name in log.sealed(party)}
    assert not any("key" in name for name in kept)
