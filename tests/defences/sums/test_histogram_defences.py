"""Defences at the point `histograms`: what they change in SecureBoost, what they cost, and what attackers still read."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from plumbob.attacks.sums.code_decoding import CodeDecoding
from plumbob.attacks.sums.reverse_sum import ReverseSum
from plumbob.attacks.sums.split_sides import SplitSides
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.expand import Unit, attack_cases, defences_for
from plumbob.defences import DEFENCES, defence_named
from plumbob.defences.sums.dp_histograms import DpHistograms
from plumbob.errors import BadInput
from plumbob.known_defences import KnownDefences, KnownDpHistograms, KnownSharedIndicators
from plumbob.protocols.base import training
from plumbob.protocols.shared.gradient_plaintexts import HiddenCode, Layout
from plumbob.protocols.shared.hidden_codes import LabelledGroups, MagicNumbers
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from tests.protocols.sums.test_secure_boost import parties, trees
from tests.worlds import small_training

NAMES = [name for name, kind in DEFENCES.items() if kind.point == "histograms"]
THREAT = THREATS["active-training"]


@cache
def log(name: str, code: HiddenCode | None = None, **settings: object) -> Transcript:
    """Two small trees on 60 rows."""
    chosen = {"trees": 2, "depth": 2, "bins": 8, "key_bits": 0, "packed": False, "code": code} | settings
    protocol = training(defence_named(name).protect(SecureBoost(**chosen)))  # type: ignore[arg-type]
    return protocol.train(*parties(60), np.random.default_rng(0))


def right(view: View, run: Transcript, attack: ReverseSum | CodeDecoding) -> float:
    orders = attack.run(view, np.random.default_rng(0)).orders
    assert orders is not None
    return float((orders.bins == run.sealed("passive")["bins"]).mean())


MAGIC, GROUPS = MagicNumbers(), LabelledGroups()


def test_these_are_the_defences_of_sums() -> None:
    guards = ["grafting_ldp", "id_lmid", "op_boost"]
    assert sorted(NAMES) == sorted(["blinding", "dp_histograms", "shared_indicators", *guards])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_in_place_is_known(name: str) -> None:
    assert KnownDefences.sealed_in(log(name)).names == (name,) == defence_named(name).known().names


@pytest.mark.parametrize("name", NAMES)
def test_other_protocols_stay_as_they_are(name: str) -> None:
    other = small_training("encrypted_logistic_regression")
    assert defence_named(name).protect(other) is other


def test_settings_and_code_of_the_protocol_are_kept() -> None:
    made = defence_named("blinding").protect(SecureBoost(trees=3, code=MAGIC, key_bits=1_024))
    assert made.settings == SecureBoost(trees=3, code=MAGIC, key_bits=1_024, blinding=True).settings


@pytest.mark.parametrize("name", ["shared_indicators", "dp_histograms"])
def test_neither_shares_nor_noise_keep_a_code_from_being_read(name: str) -> None:
    """weng2022, Section 6."""
    for code, attack in ((MAGIC, ReverseSum()), (GROUPS, CodeDecoding())):
        run = log(name, code)
        assert right(cut(run, THREAT), run, attack) == 1.0


@pytest.mark.parametrize("name", ["blinding", "dp_histograms+blinding"])
def test_blinding_does_also_beside_noise(name: str) -> None:
    run = log(name, MAGIC)
    assert right(cut(run, THREAT), run, ReverseSum()) < 0.3  # chance is an eighth


@pytest.mark.parametrize("settings", [{}, {"packed": True}, {"boosting": False}, {"sample": 0.6}, {"loss": "squared"}])
def test_sums_on_shares_are_the_sums_and_the_trees_the_same(settings: dict[str, object]) -> None:
    plain, shared = (log(name, **settings) for name in ("none", "shared_indicators"))
    assert trees(plain) == trees(shared)
    for tree in range(2):
        notes = [run.sealed("active")[f"notes/sums/{tree}/passive"].tobytes() for run in (plain, shared)]
        assert notes[0] == notes[1]


def test_under_shared_indicators_nobody_is_told_rows_or_sides() -> None:
    plain, shared = log("none"), log("shared_indicators")
    told = {"rows of a node", "rows to split", "left", "gradients", "first gradients", "second gradients", "key"}
    assert told & {m.name for m in plain.messages}
    assert not told & {m.name for m in shared.messages}
    assert shared.bytes_sent() > 10 * plain.bytes_sent()


def test_the_leaves_of_the_last_tree_stay_hidden() -> None:
    plain, shared = (log(name).sealed("active") for name in ("none", "shared_indicators"))
    assert (shared["notes/leaves/0"] == plain["notes/leaves/0"]).all()
    assert not shared["notes/leaves/1"].any()
    forest = log("shared_indicators", boosting=False).sealed("active")
    assert not forest["notes/leaves/0"].any()


def test_who_knows_of_shares_reads_the_sides_off_the_leaves() -> None:
    """All but those of the last tree; who looks for answers finds none."""
    one_tree = SecureBoost(trees=1, depth=2, bins=8, key_bits=0).train(*parties(60), np.random.default_rng(0))
    without = SplitSides().run(cut(one_tree, THREAT), np.random.default_rng(0)).values
    view = cut(log("shared_indicators"), THREAT)
    aware, unaware = (SplitSides(adaptive=a).run(view, np.random.default_rng(0)).values for a in (True, False))
    assert without is not None
    assert aware is not None
    assert unaware is not None
    assert np.ptp(without, axis=0).any()
    np.testing.assert_array_equal(aware, without)
    assert not np.ptp(unaware, axis=0).any()
    assert SplitSides(adaptive=False).unaware_of(("shared_indicators",)) == ("shared_indicators",)


def test_noise_of_a_budget_has_the_scale_that_sensitivity_asks_for() -> None:
    """Four times columns, depth and trees, times the largest |g|, over the budget: from the sums at the roots of many trees."""
    plain, noisy = (
        SecureBoost(trees=40, depth=1, bins=8, key_bits=0, boosting=False, budget=budget).train(
            *parties(60), np.random.default_rng(3)
        )
        for budget in (None, 50.0)
    )
    gaps: list[list[float]] = [[], []]
    for tree in range(40):
        read = [_root(run, tree) for run in (plain, noisy)]
        for k in range(2):
            gaps[k] += [b - a for a, b in zip(read[0][k], read[1][k], strict=True)]
    expected = 4 * 3 * 1 * 40 / 50.0
    for found, largest in zip(gaps, (1.0, 0.25), strict=True):
        mean = float(np.mean(np.abs(found)))  # of a Laplace distribution that is its scale
        assert mean == pytest.approx(expected * largest, rel=4 / np.sqrt(len(found)))


def _root(run: Transcript, tree: int) -> tuple[list[float], list[float]]:
    from plumbob.crypto import plain

    state = run.sealed("active")
    layout = Layout.from_array(state["notes/layout"])
    count = int(next(m.payload for m in run.messages if m.name == "bin counts").sum())
    first, second = layout.sums([plain.integers(state[f"notes/sums/{tree}/passive"])[:count]])
    return [v / 2**layout.precision for v in first], [v / 2**layout.precision for v in second]


def test_the_budget_is_the_one_that_is_promised_and_known() -> None:
    (promise,) = DpHistograms(epsilon=3.0).guarantees()
    assert promise.epsilon == 3.0
    assert any("reverse sum" in hazard for hazard in promise.hazards)
    known = KnownDefences.sealed_in(log("dp_histograms"))[KnownDpHistograms]
    assert known == KnownDpHistograms(1.0, True)
    earlier = SecureBoost(trees=1, depth=1, key_bits=0, epsilon=2.0).train(*parties(60), np.random.default_rng(0))
    assert KnownDefences.sealed_in(earlier)[KnownDpHistograms] == KnownDpHistograms(2.0, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": 1.0, "budget": 1.0}, "expected epsilon .* or budget .*, got both"),
        ({"shared_indicators": True, "blinding": True}, "no passive party can add blinding"),
        ({"shared_indicators": True, "budget": 1.0}, "no passive party can add blinding"),
        ({"budget": 0.0}, "budget: expected a number above 0, got 0"),
        ({"shared_indicators": 1}, "expected true or false, got 1"),
    ],
)
def test_what_cannot_go_together_is_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        SecureBoost(**settings)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="epsilon: expected a number above 0"):
        DpHistograms(epsilon=-1.0)


def test_the_sweep_of_secure_boost_is_these() -> None:
    plan = make_plan({"data": "breast", "unknown": 0.3, "protocols": ["secure_boost"], "defences": "sweep"}).filled()
    listed = [defence.name for defence in defences_for(plan, plan.protocols[0])]
    guards = [name for name in ("grafting_ldp", "id_lmid", "op_boost") for _ in range(2)]
    assert listed == ["none", "shared_indicators", "dp_histograms", "dp_histograms", "blinding", *guards]
    tried = {case.defence.name for case in attack_cases(plan, Unit(plan.protocols[0], 0))}
    assert tried == set(listed)


def test_what_is_known_of_shared_indicators_comes_back() -> None:
    assert KnownDefences.of(KnownSharedIndicators()).arrays == defence_named("shared_indicators").known().arrays
