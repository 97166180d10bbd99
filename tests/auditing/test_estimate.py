"""Estimates: the algebra of the laws, the count of the work, and two small plans against their real runs."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks.costs import fit
from benchmarks.estimates import compare, took
from plumbob.app import estimate_audit
from plumbob.attacks import ATTACKS, Attack, attacks
from plumbob.auditing.costing import cost
from plumbob.auditing.costing.cost import Size
from plumbob.auditing.costing.estimate import Estimate, estimate, spread
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.expand import cases, units
from plumbob.auditing.running.open_data import open_source
from plumbob.auditing.running.schedule import pieces
from plumbob.protocols import PROTOCOLS, Protocol, protocol_named
from plumbob.report.estimated_cost import notice
from tests.commands import plumbob

SIZE = Size(500, 500, 20, 6, 3, "neural_network", {"hidden": (60, 20), "epochs": 20, "batch": 256})
SMALL = {"data": "breast", "unknown": [0.3], "trials": 2, "protocols": ["logistic_regression", "decision_tree"]}
RESULTS = Path(__file__).parents[2] / "docs" / "results" / "estimates.json"


def told(changes: dict | None = None, workers: int = 1) -> Estimate:
    plan = make_plan(SMALL | (changes or {})).filled()
    return estimate(plan, open_source(plan.data), workers=workers, speeds={})


@pytest.mark.parametrize("kind", [*ATTACKS.values(), *PROTOCOLS.values()], ids=lambda kind: kind.name)
def test_the_cost_terms_that_a_class_declares_exist(kind: type[Attack] | type[Protocol]) -> None:
    assert set(kind.cost_terms) <= set(cost.TERMS)


@pytest.mark.parametrize("name", cost.TERMS)
@pytest.mark.parametrize("part", ["train", "rows", "columns", "unknown", "classes"])
def test_no_term_falls_when_the_work_grows(name: str, part: str) -> None:
    if name.startswith(("newton", "lbfgs")) and part in ("columns", "classes"):
        pytest.skip("the solver changes with the size of the Hessian, and its terms with it")
    if name.startswith("loose") and part == "classes":
        pytest.skip("more classes tell more, and leave less to search")
    term = cost.TERMS[name]
    values = [term(replace(SIZE, **{part: getattr(SIZE, part) * k})) for k in (1, 2, 3, 8)]
    assert values == sorted(values)


def test_a_law_is_the_sum_of_its_terms() -> None:
    law = {"n": 2.0, "n u^2": 0.5}
    assert cost.value(law, SIZE) == 2 * 500 + 0.5 * 500 * 36


def test_a_network_has_the_weights_of_its_layers() -> None:
    assert SIZE.weights == 20 * 60 + 60 * 20 + 20 * 3


def test_the_fit_finds_the_law_that_made_the_numbers() -> None:
    law = {"1": 0.3, "n": 1e-3, "n u^2": 2e-5}
    sizes = [replace(SIZE, rows=rows, unknown=unknown) for rows in (100, 900, 4_000) for unknown in (2, 5, 9)]
    found = fit(tuple(law), [(size, cost.value(law, size)) for size in sizes], 1e-6)
    assert found == pytest.approx(law, rel=1e-3)


def test_every_protocol_and_default_attack_was_measured() -> None:
    measured = cost.measured()
    for name in PROTOCOLS:
        assert measured.law(f"train/{name}")[1] == ""
        assert measured.law(f"memory/{name}")[1] == ""
    for name, attack in attacks().items():
        for protocol in attack.protocols if attack.by_default else ():
            assert measured.law(f"attack/{name}/{protocol}")[1] == "", (name, protocol)


def test_attacks_of_quick_audits_take_seconds() -> None:
    """On 2,000 rows of credit, 7 of its 23 columns hidden: ten seconds of a processor at most."""
    measured, slow = cost.measured(), {}
    for name, attack in attacks("fast").items():
        for protocol in attack.protocols if attack.by_default else ():
            if protocol not in attack.outdone:
                size = Size(2_000, 2_000, 23, 7, 2, protocol, vars(protocol_named(protocol)))
                slow[name, protocol] = cost.value(measured.law(f"attack/{name}/{protocol}")[0], size)
    assert {where: seconds for where, seconds in slow.items() if seconds > 10} == {}


def test_what_was_never_measured_is_told_and_still_priced() -> None:
    law, remark = cost.measured().law("attack/an_attack_of_tomorrow/logistic_regression")
    assert cost.value(law, SIZE) > 0
    assert "not measured" in remark
    slow = told({"attacks": ["dlg"], "protocols": ["split_training"], "threats": ["coordinator"]})
    assert any("dlg" in note for note in slow.notes)
    assert slow.seconds > 0


def test_the_rows_name_every_case_of_the_plan_once() -> None:
    plan = make_plan(SMALL).filled()
    made = told()
    wanted = {(u.protocol.title, c.defence.title, c.title) for u in units(plan) for c in cases(plan, u)}
    rows = {(row.protocol, row.defence, row.attack) for row in made.rows}
    assert wanted <= rows
    assert {row.attack for row in made.rows} - {attack for *_, attack in wanted} == {
        "training",
        "prediction",
        "scoring",
    }
    assert [row.seconds for row in made.rows] == sorted((row.seconds for row in made.rows), reverse=True)


def test_rows_shares_and_total_add_up() -> None:
    made = told()
    assert sum(row.seconds for row in made.rows) == pytest.approx(sum(made.share_seconds))
    assert made.seconds == pytest.approx(sum(made.share_seconds) + made.start_seconds)


def test_trials_add_and_a_model_is_trained_once_for_all_splits() -> None:
    once, thrice = told({"trials": 1}), told({"trials": 3})
    assert sum(thrice.share_seconds) == pytest.approx(3 * sum(once.share_seconds))
    splits = told({"trials": 1, "unknown": [0.2, 0.4]})
    trained = {row.protocol: row.times for row in splits.rows if row.attack == "training"}
    assert trained == {"logistic_regression": 1, "decision_tree": 1}
    assert {row.times for row in splits.rows if row.attack == "prediction"} == {2}


def test_more_rows_never_cost_less() -> None:
    few, many = (told({"data": {"name": "breast", "sample": rows}}) for rows in (200, 500))
    assert few.seconds <= many.seconds
    assert few.peak_bytes <= many.peak_bytes


def test_shares_are_the_pieces_that_are_handed_out() -> None:
    plan = make_plan(SMALL | {"unknown": [0.1, 0.3, 0.5], "protocols": ["random_forest"], "trials": 1}).filled()
    source = open_source(plan.data)
    for workers in (1, 2, 8):
        made = estimate(plan, source, workers=workers, speeds={})
        assert len(made.share_seconds) == len(pieces(plan, source, workers))
        trained = sum(row.times for row in made.rows if row.attack == "training")
        assert trained == min(workers, len(made.share_seconds))


def test_workers_share_the_work() -> None:
    one, two, many = (told(workers=workers) for workers in (1, 2, 64))
    assert many.workers == len(many.share_seconds)
    assert many.wall_seconds >= max(many.share_seconds)
    assert two.wall_seconds < one.wall_seconds + one.start_seconds
    assert two.peak_bytes > one.peak_bytes
    assert spread([5.0, 1.0, 1.0, 1.0], 2) == 5.0
    assert spread([1.0] * 10, 3) == 4.0


def test_the_forecast_says_which_limit_bites_and_what_to_do() -> None:
    plan = {"protocols": ["encrypted_logistic_regression"], "threats": ["corrupted-coordinator"], "effort": "thorough"}
    made = told(plan)
    ten, hundred = made.forecasts
    assert (ten.rows, hundred.rows) == (10_000_000, 100_000_000)
    assert hundred.share_hours >= ten.share_hours
    assert all(crew.hours >= hundred.share_hours for crew in hundred.crews)
    hours = [crew.hours for crew in hundred.crews]
    assert hours == sorted(hours, reverse=True)
    assert hundred.limit.startswith("time: ")
    sample = int(hundred.limit.partition("`sample: ")[2].partition("`")[0])
    assert told(plan | {"data": {"name": "breast", "sample": 500}}).share_seconds[0] < 24 * 3600
    assert 500 < sample < ten.rows


def test_only_a_long_audit_says_so_beforehand() -> None:
    made = told()
    assert notice(replace(made, wall_seconds=30.0)) == ""
    assert notice(replace(made, wall_seconds=250.0)) == "about 4 minutes; --estimate says more"


def test_a_calibration_is_of_this_machine_and_positive() -> None:
    speeds = cost.speed(cost.measured())
    assert set(speeds) == {"matrices", "loops", "powers", "networks"}
    assert all(math.isfinite(factor) and factor > 0 for factor in speeds.values())


def test_the_command_prints_json_and_makes_no_folder(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(SMALL), encoding="utf-8")
    done = plumbob("audit", "plan.yaml", "--estimate", "--json", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["workers"] == 2
    assert {"rows", "seconds", "wall_seconds", "peak_bytes", "disk_bytes", "forecasts"} <= set(said)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]


@pytest.mark.parametrize(
    "plan",
    [
        SMALL | {"attacks": ["equation_solving", "path_restriction", {"name": "gradient_inversion", "preset": "fast"}]},
        {
            "data": "breast",
            "unknown": [0.3],
            "trials": 1,
            "protocols": ["split_network"],
            "threats": ["active-training"],
        },
    ],
    ids=["prediction", "training"],
)
def test_an_estimate_is_within_a_factor_of_2_of_its_run(plan: dict) -> None:
    ratios = compare("here", plan)["ratios"]
    assert 0.5 <= ratios["seconds"] <= 2
    assert 0.5 <= ratios["bytes"] <= 2


def test_the_memory_of_who_measures_is_not_counted() -> None:
    ballast = np.ones(100_000_000)  # 0.8 GB, touched; the audit needs half
    plan = {"data": "breast", "unknown": [0.3], "trials": 1, "protocols": ["decision_tree"]}
    assert took("here", plan)["bytes"] < ballast.nbytes


def test_the_committed_comparison_holds_what_it_says() -> None:
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    plans = result["plans"]
    assert len(plans) >= 12
    for what in ("seconds", "bytes"):
        good = np.mean([0.5 <= one["ratios"][what] <= 2 for one in plans])
        assert result["within"][what] == pytest.approx(good, abs=1e-3)
        assert good >= 0.9


def test_settings_count() -> None:
    short, long = (
        told(
            {
                "protocols": [{"name": "neural_network", "settings": {"epochs": epochs}}],
                "attacks": ["gradient_inversion"],
            }
        )
        for epochs in (2, 40)
    )
    trained = [next(row.seconds for row in made.rows if row.attack == "training") for made in (short, long)]
    assert trained[1] > 5 * trained[0]
    sized = [
        cost.TERMS["e N b^3"](
            replace(SIZE, settings=vars(protocol_named("encrypted_logistic_regression", key_bits=bits)))
        )
        for bits in (1_024, 2_048)
    ]
    assert sized[1] == 8 * sized[0]


def test_an_estimate_of_a_plan_that_cannot_run_is_refused() -> None:
    from plumbob.errors import BadInput

    with pytest.raises(BadInput, match="no attack of this plan fits"):
        estimate_audit(SMALL | {"attacks": ["dlg"]})


def test_the_page_says_what_the_committed_comparison_says() -> None:
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    page = " ".join((RESULTS.parents[1] / "estimate.md").read_text(encoding="utf-8").split())
    plans = len(result["plans"])
    within = {what: round(share * plans) for what, share in result["within"].items()}
    assert f"[{plans} real audits](results/estimates.json)" in page
    assert f"within a factor of 2 for time in {within['seconds']}, for memory in {within['bytes']}" in page
