"""The words of the law and of standards: each line follows from the audit, and what was not tested says so."""

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from plumbob.app import run_audit
from plumbob.attacks import attacks
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, DATA_RECONSTRUCTION
from plumbob.auditing.concluding.conclusion import Standing, conclude
from plumbob.auditing.concluding.defence_frontier import frontiers
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.data_flows import CLEAR, ENCRYPTED, Flow
from plumbob.auditing.running.finding import Finding
from plumbob.data.matched import Matched
from plumbob.defences import defence_named
from plumbob.report import identifiability, severity, standards
from plumbob.report.answer import Answer, answers
from plumbob.report.assessment import Subject, render
from plumbob.report.residual import Stage, counted, stages
from plumbob.report.subject import Promise
from plumbob.scoring.leak_levels import Level
from plumbob.threats import THREATS
from tests.report import samples
from tests.report.test_assessment import about, text_of, with_flows

PREDICTS = about(untrained=("logistic_regression",))


def at(found: Sequence[Answer], level: Level, gain: float = 0.8) -> list[Answer]:
    """The same answers with every column at one level."""

    def said(one: Standing) -> Standing:
        return replace(
            one, verdict=replace(one.verdict, level=level, gain=gain, leaking=one.verdict.trials, words="said")
        )

    return [
        replace(answer, judged=replace(answer.judged, standings=tuple(map(said, answer.judged.standings))))
        for answer in found
    ]


def gap(threat: str, protocol: str = "logistic_regression", defence: str = "none", *, meaningful: bool = True) -> Gap:
    return Gap(protocol, threat, defence, "it gets no message", meaningful)


def bare(findings: Sequence[Finding]) -> list[Finding]:
    return [replace(f, defence="none") for f in findings]


def quiet() -> list[Finding]:
    """Nothing leaks without a measure, and the ceiling says that nothing could."""
    return samples.capped(bare(samples.harmless()))


def told(findings: Sequence[Finding], subject: Subject = PREDICTS, gaps: Sequence[Gap] = ()) -> list[Stage]:
    conclusion = conclude(findings, gaps)
    threats = {threat.name: threat for threat in subject.threats}
    return stages(answers(conclusion), frontiers(findings, conclusion), threats)


def criterion(findings: Sequence[Finding], name: str, subject: Subject = PREDICTS) -> identifiability.Row:
    return {row.asked: row for row in identifiability.criteria(subject, told(findings, subject))}[name]


def hit(findings: Sequence[Finding], everybody: float, chance: float) -> list[Finding]:
    """Findings in which so many people have all their hidden columns recovered, and so many by chance."""
    counts = {f"{share}_{width}": everybody for share in ("any", "half", "all") for width in ("1", "5")}
    counts |= {f"{name}_chance": chance for name in list(counts)}
    return [replace(f, score=replace(f.score, rows_at_risk=counts)) for f in findings]


@pytest.mark.parametrize(
    ("level", "gain", "expected"),
    [
        (Level.EXACT, 1.0, "maximum"),
        (Level.EXACT_FOR_SOME, 0.1, "maximum"),
        (Level.LEAK, 0.5, "significant"),
        (Level.LEAK, 0.49, "limited"),
        (Level.ORDER, 0.0, "limited"),
        (Level.UNDECIDED, 0.9, "not known"),
        (Level.NOT_TESTED, 0.0, "not known"),
        (Level.NONE, 0.0, "negligible"),
    ],
)
def test_every_level_has_a_step(level: Level, gain: float, expected: str) -> None:
    found = severity.risks(at(answers(conclude(samples.values(threat="active-training"))), level, gain), THREATS)
    assert {risk.severity for risk in found} == {expected}
    likely = expected if expected in ("negligible", "not known") else "maximum"
    assert {risk.likelihood for risk in found} == {likely}
    levels = {"negligible": "none found", "not known": "not known", "limited": "medium"}
    assert {risk.level for risk in found} == {levels.get(expected, "high")}


