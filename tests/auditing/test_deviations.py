"""Threats that choose what they send: attacks bring their messages, honest runs are shared, and codes that are there are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbob.app import run_audit
from plumbob.auditing.planning.matrix import of_plan
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.expand import Unit, cases, untried
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.scoring.column_ceiling import CEILING
from tests.commands import plumbob

SMALL = {"key_bits": 0, "trees": 1, "depth": 1, "packed": False}
PUBLISHED = 1.0  # Table 6: at base 2 every row that has a number is found


def planned(**changed: Any) -> Plan:
    settings = SMALL | changed.pop("settings", {})
    asked = {"unknown": [0.3], "trials": 1, "rows": 120, "protocols": [{"name": "secure_boost", "settings": settings}]}
    return make_plan(asked | changed).filled()


def found(plan: Plan) -> dict[tuple[str, str], Finding]:
    return {(f.threat, f.attack): f for f in run(plan, open_source(plan.data, 0))}


def success(finding: Finding) -> float:
    """Share of the rows, over all columns, whose bin was found."""
    columns = finding.score.columns
    return float(np.mean([column.claims * (1 - column.error) / finding.score.rows for column in columns]))


def test_a_plan_of_one_line_asks_of_secure_boost_what_hidden_codes_reveal() -> None:
    plan = make_plan({"protocols": ["secure_boost"]}).filled()
    asked = cases(plan, Unit(plan.protocols[0], 0))
    assert plan.data.name == "breast"
    assert {(case.threat.name, case.title, bool(case.sent)) for case in asked} == {
        ("active", "split_sides", False),
        ("active", CEILING, False),
        ("active-low-bits", "split_sides", False),
        ("active-low-bits", CEILING, False),
        ("active-low-bits", "reverse_sum", True),
        ("active-low-bits", "code_decoding", True),
    }
    assert [(one.what, one.why) for one in untried(plan)] == [
        ("bin_mapping on secure_boost", "it needs 100 complete rows of other people"),
        ("chosen_gradients on secure_boost", "it needs an active party that sends any gradient"),
    ]


def test_the_attack_brings_its_code_and_succeeds_as_published() -> None:
    judged = found(planned())
    assert success(judged["active-low-bits", "reverse_sum"]) == PUBLISHED
    assert success(judged["active-low-bits", "code_decoding"]) == 1
    assert judged["active-low-bits", "reverse_sum"].score.baselines["best_constant"] > 0.5
    assert ("active", "reverse_sum") not in judged


def test_without_a_threat_that_deviates_it_is_not_applicable_and_says_why() -> None:
    plan = planned(threats=["active"], attacks=["reverse_sum"])
    needs = "needs an active party that sets the low bits of its gradients"
    assert set(found(plan)) == {("active", CEILING)}
    told = [one.words for one in untried(plan)]
    assert f"reverse_sum on {plan.protocols[0].title} is not applicable: it {needs}" in told
    (row,) = [row for row in of_plan(plan)[0].rows if row.threat == "active"]
    assert (needs, ("code_decoding", "reverse_sum")) in row.reasons


def test_a_code_in_the_protocol_s_settings_is_read_by_whoever_is_curious() -> None:
    """As plans have had it; no attack brings another code then."""
    plan = planned(settings={"code": "magic_numbers"}, threats=["active-training"])
    judged = found(plan)
    assert success(judged["active-training", "reverse_sum"]) == 1
    assert ("active-training", "code_decoding") not in judged
    hidden = "and what is hidden here are magic numbers"
    assert [one.why for one in untried(plan)] == [
        "it needs 100 complete rows of other people",
        *(f"it reads {kind}, {hidden}" for kind in ("powers of two", "labelled groups")),
    ]


def test_each_kind_of_message_is_run_once_and_the_honest_run_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = []
    train = SecureBoost.train

    def counted(self: SecureBoost, *given: Any) -> Any:
        codes.append(self.code.kind if self.code else "none")
        return train(self, *given)

    monkeypatch.setattr(SecureBoost, "train", counted)
    attacks = ["split_sides", "reverse_sum", "code_decoding", {"name": "reverse_sum", "settings": {"effort": 20}}]
    judged = found(planned(threats=["active-training", "active-low-bits", "active-any-gradient"], attacks=attacks))
    assert codes == ["none", "magic numbers", "labelled groups"]
    honest = [judged[threat, "split_sides"].score for threat in ("active-training", "active-low-bits")]
    assert honest[0].error == honest[1].error
    assert len({finding.model_accuracy for finding in judged.values()}) == 1  # the codes change no tree


def test_base_supergroups_and_random_bits_are_settings_of_the_attack() -> None:
    settings = {"base": 8, "supergroups": 4, "random_bits": 0, "rows": "by_distribution"}
    judged = found(planned(attacks=["reverse_sum", {"name": "reverse_sum", "settings": settings}]))
    plain, changed = [finding for (_, attack), finding in judged.items() if attack.startswith("reverse_sum")]
    assert "base=8, supergroups=4, random_bits=0, rows=by_distribution" in changed.attack
    assert changed.score.rows == plain.score.rows
    assert success(changed) < 0.9 < success(plain)  # seven rows share a digit, and nothing tells them apart


def test_a_code_too_long_for_the_plaintexts_fails_by_itself() -> None:
    judged = found(planned(settings={"key_bits": 1_024, "packed": True, "precision": 40}, rows=50))
    failed = judged["active-low-bits", "reverse_sum"]
    assert "do not fit into a plaintext of 1,021 bits" in failed.score.failed
    assert judged["active", "split_sides"].score.failed == ""


def test_recorded_runs_are_read_as_they_were_sent(tmp_path: Path) -> None:
    run_audit(planned(), tmp_path / "first", transcripts=True)
    kept = sorted((tmp_path / "first" / "transcripts").glob("secure_boost*.zip"))
    assert len(kept) == 3
    read = []
    for path in kept:
        result = run_audit({"data": {"recorded": str(path)}, "threats": ["active-low-bits"]}, tmp_path / path.stem)
        read.append({f.attack for f in result.findings} - {CEILING})
        hidden = read[-1] - {"split_sides"}
        assert len([note for note in result.notes if "is not applicable" in note]) == 4 - len(hidden)
    assert sorted(map(sorted, read)) == [
        ["code_decoding", "split_sides"],
        ["reverse_sum", "split_sides"],
        ["split_sides"],
    ]


def test_a_threat_that_no_protocol_takes_is_one_sentence_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("protocols: [logistic_regression]\nthreats: [active-low-bits]\n")
    done = plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "plumbob: plan.yaml: threat 'active-low-bits': an active party that sets the low bits of its gradients makes a "
        "difference in secure_boost only, and the plan names logistic_regression; add it to 'protocols' or remove the threat\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]
