"""The defence sweep: what it stands for in a plan, what fits which protocol, and one audit from plan to report."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbob.app import run_audit
from plumbob.auditing.concluding.defence_frontier import frontiers
from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.planning import sweep
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import make_plan, read_plan
from plumbob.auditing.planning.sweep import every
from plumbob.auditing.running.expand import Unit, attack_cases, defences_for, gaps, untried
from plumbob.defences import DEFENCES
from plumbob.report.protection import headline


def titles(plan: Plan, protocol: int = 0) -> list[str]:
    return [defence.title for defence in defences_for(plan, plan.protocols[protocol])]


IN_PREDICTION = [
    ("none", {}),
    ("rounding", {"digits": 3}),
    ("rounding", {"digits": 2}),
    ("rounding", {"digits": 1}),
    ("label_only", {}),
    ("noise", {"sigma": 0.01}),
    ("noise", {"sigma": 0.1}),
    ("noise", {"sigma": 1.0}),
    ("purifier", {}),
    ("codebook", {}),
    ("verification", {}),
    ("dropout", {}),
    ("dp_sgd", {"epsilon": 10.0}),
    ("dp_sgd", {"epsilon": 1.0}),
    ("dp_sgd", {"epsilon": 0.1}),
    ("hide_model", {}),
    ("dp_scores", {"epsilon": 10.0}),
    ("randomised_response", {"epsilon": 3.0}),
]


AT_THE_CUT = (
    *("distance_correlation", "fedpass", "mixup", "max_norm_alignment", "output_gradient_noise", "marvell"),
    *(
        "discrete_output_gradients",
        "sparse_output_gradients",
        "label_randomised_response",
        "lp_mst",
        "private_residuals",
    ),
    *("mid", "label_distance_correlation", "confusional_autoencoder", "earlier_cut"),
)
OF_BOOSTING = ("grafting_ldp", "id_lmid", "op_boost")


def test_the_order_of_the_sweep_is_that_of_earlier_findings() -> None:
    assert every()[: len(IN_PREDICTION)] == IN_PREDICTION
    assert [name for name, _ in every()[len(IN_PREDICTION) :]] == [
        *("fake_gradients", "dp_gradients", "dp_gradients", "sparse_gradients", "quantised_gradients"),
        *("hidden_indices", "secure_aggregation", "gaussian_masking", "gaussian_masking", "gaussian_masking"),
        *("masquerade", "rank_reduction", "quantised_embeddings", "deeper_cut", "rotation", "left_out"),
        *("shared_indicators", "dp_histograms", "dp_histograms", "blinding"),
        *(name for name in AT_THE_CUT for _ in DEFENCES[name].sweep_settings),
        *(name for name in OF_BOOSTING for _ in DEFENCES[name].sweep_settings),
    ]


def test_a_defence_without_a_place_in_the_order_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "ORDER", ("none", "rounding"))
    assert [name for name, _ in every()][:4] == ["none", "rounding", "rounding", "rounding"]
    assert [name for name, _ in every()][4:] == sorted(name for name, _ in every() if name not in ("none", "rounding"))


def test_every_defence_is_in_the_sweep() -> None:
    assert {name for name, _ in every()} == set(DEFENCES)


@pytest.mark.parametrize("written", ["sweep", ["sweep"]])
def test_a_plan_may_ask_for_the_sweep(written: object) -> None:
    plan = make_plan({"defences": written, "protocols": "neural_network"})
    assert len(plan.defences) == len(IN_PREDICTION)
    assert plan.unknown == (0.3,)
    assert make_plan({"protocols": "neural_network"}).swept() == plan


def test_the_sweep_asks_every_usual_attacker() -> None:
    usual = ["active", "active-auxiliary", "active-black-box-auxiliary"]
    assert [part.name for part in make_plan({"defences": "sweep"}).threats] == usual
    mine = make_plan({"defences": "sweep", "threats": [{"name": "dark", "knows": [], "auxiliary_rows": 20}]})
    assert [part.name for part in mine.threats] == ["dark", *usual]
    split = make_plan({"defences": "sweep", "protocols": "split_network"})
    assert [part.name for part in split.threats] == ["active-training", "passive-training"]


def test_a_threat_that_no_attack_fits_is_covered_by_a_stronger_one() -> None:
    """Without the model nothing reads scores alone; an attacker with rows besides was tested, and knows no less."""
    given = {"defences": ["none", "hide_model"], "attacks": ["posterior_mean", "complete_rows"]}
    plan = make_plan(given | {"threats": ["active", "active-auxiliary"]})
    covered = [gap for gap in gaps(plan) if gap.protocol == "logistic_regression"]
    assert [(gap.threat, gap.defence, gap.meaningful) for gap in covered] == [("active", "hide_model", False)]
    assert (covered[0].covered_by, covered[0].state) == ("active-auxiliary", "not run")
    assert "which sees the same and knows no less" in covered[0].words
    alone = make_plan(given | {"threats": ["active"], "protocols": "logistic_regression"})
    assert [(gap.threat, gap.meaningful) for gap in gaps(alone)] == [("active", True)]
    assert [(gap.covered_by, gap.state) for gap in gaps(alone)] == [("", "not tested")]
    assert "Plumbob has no attack for this party here; the nearest needs" in gaps(alone)[0].why


def test_the_sweep_keeps_what_the_plan_says() -> None:
    plan = make_plan({"defences": "sweep", "unknown": [0.2, 0.4], "attacks": "path_restriction", "trials": 2})
    assert plan.unknown == (0.2, 0.4)
    assert [attack.title for attack in plan.attacks or ()] == ["path_restriction"]
    assert plan.trials == 2


def test_named_parties_get_no_share(tmp_path: Path) -> None:
    data = {"parties": {"a": "a.csv", "b": "b.csv"}, "id": "id", "label": "y"}
    assert make_plan({"data": data, "defences": "sweep"}, folder=tmp_path).unknown is None


def test_a_written_sweep_is_the_same_plan(tmp_path: Path) -> None:
    plan = make_plan({"defences": "sweep"}).filled()
    (tmp_path / "plan.yaml").write_text(plan.to_yaml(tmp_path))
    assert read_plan(tmp_path / "plan.yaml").digest == plan.digest


def test_only_what_changes_a_protocol_is_tried_on_it() -> None:
    plan = make_plan({"defences": "sweep", "protocols": ["logistic_regression", "decision_tree", "neural_network"]})
    assert "dropout" not in titles(plan, 0)
    assert "dp_sgd (epsilon=1.0)" in titles(plan, 0)
    assert not any(title.startswith(("dropout", "dp_sgd")) for title in titles(plan, 1))
    assert len(titles(plan, 2)) == len(IN_PREDICTION)


def test_without_a_coordinator_nothing_can_change_the_scores() -> None:
    bare = {"name": "split_models", "settings": {"coordinator": False}}
    left = titles(make_plan({"defences": "sweep", "protocols": [bare]}))
    assert left == ["none", "dropout", *(f"dp_sgd (epsilon={one})" for one in (10.0, 1.0, 0.1)), "hide_model"]


def test_a_plan_without_none_tries_what_it_names() -> None:
    plan = make_plan({"defences": ["dropout"], "protocols": "decision_tree"})
    assert titles(plan) == ["dropout"]


def test_what_could_not_be_tried_is_said() -> None:
    given = {"defences": ["none", "dropout", "hide_model"], "attacks": ["path_restriction"]}
    plan = make_plan(given | {"protocols": "decision_tree"})
    assert {case.defence.title for case in attack_cases(plan, Unit(plan.protocols[0], 0))} == {"none"}
    changes_nothing, no_attack = untried(plan)
    assert changes_nothing == Untried("dropout on decision_tree", "it changes nothing there")
    assert no_attack.words.startswith("hide_model on decision_tree was not tried: no attack of this plan applies")


def test_a_sweep_from_plan_to_report(tmp_path: Path) -> None:
    plan = {
        "data": {"name": "digits", "sample": 400},
        "unknown": 0.1,
        "protocols": "logistic_regression",
        "attacks": [
            {"name": "equation_solving", "settings": {"adaptive": False}},
            {"name": "shadow_inversion", "preset": "fast", "settings": {"adaptive": True}},
        ],
        "defences": "sweep",
        "trials": 2,
        "rows": 100,
        "ceiling": False,
    }
    result = run_audit(plan, tmp_path / "out")
    (made,) = frontiers(result.findings)
    options = {option.defence: option for option in made.options}
    assert len(options) == len(IN_PREDICTION) - 1  # no hidden units, no dropout
    assert options["none"].level == "exact"  # nine equations, six columns
    assert [mark.white_box for mark in options["none"].marks] == [True, True, False]
    assert options["hide_model"].hidden
    assert made.recommended != "none"
    assert all(option.bytes_sent > 0 and option.train_seconds > 0 for option in made.options)
    assert options["dp_sgd (epsilon=0.1)"].accuracy.mean < options["none"].accuracy.mean
    page = result.report.read_text()
    assert 'id="protection-table-1"' in page
    assert headline(made) in page.replace("\u00a0", " ")


def test_a_defence_that_changes_nothing_is_told_so_where_it_stands_alone() -> None:
    alone = make_plan({"data": "breast", "protocols": ["logistic_regression"], "defences": ["dropout"]})
    (told,) = untried(alone)
    assert told.what == "the effect of dropout on logistic_regression"
    assert "it changes nothing there" in told.why