def test_a_level_that_nobody_knows_is_not_known() -> None:
    class Strange(StrEnum):
        NEW = "new"

        @property
        def leaks(self) -> bool:
            return False

        @property
        def rank(self) -> int:
            return 0

    found = at(answers(conclude(samples.values())), Strange.NEW)  # type: ignore[arg-type]
    assert {risk.level for risk in severity.risks(found, THREATS)} == {"not known"}


@pytest.mark.parametrize("level", [Level.NOT_TESTED, Level.UNDECIDED])
def test_not_known_is_counted_apart_from_none_found(level: Level) -> None:
    found = answers(conclude(quiet()))
    counted = severity.counts(severity.risks(at(found, level), THREATS))
    assert counted["not known"] == len(samples.NAMES)
    assert counted["none found"] == 0
    nothing = severity.counts(severity.risks(found, THREATS))
    assert (nothing["not known"], nothing["none found"]) == (0, len(samples.NAMES))


def test_a_threat_that_was_asked_for_and_not_tested_leaves_nothing_at_none() -> None:
    both = severity.risks(answers(conclude(quiet(), [gap("coordinator")])), THREATS)
    assert {risk.level for risk in both} == {"not known"}
    assert {risk.untested for risk in both} == {("coordinator",)}
    found = samples.capped(samples.values(threat="collusion"))
    leaking = severity.risks(answers(conclude(found, [gap("active")])), THREATS)
    assert {risk.shown for risk in leaking} >= {"at least medium", "at least low", "not known"}
    assert "none found" not in {risk.level for risk in leaking}


def test_a_threat_that_learns_nothing_counts_for_nothing() -> None:
    silent = gap("passive-training", meaningful=False)
    assert severity.risks(answers(conclude(quiet(), [silent])), THREATS) == severity.risks(
        answers(conclude(quiet())), THREATS
    )
    (stage,) = told(quiet(), gaps=[silent, gap("passive-training", "neural_network", meaningful=False)])
    assert stage.residual == "none found"
    subject = about(threats=(THREATS["active"], THREATS["passive-training"]))
    _, passive = identifiability.means(subject, answers(conclude(quiet(), [silent])), quiet())
    assert (passive["learns"], passive["cost"]) == ("not applicable: it gets no message", "not tested")
    text = text_of(render(subject, quiet(), made={}, conclusion=conclude(quiet(), [silent])))
    assert "logistic_regression, threat passive-training, defence none: not applicable, it gets no message." in text


def test_a_column_that_one_protocol_leaves_open_counts_as_at_least() -> None:
    both = samples.values(threat="collusion") + samples.values(threat="coordinator", protocol="neural_network")
    conclusion = conclude(samples.capped(both), [gap("collusion", "neural_network")])
    counted = severity.counts(severity.risks(answers(conclusion), THREATS))
    assert counted["at least medium"] > 0
    assert counted["medium"] == counted["none found"] == 0
    assert sum(counted.values()) == len(samples.NAMES)


def test_a_protocol_that_was_not_tested_leaves_no_column_whole() -> None:
    subject = about(threats=(THREATS["active"], THREATS["collusion"]))
    steps = told(quiet(), subject, [gap("active", "neural_network")])
    assert {stage.protocol: stage.residual for stage in steps} == {
        "logistic_regression": "none found",
        "neural_network": "not known",
    }
    counted_ = counted(stage.before for stage in steps)
    assert (counted_["none found"], counted_["not known"]) == (0, len(samples.NAMES))
    assert identifiability.opinion(subject, steps)[3].answers == ("not tested", "not tested")


def test_where_no_attack_covers_the_setup_the_risk_is_not_known() -> None:
    blind = [replace(f, score=replace(f.score, untried="it does not fit")) for f in samples.harmless()]
    assert {risk.level for risk in severity.risks(answers(conclude(blind)), THREATS)} == {"not known"}


