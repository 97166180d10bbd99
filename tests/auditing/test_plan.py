"""Plans: short forms, defaults, and one clear sentence for everything that is wrong."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks import ATTACKS, attack_named
from plumbob.attacks.scores.gradient_inversion import GradientInversion
from plumbob.auditing.planning.chosen import Effort
from plumbob.auditing.planning.plan import Plan, ProtocolPlan
from plumbob.auditing.planning.plan_file import make_plan, read_plan
from plumbob.auditing.running.expand import Unit
from plumbob.auditing.running.open_data import open_source
from plumbob.auditing.running.run import Workbench
from plumbob.errors import BadInput
from plumbob.threats import THREATS, AnyGradient, AuxiliaryRows, LowBits, Schema, WhiteBox

pytestmark = pytest.mark.nodata

FILES = {"parties": {"bank": "bank.csv", "shop": "shop.csv"}, "id": "id", "label": "y"}


def test_a_name_is_enough() -> None:
    plan = make_plan({"data": "digits"})
    assert plan.data.name == "digits"
    assert [p.name for p in plan.protocols] == ["logistic_regression", "decision_tree"]


@pytest.mark.parametrize("effort", ["quick", "standard", "thorough"])
def test_an_effort_fills_in_what_is_not_said(effort: str) -> None:
    plan = make_plan({"effort": effort, "trials": 7}).filled()
    assert plan.trials == 7
    assert plan.unknown
    assert plan.rows


def test_a_filled_plan_written_and_read_is_the_same(tmp_path: Path) -> None:
    plan = make_plan({"data": "breast", "threats": [{"name": "mine", "knows": ["model"]}], "seed": 3}).filled()
    (tmp_path / "plan.yaml").write_text(plan.to_yaml(tmp_path))
    assert read_plan(tmp_path / "plan.yaml").digest == plan.digest


def test_a_built_in_threat_keeps_what_is_not_changed() -> None:
    plan = make_plan(
        {"threats": [{"name": "collusion", "auxiliary_rows": 50}, {"name": "active-auxiliary", "colluding": ["x"]}]}
    )
    first, second = (threat.threat() for threat in plan.threats)
    assert first.colluding_all_but == 1
    assert AuxiliaryRows(50) in first.grants
    assert second.colluding == ("x",)
    assert AuxiliaryRows(100) in second.grants


def test_a_plan_of_files_written_elsewhere_names_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    plan = make_plan({"data": FILES}, folder=tmp_path).filled()
    (tmp_path / "out" / "plan.yaml").write_text(plan.to_yaml(tmp_path / "out"))
    assert str(tmp_path) not in (tmp_path / "out" / "plan.yaml").read_text()
    assert read_plan(tmp_path / "out" / "plan.yaml").digest == plan.digest


def test_files_are_looked_for_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("data:\n  parties: {a: a.csv, b: sub/b.csv}\n  id: id\n  label: y\n")
    parties = read_plan(tmp_path / "plan.yaml").data.parties
    assert parties["b"].file == tmp_path / "sub" / "b.csv"


@pytest.mark.parametrize(
    ("key", "name", "settings"),
    [
        ("protocols", "split_training", {"width": 16, "outputs": 4, "batch_size": 6}),
        ("defences", "noise", {"sigma": 0.1, "clip": True}),
        (
            "defences",
            "dp_gradients+fake_gradients",
            {"dp_gradients": {"epsilon": 1.0, "clip": 2.0}, "fake_gradients": {"sigma": 1.0, "count": 5}},
        ),
    ],
)
def test_settings_mean_the_same_in_any_order(key: str, name: str, settings: dict) -> None:
    """Seeds are made of titles, so these have to be the same."""
    turned = {k: dict(reversed(v.items())) if isinstance(v, dict) else v for k, v in reversed(settings.items())}
    titles = [getattr(make_plan({key: [{"name": name, "settings": one}]}), key)[0].title for one in (settings, turned)]
    assert titles[0] == titles[1]
    listed = {key: [{"name": name, "settings": one} for one in (settings, turned)]}
    with pytest.raises(BadInput, match="with the same settings"):
        make_plan(listed)


def test_plans_of_the_docs_are_in_order() -> None:
    """Another order would give other seeds, and other numbers than those in docs/results."""
    docs = Path(__file__).parents[2] / "docs"
    paths = [*docs.glob("examples/*.yaml"), *docs.glob("results/**/plan.yaml")]
    parts = [part for path in paths for part in yaml.safe_load(path.read_text())["protocols"] if "settings" in part]
    assert parts
    for part in parts:
        assert list(ProtocolPlan(**part).settings) == list(part["settings"])


def test_a_threat_is_made_of_grants() -> None:
    plan = make_plan({"threats": [{"name": "spy", "knows": ["model"], "auxiliary_rows": 20, "colluding": ["b"]}]})
    threat = plan.threats[0].threat()
    assert threat.grants == (WhiteBox(), AuxiliaryRows(20))
    assert threat.colluding == ("b",)
    assert Schema() in make_plan({"threats": "active"}).threats[0].threat().grants


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"protocol": []}, "'protocol' is not a key of a plan; did you mean 'protocols'?"),
        ({"data": {"name": "breast", "partys": {}}}, "'partys' is not a key of 'data'; did you mean 'parties'?"),
        ({"data": FILES | {"rules": {"mising": "median"}}}, "did you mean 'missing'?"),
        ({"data": FILES | {"rules": {"missing": "mean"}}}, "'data.rules.missing'"),
        ({"data": FILES | {"parties": {"a": {"fil": "x"}, "b": "y"}}}, "did you mean 'file'?"),
        ({"threats": [{"name": "t", "knowz": []}]}, "did you mean 'knows'?"),
        ({"data": "brest"}, "did you mean 'breast'?"),
        ({"protocols": ["logistic"]}, "did you mean 'logistic_regression'?"),
        ({"protocols": [{"name": "random_forest", "settings": {"tree": 5}}]}, "did you mean 'trees'?"),
        ({"attacks": ["equation_solvin"]}, "did you mean 'equation_solving'?"),
        ({"attacks": [{"name": "cafe", "settings": {"iteration": 5}}]}, "did you mean 'iterations'?"),
        ({"attacks": [{"name": "cafe", "preset": "smal"}]}, "no preset 'smal'; did you mean 'small'?"),
        ({"attacks": [{"name": "ESA", "preset": "fast"}]}, "'equation_solving' has no preset 'fast'; it has none"),
        ({"attacks": [{"name": "cafe", "settings": {"name": "x"}}]}, "'name' is not a setting"),
        ({"attacks": [{"name": "cafe", "setting": {}}]}, "did you mean 'settings'?"),
        ({"attacks": [{"settings": {}}]}, "'attacks.0.name'"),
        (
            {"attacks": [{"name": "GIA", "settings": {"rate": "fast"}}]},
            "attack 'gradient_inversion': setting 'rate': expected a number above 0, got 'fast'",
        ),
        (
            {"attacks": [{"name": "GIA", "settings": {"steps": True}}]},
            "expected a whole number of at least 0, got True",
        ),
        ({"attacks": [{"name": "GIA", "settings": {"rate": -0.1}}]}, "expected a number above 0, got -0.1"),
        ({"attacks": [{"name": "GIA", "settings": {"rate": float("nan")}}]}, "expected a number above 0, got nan"),
        ({"attacks": [{"name": "GIA", "settings": {"loss": "l1"}}]}, "expected mse or kld, got 'l1'"),
        (
            {"attacks": [{"name": "cafe", "settings": {"rates": [0.1, 0.1]}}]},
            "expected a list of 3: a number above 0, a number above 0, a number above 0 or nothing (null), got (0.1, 0.1)",
        ),
        (
            {"defences": ["fake_gradients+dp_gradients"]},
            "dp_gradients clips the rows' own gradients, so it must come before fake_gradients; name it first",
        ),
        ({"defences": ["verify"]}, "no defence 'verify'"),
        ({"threats": [{"name": "x", "knows": ["everything"]}]}, "'threats.0.knows.0'"),
        ({"threats": ["actve"]}, "did you mean 'active'?"),
        ({"protocols": ["decision_tree", "decision_tree"]}, "duplicate protocol"),
        ({"defences": [{"name": "verification", "settings": {"limit": 0}}]}, "expected a number above 0, got 0"),
        ({"defences": [{"name": "verification", "settings": {"limt": 1}}]}, "did you mean 'limit'?"),
        ({"data": {"name": "breast", "label": "x"}}, "defines its own"),
        ({"threats": ["active", "active"]}, "every threat needs a unique name"),
        (
            {"attacks": ["equation_solving", "equation_solving"]},
            "duplicate attack with the same settings: equation_solving, equation_solving",
        ),
        (
            {"protocols": [{"name": "logistic_regression", "settings": {"strength": -1}}]},
            "expected a number above 0, got -1",
        ),
        (
            {"protocols": [{"name": "logistic_regression", "settings": {"strength": "abc"}}]},
            "expected a number above 0",
        ),
        (
            {"protocols": [{"name": "decision_tree", "settings": {"depth": 2.5}}]},
            "expected a whole number from 1 to 14",
        ),
        (
            {"protocols": [{"name": "neural_network", "settings": {"hidden": [0]}}]},
            "hidden layer: expected a whole number",
        ),
        ({"trials": True}, "'trials'"),
        ({"rows": 10}, "'rows'"),
        ({"trials": 0}, "'trials'"),
        ({"trials": "many"}, "'trials'"),
        ({"unknown": [0.5, 1.5]}, "expected shares between 0 and 1"),
        ({"unknown": []}, "expected shares between 0 and 1"),
        ({"seed": -1}, "'seed'"),
        ({"data": {}}, "name one source"),
        ({"data": {"name": "breast", "file": "x.csv"}}, "name one source"),
        ({"data": {k: v for k, v in FILES.items() if k != "label"}}, "name the label column"),
        ({"data": {k: v for k, v in FILES.items() if k != "id"}}, "name it ('id')"),
        ({"data": FILES | {"parties": {"bank": "bank.csv"}}}, "at least two parties"),
        ({"data": FILES | {"parties": {"bank": "bank.csv", "shop": {"columns": ["a"]}}}}, "party 'shop' has no 'file'"),
        (
            {"data": {"file": "x.csv", "label": "y", "active": "a", "parties": {"a": ["c"], "b": []}}},
            "party 'b' has no columns",
        ),
        (
            {"data": {"file": "x.csv", "label": "y", "parties": {"a": ["c"], "b": ["d"]}}},
            "name the party that holds the label",
        ),
        ({"data": FILES | {"active": "bnk"}}, "'bnk' is not one of the parties"),
        ({"data": FILES, "unknown": [0.2]}, "remove one of them"),
        ([], "expected keys and values, got list"),
        ("text", "expected keys and values, got str"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(raw: object, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        make_plan(raw)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data: [", "not valid YAML"),
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("- 1\n- 2\n", "expected keys and values"),
        ("\x00", "not valid YAML"),
        ("a: b: c", "line 1"),
        ("trials: 1\ntrials: 2\n", "duplicate key 'trials'"),
        ("? [a]\n: 1\n", "plan.yaml"),
        ("!!python/object/apply:os.system ['true']", "not valid YAML"),
    ],
)
def test_bad_yaml_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"plan\.yaml") as caught:
        read_plan(tmp_path / "plan.yaml")
    assert words in str(caught.value)


def test_an_empty_plan_is_refused(tmp_path: Path) -> None:
    """It would audit built-in data, and somebody would take that for an audit of theirs."""
    (tmp_path / "plan.yaml").write_text("# nothing yet\n")
    with pytest.raises(BadInput, match=r"plan\.yaml is empty"):
        read_plan(tmp_path / "plan.yaml")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([*Plan.model_fields, "x"])


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_any_data_is_a_plan_or_one_sentence(raw: dict) -> None:
    with contextlib.suppress(BadInput):
        make_plan(raw)


def test_an_attack_may_be_named_as_in_its_paper() -> None:
    plan = make_plan({"data": "breast", "attacks": ["ESA", "path_restriction"]})
    assert [attack.title for attack in plan.attacks or ()] == ["equation_solving", "path_restriction"]
    with pytest.raises(BadInput, match="duplicate attack with the same settings: equation_solving, equation_solving"):
        make_plan({"data": "breast", "attacks": ["ESA", "equation_solving"]})


def test_an_attack_may_have_settings_and_be_listed_twice(tmp_path: Path) -> None:
    listed = ["GIA", {"name": "GIA", "settings": {"steps": 5, "loss": "kld"}}, {"name": "GIA", "preset": "small"}]
    plan = make_plan({"data": "breast", "attacks": [*listed, GradientInversion(rate=1)]})
    titles = [attack.title for attack in plan.attacks or ()]
    assert titles == [
        "gradient_inversion",
        "gradient_inversion (loss=kld, steps=5)",
        "gradient_inversion (small)",
        "gradient_inversion (rate=1.0)",
    ]
    made = [attack.attack().settings for attack in plan.attacks or ()]
    usual = GradientInversion().settings
    assert made == [
        usual,
        usual | {"loss": "kld", "steps": 5},
        usual | GradientInversion.presets["small"],
        usual | {"rate": 1.0},
    ]
    (tmp_path / "plan.yaml").write_text(plan.to_yaml(tmp_path), encoding="utf-8")
    assert read_plan(tmp_path / "plan.yaml") == plan


def test_an_effort_says_which_presets_run_where_a_plan_names_no_attacks() -> None:
    quick, standard, thorough = (make_plan({"data": "breast", "effort": e}).fitting_attacks for e in get_args(Effort))
    assert quick == standard
    assert {one.title for one in quick} == {
        f"{name} (fast)" if "fast" in kind.presets else name for name, kind in ATTACKS.items() if kind.by_default
    }
    added = {one.title for one in thorough} - {one.title for one in quick}
    assert added == {name for name, kind in ATTACKS.items() if "fast" in kind.presets or not kind.by_default}
    assert {"generative_regression", "gradient_inversion", "shadow_inversion", "cafe", "linear_equations"} <= added
    assert make_plan({"data": "breast", "attacks": "all"}).fitting_attacks == thorough


def test_settings_that_are_lists_in_a_plan_are_those_of_python() -> None:
    plan = make_plan({"data": "breast", "attacks": [{"name": "CAFE", "settings": {"rates": [0.1, 1, 0.1]}}]})
    python = make_plan({"data": "breast", "attacks": [attack_named("cafe", rates=(0.1, 1.0, 0.1))]})
    assert plan.attacks == python.attacks
    assert [attack.title for attack in plan.attacks or ()] == ["cafe (rates=(0.1, 1.0, 0.1))"]


def test_an_attack_of_another_class_than_the_registered_one_is_refused() -> None:
    class Own(GradientInversion):
        pass

    with pytest.raises(BadInput, match="Own is not registered under this name"):
        make_plan({"data": "breast", "attacks": [Own()]})


def test_auxiliary_rows_can_come_from_the_prediction_set() -> None:
    threat = {"name": "active-auxiliary", "auxiliary_rows": 30, "auxiliary_from": "prediction"}
    plan = make_plan({"data": "breast", "threats": [threat], "rows": 100})
    granted = plan.threats[0].threat().grant(AuxiliaryRows)
    assert granted == AuxiliaryRows(30, predicted=True)
    source = open_source(plan.data, 0)
    bench = Workbench(plan, source, Unit(plan.protocols[0], 0))
    usual = Workbench(make_plan({"data": "breast", "rows": 100}), source, Unit(plan.protocols[0], 0))
    assert len(bench.acquainted) == 30
    assert not set(bench.acquainted) & {*bench.rows, *bench.train}
    assert np.array_equal(bench.rows, usual.rows)  # the same are attacked, where there are enough
    assert not len(usual.acquainted)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"threats": [{"name": "active", "auxiliary_from": "prediction"}]}, "needs auxiliary rows"),
        (
            {
                "protocols": ["secure_boost"],
                "threats": [{"name": "x", "auxiliary_rows": 9, "auxiliary_from": "prediction"}],
            },
            "is about prediction, secure_boost trains",
        ),
        ({"threats": [{"name": "x", "auxiliary_rows": 9, "auxiliary_from": "air"}]}, "'training' or 'prediction'"),
    ],
)
def test_auxiliary_rows_from_elsewhere_are_refused(changed: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make_plan({"data": "breast"} | changed)


def test_a_threat_may_choose_what_its_party_sends() -> None:
    plan = make_plan(
        {"protocols": "secure_boost", "threats": [{"name": "cheat", "knows": ["schema"], "deviates": ["low_bits"]}]}
    )
    threat = plan.threats[0].threat()
    assert threat.grants == (Schema(), LowBits())
    assert threat.knowledge == (Schema().words,)
    assert threat.summary.startswith("the active party that sets the low bits of its gradients, knowing ")


def test_who_may_send_any_gradient_may_set_its_low_bits() -> None:
    low, any_gradient = THREATS["active-low-bits"], THREATS["active-any-gradient"]
    assert any_gradient.grant(LowBits) == AnyGradient()
    assert low.grant(AnyGradient) is None
    assert low.within(any_gradient)
    assert not any_gradient.within(low)


@pytest.mark.parametrize("protocols", [["logistic_regression"], ["decision_tree", "split_training"]])
@pytest.mark.parametrize("threat", ["active-low-bits", {"name": "cheat", "deviates": ["any_gradient"]}])
def test_a_threat_whose_messages_no_protocol_takes_is_refused(protocols: list, threat: object) -> None:
    with pytest.raises(
        BadInput, match=r"makes a difference in secure_boost (and split_network )?only, and the plan names"
    ):
        make_plan({"protocols": protocols, "threats": [threat]})
    make_plan({"protocols": [*protocols, "secure_boost"], "threats": [threat]})


def test_only_the_active_party_deviates() -> None:
    with pytest.raises(BadInput, match="'deviates' is about the active party"):
        make_plan({"protocols": "secure_boost", "threats": [{"name": "passive-training", "deviates": ["low_bits"]}]})


def test_a_plan_that_names_no_threat_asks_of_secure_boost_who_hides_codes() -> None:
    """Unless the plan's protocol hides one already."""
    names = {
        str(protocol): [threat.name for threat in make_plan({"protocols": [protocol]}).filled().threats]
        for protocol in (
            "secure_boost",
            "logistic_regression",
            {"name": "secure_boost", "settings": {"code": "magic_numbers"}},
        )
    }
    assert list(names.values()) == [["active", "active-low-bits"], ["active"], ["active"]]
    blinded = {"name": "secure_boost", "settings": {"blinding": True}}
    for every in ({"defences": "sweep"}, {"effort": "thorough"}, {"protocols": [blinded]}):
        asked = [threat.name for threat in make_plan({"protocols": "secure_boost"} | every).filled().threats]
        assert asked[-2:] == ["active-low-bits", "active-any-gradient"], every
