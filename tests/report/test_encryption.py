"""Is encryption on, with what key, and does it help: asked of an audit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.summarise import attacked
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.expand import defences_for, untried
from plumbob.auditing.running.open_data import open_source
from plumbob.errors import BadInput
from plumbob.report.answer import answers, how
from plumbob.report.encryption import encryption
from plumbob.report.page import About, render
from plumbob.report.tables import settings_table
from plumbob.report.terminal import attack_line
from plumbob.scoring.column_ceiling import CEILING
from plumbob.threats import THREATS
from tests.report import samples


@pytest.fixture(scope="module")
def findings() -> list:
    settings = {"batch_size": 32, "epochs": 12}
    plan = make_plan(
        {
            "data": "breast",
            "unknown": [0.3],
            "protocols": [
                {"name": "encrypted_logistic_regression", "settings": settings | {"key_bits": bits}}
                for bits in (0, 1024)
            ],
            "threats": ["corrupted-coordinator"],
            "trials": 1,
            "rows": 64,
        }
    ).filled()
    return run(plan, open_source(plan.data, 0))


def test_a_real_key_is_named_and_does_not_help_against_the_coordinator(findings: list) -> None:
    off, on = encryption(findings, answers(conclude(findings)))
    assert (off.cipher, off.weak) == ("none", False)
    assert (on.cipher, on.weak) == ("Paillier, 1,024-bit key", True)
    assert "encryption is on (Paillier, 1,024-bit key). It does not help against" in on.headline
    assert "of 9 columns, 9 recovered exactly." in on.headline
    assert "encryption is off" in off.headline


def test_ciphertexts_cost_bytes_and_every_sender_is_named(findings: list) -> None:
    off, on = encryption(findings, answers(conclude(findings)))
    assert set(on.bytes_by_party) == {"active", "passive", "coordinator"}
    assert on.bytes_by_party["passive"] > 5 * off.bytes_by_party["passive"]
    assert all(party in on.sent for party in on.bytes_by_party)


def test_exact_multiplication_is_exact_with_and_without_a_key(findings: list) -> None:
    errors = {f.encryption: f.score.error for f in findings if f.attack == "exact_multiplication"}
    assert set(errors) == {"none", "Paillier, 1,024-bit key"}
    assert max(errors.values()) < 1e-15


def test_nothing_learnt_is_not_called_safe_without_a_ceiling(findings: list) -> None:
    quiet = []
    for finding in attacked(findings):
        columns = tuple(
            replace(c, gain=-1.0, gain_error=0.01, exact=0.0, rank=0.0, tie=0.0, tie_error=0.1, rows_exact=0)
            for c in finding.score.columns
        )
        quiet.append(replace(finding, score=replace(finding.score, columns=columns, gain=-1.0, error=1.0)))
    told = encryption(quiet, answers(conclude(quiet)))
    assert len(told) == 2
    assert all(". Not known: no leak was found, but all 9 are undecided." in one.headline for one in told)
    capped = samples.capped(quiet)
    told = encryption(quiet, answers(conclude(capped)))
    assert all(". No leak above " in one.headline for one in told)


def test_the_page_asks_the_question(findings: list) -> None:
    page = render(findings, About(title="t", question="q", plan="", notes=(), command="plumbob audit"))
    assert "Is it encrypted, and does that help?" in page
    assert "encryption is on (Paillier, 1,024-bit key)" in page


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"key_bits": 512}, "key_bits"), ({"epochs": 0}, "epochs"), ({"key_bits": 1024, "returns": "x"}, "returns")],
)
def test_bad_settings_are_refused_in_one_sentence(settings: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make_plan({"data": "breast", "protocols": [{"name": "encrypted_logistic_regression", "settings": settings}]})


def test_training_rows_are_limited_by_the_plan(findings: list) -> None:
    assert {f.score.rows for f in findings} == {64}
    assert all(np.isfinite(f.model_accuracy) and 0.5 < f.model_accuracy <= 1 for f in findings)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("secure_boost", {"key_bits": 512}, "key_bits"),
        ("secure_boost", {"key_bits": False}, "key_bits"),
        ("secure_boost", {"bins": 1}, "bins"),
        ("secure_boost", {"blinding": "false"}, "blinding: expected true or false"),
        ("secure_boost", {"code": "magc_numbers"}, "did you mean 'magic_numbers'"),
        ("secure_boost", {"code": ["magic_numbers"]}, "no code"),
        ("encrypted_logistic_regression", {"masked": "no"}, "masked: expected true or false"),
        ("encrypted_logistic_regression", {"open_all": False}, "not in plans"),
    ],
)
def test_bad_settings_of_training_are_refused(name: str, settings: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make_plan({"data": "breast", "protocols": [{"name": name, "settings": settings}]})


@pytest.mark.parametrize(
    "name", [one.name for one in THREATS.values() if not any(not d.active for d in one.deviations)]
)
def test_a_threat_with_a_key_changed_keeps_the_rest(name: str) -> None:
    plan = make_plan(
        {"data": "breast", "protocols": ["secure_boost"], "threats": [{"name": name, "auxiliary_rows": 20}]}
    )
    changed, base = plan.threats[0].threat(), THREATS[name]
    assert (changed.corrupted, changed.colluding_all_but) == (base.corrupted, base.colluding_all_but)
    assert {type(g) for g in base.grants} <= {type(g) for g in changed.grants}


def test_defences_of_scores_are_not_tried_on_training() -> None:
    plan = make_plan({"data": "breast", "protocols": ["secure_boost"], "defences": ["rounding"]})
    assert defences_for(plan, plan.protocols[0]) == []


def test_the_weakest_threat_that_learns_as_much_is_named() -> None:
    settings = {"key_bits": 0, "trees": 2, "depth": 2, "code": "magic_numbers"}
    plan = make_plan(
        {
            "data": "breast",
            "unknown": [0.3],
            "protocols": [{"name": "secure_boost", "settings": settings}],
            "threats": ["corrupted-coordinator", "active-training"],
            "attacks": ["reverse_sum"],
            "trials": 1,
            "rows": 200,
        }
    ).filled()
    found = run(plan, open_source(plan.data, 0))
    (one,) = encryption(found, answers(conclude(found)))
    assert "What the active party learns" in one.headline
    silent = [
        replace(f, score=replace(f.score, columns=[replace(c, claims=0, gain=0) for c in f.score.columns]))
        for f in found
    ]
    concluded = conclude(attacked(silent))
    assert how(answers(concluded)[0]) == "Found nothing to read: reverse sum."
    assert attack_line(concluded.summaries[0]) == "reverse sum: found nothing to read"  # and not an error of 0
    (row,) = settings_table(concluded.summaries[:1]).rows
    assert row[3].shown == "–"


def test_where_nothing_was_encoded_attacks_on_codes_are_not_applicable() -> None:
    """They would run on nothing and report no wrong bin, which reads as success."""
    settings = {"key_bits": 0, "trees": 1, "depth": 1}
    plan = make_plan(
        {
            "data": "breast",
            "unknown": [0.3],
            "protocols": [{"name": "secure_boost", "settings": settings}],
            "threats": ["active-training"],
            "trials": 1,
            "rows": 200,
        }
    ).filled()
    assert {finding.attack for finding in run(plan, open_source(plan.data, 0))} == {"split_sides", CEILING}
    title, low = (
        "secure_boost (key_bits=0, trees=1, depth=1)",
        "an active party that sets the low bits of its gradients",
    )
    needs = {"bin_mapping": "100 complete rows of other people", "code_decoding": low, "reverse_sum": low}
    assert [one.words for one in untried(plan) if "chosen_gradients" not in one.what] == [
        f"{name} on {title} is not applicable: it needs {what}" for name, what in needs.items()
    ]