def test_the_residual_risk_is_high_where_a_column_stays_high() -> None:
    (stage,) = told(samples.values())
    assert (stage.measure, stage.residual) == ("no measure tried", "high")
    assert "stays high" in stage.consultation
    assert "Art. 36" in stage.consultation


def test_the_residual_risk_with_a_part_untested_is_not_known() -> None:
    findings = samples.capped([f for f in samples.sweep() if f.defence == "hide_model"])
    open_ = [gap("active", defence="hide_model")]  # the threat that knows the model has no attack under it
    (stage,) = told(findings, gaps=open_)
    assert stage.after.measure == "hide_model"
    assert {pair.residual for pair in stage.pairs} == {"not known"}
    assert stage.residual == "not known"
    assert "not known" in stage.consultation
    assert "Art. 36" in stage.consultation
    text = text_of(render(about(), with_flows(findings), made={}, conclusion=conclude(findings, open_)))
    assert "Residual risk of logistic regression on bank , with hide_model : not known ." in text
    (stage,) = told(findings)
    assert (stage.residual, "is not high" in stage.consultation) == ("none found", True)


def test_a_measure_is_recommended_only_if_every_threat_was_tested_under_it() -> None:
    swept = samples.capped(samples.sweep())
    (stage,) = told(swept)
    assert (stage.after.measure, stage.residual) == ("hide_model", "none found")
    (stage,) = told(swept, gaps=[gap("active", defence="hide_model")])
    assert (stage.after.measure, stage.residual) == ("label_only", "none found")
    (stage,) = told(samples.sweep())  # no ceiling: the least is recommended, and what is left is not known
    assert (stage.after.measure != "", stage.residual) == (True, "not known")


def test_what_was_run_with_a_measure_only_has_no_initial_risk() -> None:
    (stage,) = told(samples.capped(samples.harmless()))
    assert all(pair.before is None and pair.residual == "none found" for pair in stage.pairs)
    text = text_of(render(about(), with_flows(samples.harmless()), made={}))
    assert "Not tested: nothing was run without a measure." in text


def test_the_three_blocks_are_kept_apart() -> None:
    page = render(about(purpose="Predict default"), with_flows(samples.sweep()), made={})
    blocks = re.split(r'<section id="(?:declared|measured|combined|decisions)">', page)
    assert len(blocks) == 5
    declared, measured, combined = (text_of("<main>" + block) for block in blocks[1:4])
    assert "Predict default" in declared
    assert "Predict default" not in measured + combined
    assert "% better than guessing" in measured
    assert "% better than guessing" not in declared + combined
    assert "Initial risk Residual risk" in combined
    assert not re.search(r"\bhigh\b|\bmedium\b", measured)
    for blank in ("Safeguards", "Which of these columns are sensitive", "Why these columns are needed"):
        assert blank in declared


def test_inference_follows_the_verdicts() -> None:
    row = criterion(samples.values(), "Inference")
    assert row.answers == ("found", "found")
    assert "1 recovered exactly" in " ".join(row.said)
    assert "The label: not tested." in row.said
    nothing = criterion(quiet(), "Inference")
    assert nothing.answers == ("none found", "none found")
    assert "10 with nothing found" in " ".join(nothing.said)
    labelled = [replace(f, score=replace(f.score, label_accuracy=0.9, label_baseline=0.5)) for f in samples.values()]
    assert "The label: not tested." not in criterion(labelled, "Inference").said
    assert criterion(bare(samples.harmless()), "Inference").answers == ("not known", "not known")  # no ceiling
    unread = samples.capped(quiet(), label=True)[-1:]  # a ceiling for the label, and no attack on it
    assert "The label: not tested." in criterion([*quiet(), *unread], "Inference").said
    assert criterion(samples.capped(samples.sweep()), "Inference").answers == ("found", "none found")


def test_singling_out_follows_the_counts_of_people() -> None:
    assert criterion(samples.values(), "Singling out").answers[0] == "not measured"
    many = criterion(hit(samples.values(), 41.0, 6.0), "Singling out")
    assert many.answers[0] == "found"
    assert "1,000 people tested" in many.said[1]
    assert "for 41 (by chance: 6)" in many.said[1]
    leaking = samples.capped(samples.values(attacks=("generative_regression",)))  # and no column is recovered
    few = criterion(hit(leaking, 3.0, 3.0), "Singling out")
    assert few.answers[0] == "none found"
    assert criterion(hit(samples.values(), 3.0, 3.0), "Singling out").answers[0] == "found"  # one column is
    half = told(hit(leaking, 3.0, 3.0), gaps=[gap("collusion")])
    assert identifiability.criteria(PREDICTS, half)[0].answers[0] == "not known"
    assert "for fewer than 5 (by chance: fewer than 5)" in few.said[1]


def test_linkability_follows_the_match_of_rows() -> None:
    assert criterion(samples.values(), "Linkability").answers == ("not measured", "not measured")
    crossed = (
        Flow("align", "active", "passive", "psi request", ENCRYPTED, 1, 100),
        Flow("align", "active", "passive", "shared ids", CLEAR, 1, 100),
    )
    row = criterion(samples.values(), "Linkability", replace(PREDICTS, alignment=crossed))
    assert row.answers == ("by design", "by design")
    said = " ".join(row.said)
    assert "private set intersection. In the clear crossed: shared ids." in said
    assert "records of 2,000 people" in said
    ids = (Flow("align", "passive", "active", "ids", CLEAR, 1, 100),)
    shown = criterion(samples.values(), "Linkability", replace(PREDICTS, alignment=ids))
    assert "by showing identifiers" in shown.said[0]
    assert all("outside" in row.said[-1] or "elsewhere" in row.said[-1] for row in (row, shown))


def test_means_name_knowledge_cost_and_result() -> None:
    subject = replace(PREDICTS, threats=(THREATS["active"], THREATS["coordinator"]))
    found = answers(conclude(samples.values()))
    active, coordinator = identifiability.means(subject, found, samples.values())
    assert "the whole model" in active["knows"]
    assert active["cost"] == "less than a second and 120 MB on one computer"
    assert active["learns"] == f"{sum(c.level.leaks for c in found[0].columns)} of 10 columns"
    assert coordinator["learns"] == coordinator["cost"] == coordinator["attacks"] == "not tested"
    slow = [replace(f, seconds=12.0) for f in samples.values()]
    assert identifiability.means(subject, found, slow)[0]["cost"] == "at most 12 s and 120 MB on one computer"
    lost = [replace(f, seconds=0.0) for f in samples.values()]
    assert identifiability.means(subject, found, lost)[0]["cost"] == "not kept"
    harmless = answers(conclude(quiet()))
    assert identifiability.means(subject, harmless, [])[0]["learns"] == "nothing found"
    elsewhere = answers(conclude(samples.values() + samples.values(protocol="neural_network", threat="coordinator")))
    assert identifiability.means(subject, elsewhere, [])[0]["learns"].endswith("not tested on neural network")


def test_the_opinion_tells_training_from_prediction() -> None:
    direct, development, deployment, likelihood = identifiability.opinion(PREDICTS, told(samples.values()))
    assert direct.answers == development.answers == ("not tested", "not tested")
    assert "training was not played" in development.said[0]
    assert deployment.answers[0] == "found"
    assert likelihood.answers[0] == "significant"
    trains = replace(PREDICTS, untrained=())
    trained = samples.values(protocol="split_training", threat="coordinator")
    _, development, deployment, _ = identifiability.opinion(trains, told(trained, trains))
    assert (development.answers[0], deployment.answers[0]) == ("found", "not tested")
    assert "alone does not show" in identifiability.opinion(PREDICTS, told(quiet()))[3].said[0]
    half = identifiability.opinion(PREDICTS, told(quiet(), gaps=[gap("collusion")]))[3]
    assert "likelihood is not known" in half.said[0]


def test_every_attack_has_a_name_of_nist() -> None:
    assert {attack.nist for attack in attacks().values()} <= set(standards.PRIVACY_ATTACKS)
    assert {name for name, attack in attacks().items() if attack.deviates()} == {
        "reverse_sum",
        "code_decoding",
        "bin_mapping",
        "chosen_gradients",
        "fsha",
        "active_completion",
    }


def nist(findings: Sequence[Finding], subject: Subject = PREDICTS) -> dict[str, dict[str, str]]:
    return {row["kind"]: row for row in standards.privacy_attacks(subject, answers(conclude(findings)), findings)}


def test_attacks_stand_under_their_names_and_the_others_were_not_tested() -> None:
    rows = nist(samples.values(attacks=("posterior_mean",)))
    attribute = rows["attribute inference"]
    assert (attribute["run"], attribute["stage"], attribute["knowledge"]) == (
        "posterior mean",
        "deployment",
        "white box",
    )
    assert attribute["found"] == "found"
    assert {rows[kind]["found"] for kind in rows if kind != "attribute inference"} == {"not tested"}
    assert {"membership inference", "property inference", "model extraction"} <= set(rows)
    hidden = replace(PREDICTS, threats=(THREATS["active-black-box-auxiliary"],))
    gray = samples.values(attacks=("shadow_inversion",), threat="active-black-box-auxiliary", white_box=False)
    assert nist(gray, hidden)["attribute inference"]["knowledge"] == "gray box"
    sums = samples.values(attacks=("reverse_sum",), protocol="secure_boost", threat="active-training", white_box=False)
    row = nist(sums, replace(PREDICTS, threats=(THREATS["active-training"],)))["data reconstruction"]
    assert (row["stage"], row["knowledge"]) == ("training", "gray box")
    assert "changes what it sends" in row["can"]


def test_whoever_matched_rows_knows_who_was_trained_on() -> None:
    told = (Matched("bank", ("shop",), rows=120, shared=90, listed=100), Matched("shop", ("bank",), 100, 90, 120))
    row = nist(samples.values(), replace(PREDICTS, matched=told))["membership inference"]
    assert row["found"] == "found"
    assert "bank and shop matched the rows of training" in row["run"]


def test_an_attack_that_did_not_fit_found_nothing_that_is_known() -> None:
    blind = [replace(f, defence="none", score=replace(f.score, untried="no")) for f in samples.harmless()]
    assert nist(blind)["attribute inference"]["found"] == "not known"
    assert nist(bare(samples.harmless()))["attribute inference"]["found"] == "not known"  # no ceiling
    assert nist(quiet())["attribute inference"]["found"] == "none found"


def test_what_one_attack_found_does_not_decide_for_another() -> None:
    rng = np.random.default_rng(0)
    leaks = [samples.finding([samples.column("c", 0.004, rng)], trial=i, attack="posterior_mean") for i in range(3)]
    unsure = samples.column("c", 0.0401, rng)
    unsure = replace(unsure, gain_error=0.2, tie=0.0, rank=0.0)  # finds nothing, and leaves room for much
    weak = [samples.finding([unsure], trial=i, attack="linear_equations") for i in range(3)]
    named = {"posterior_mean": ATTRIBUTE_INFERENCE, "linear_equations": DATA_RECONSTRUCTION}
    assert {name: attacks()[name].nist for name in named} == named
    rows = nist(samples.capped(leaks + weak))
    assert rows[ATTRIBUTE_INFERENCE]["found"] == "found"
    assert rows[DATA_RECONSTRUCTION]["found"] == "not known"


def test_clauses_of_27559_follow_the_audit() -> None:
    rows = {clause: said for clause, _, said in standards.clauses(PREDICTS, told(samples.values()), samples.values())}
    assert rows["8.3"] == "no measure was tried"
    assert rows["8.3.4"].startswith("not done")
    assert "equality solving" in rows["8.2.3"]
    high = severity.counts(severity.risks(answers(conclude(samples.values())), THREATS))["high"]
    assert rows["8.2.2"].startswith(f"threat re-identification risk without a measure: {high} high")
    found = samples.capped(samples.sweep())
    swept = {clause: said for clause, _, said in standards.clauses(PREDICTS, told(found), samples.sweep())}
    assert "hide model" in swept["8.3"]
    assert swept["8.3.4"] == "residual re-identification risk: logistic regression on bank, with hide_model: none found"


def test_differential_privacy_is_not_applicable_without_it() -> None:
    assert "Not applicable: no defence with differential privacy" in text_of(render(about(), samples.audit(), made={}))


def test_parameters_of_differential_privacy_are_those_of_the_defence() -> None:
    made = [
        Promise(f"dp_sgd (epsilon={epsilon})", ("logistic_regression",), guarantee)
        for epsilon in (2.0, 0.5)
        for guarantee in defence_named("dp_sgd", epsilon=epsilon, clip=3.0).guarantees()
    ]
    findings = samples.values(defence="dp_sgd (epsilon=2.0)")
    (table,) = standards.promises(replace(PREDICTS, promises=tuple(made)), answers(conclude(findings)))
    rows = dict(table["rows"])
    assert rows["Epsilon"] == ["2", "0.5"]
    assert rows["Unit of privacy"] == [made[0].guarantee.unit]  # said once for both settings
    assert "clipped to length 3" in rows["Mechanism"][0]
    assert "1 recovered exactly" in rows["Attacks under it (measured)"][0]
    assert rows["Attacks under it (measured)"][1] == "not tested"
    text = text_of(render(replace(PREDICTS, promises=tuple(made)), findings, made={}))
    assert "Not applicable" not in text
    assert made[0].guarantee.hazards[0] in text


def test_no_page_says_that_a_law_or_a_standard_is_met() -> None:
    for findings in (samples.audit(), samples.harmless(), samples.sweep()):
        text = text_of(render(about(), with_flows(findings), made={})).lower()
        assert not re.search(r"complian|conform|anonymous|is lawful|certif", text)


def test_a_real_audit_fills_every_table_and_shows_no_value(tmp_path: Path) -> None:
    plan = {
        "data": "breast",
        "unknown": [0.3],
        "trials": 1,
        "rows": 60,
        "protocols": ["logistic_regression", "decision_tree"],
    }
    plan |= {"attacks": ["equation_solving", "path_restriction"], "threats": ["active", "coordinator"]}
    plan |= {"defences": ["none", {"name": "dp_sgd", "settings": {"epsilon": 3.0, "epochs": 1}}]}
    run_audit(plan, tmp_path / "out")
    page = (tmp_path / "out" / "assessment.html").read_text(encoding="utf-8")
    text = text_of(page)
    assert "In force on logistic regression Unit" in text  # not on the tree, which it does not change
    assert "Epsilon 3 " in text
    assert "attribute inference hidden values of a person, from what is known of that person equation solving" in text
    assert "Not tested, or not decided: threat coordinator." in text
    gaps = [
        line for line in re.findall(r"Not measured: [^<]*", page) if "logistic_regression, threat coordinator" in line
    ]
    assert len(gaps) == 1  # one sentence for all defences
    assert "none, dp_sgd" in gaps[0]
    shown = set(re.findall(r"\d+\.\d{3,}", text))
    assert not shown & set(cells())


def cells() -> list[str]:
    """Every cell of the table with three decimals or more, as text."""
    texts = [f"{value:g}" for value in load_breast_cancer().data.ravel()]
    return [text for text in texts if len(text.partition(".")[2]) >= 3]


def test_the_plan_says_where_a_promise_is_in_force() -> None:
    from plumbob.report.subject import _promises

    plan = make_plan(
        {
            "data": "breast",
            "protocols": ["logistic_regression", "decision_tree"],
            "defences": ["none", "rounding", {"name": "dp_sgd+rounding", "settings": {"dp_sgd": {"epsilon": 5.0}}}],
        }
    )
    (promise,) = _promises(plan)
    assert promise.protocols == ("logistic_regression",)
    assert promise.guarantee.epsilon == 5.0
