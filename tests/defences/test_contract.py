"""What every defence must do, on every protocol."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.auditing.concluding.summarise import attacked
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import open_source
from plumbob.defences import DEFENCES, Combined, Defence, NoDefence, defence_named
from plumbob.errors import BadInput
from plumbob.known_defences import KnownCodebook
from plumbob.protocols import PROTOCOLS
from plumbob.threats import WhiteBox
from tests.defences.worlds import defended, released, view_of

PROTOCOL_NAMES = [name for name in ("logistic_regression", "decision_tree", "neural_network") if name in PROTOCOLS]
# Others: test_gradient_defences.py, test_embedding_defences.py, test_label_defences.py, test_histogram_defences.py.
PREDICTION = [
    name for name, kind in DEFENCES.items() if kind.point not in ("gradients", "embeddings", "labels", "histograms")
]
KEEP_LABELS = ("none", "label_only", "codebook", "hide_model")
SECRETS = {"noise/seed", "dp_scores/seed", "randomised_response/seed"}


def small(name: str) -> dict[str, object]:
    """The settings for tests that the class declares; of combined defences none does."""
    return dict(DEFENCES[name].presets.get("small", {})) if name in DEFENCES else {}


def made(name: str, **settings: object) -> Defence:
    return defence_named(name, **(small(name) | settings))


@pytest.mark.parametrize("protocol", PROTOCOL_NAMES)
@pytest.mark.parametrize("name", PREDICTION)
def test_the_same_settings_give_the_same_release_of_the_same_shape(name: str, protocol: str) -> None:
    one, two = (released(defended(made(name), protocol, rows=60)) for _ in range(2))
    assert one.tobytes() == two.tobytes()
    assert one.shape == (60, 3)


@pytest.mark.parametrize("name", [name for name in PREDICTION if name != "dp_scores"])
def test_scores_stay_scores_or_are_withheld(name: str) -> None:
    """Rounding alone takes from their sum; noise keeps them scores if asked to; what `dp_scores` adds goes far beyond."""
    scores = released(defended(made(name, **({"clip": True} if name == "noise" else {}))))
    told = scores[~np.isnan(scores).any(axis=1)]
    assert ((told >= 0) & (told <= 1)).all()
    total = told.sum(axis=1)
    assert (total <= 1 + 1e-9).all() if name == "rounding" else np.allclose(total, 1)


@pytest.mark.parametrize("protocol", PROTOCOL_NAMES)
@pytest.mark.parametrize("name", KEEP_LABELS)
def test_these_keep_every_predicted_class(name: str, protocol: str) -> None:
    plain = np.argmax(released(defended(NoDefence(), protocol)), axis=1)
    assert np.array_equal(np.argmax(released(defended(made(name), protocol)), axis=1), plain)


@pytest.mark.parametrize("name", list(DEFENCES))
def test_a_defence_prints_itself_and_says_what_it_is(name: str) -> None:
    defence = made(name)
    defended(defence, rows=20)
    fresh = made(name)
    assert repr(defence) == repr(fresh)  # what it learnt is not among its settings
    assert repr(defence).startswith(f"{type(defence).__name__}(")
    assert defence.summary
    assert defence.point in (
        "none",
        "inputs",
        "training",
        "embeddings",
        "labels",
        "gradients",
        "histograms",
        "scores",
        "knowledge",
    )
    assert defence.paper or name == "none"


@pytest.mark.parametrize("name", PREDICTION)
def test_what_is_known_reaches_the_view_and_holds_no_secret(name: str) -> None:
    defence = made(name)
    log = defended(defence)
    known = view_of(log, defence).defence
    assert known.names == (() if name == "none" else (name,))
    assert not SECRETS & set(known.arrays)
    assert all(array.dtype.kind in "biuf" for array in known.arrays.values())
    assert all(len(np.atleast_1d(array)) < len(released(log)) for array in known.arrays.values())  # nothing row by row


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: made("rounding", digits=0), "expected 1 to 12 digits, got 0"),
        (lambda: made("noise", sigma=0), "expected a sigma above 0, got 0"),
        (lambda: made("noise", seed=-1), "expected a seed of 0 or more, got -1"),
        (lambda: made("noise", repeats=0), "repeats: expected a whole number from 1 to 10,000, got 0"),
        (lambda: made("dp_scores", epsilon=0), "dp_scores: epsilon: expected a number above 0, got 0"),
        (lambda: made("randomised_response", repeats=0), "repeats: expected a whole number from 1 to 10,000, got 0"),
        (lambda: made("codebook", levels=0), "expected at least 1 level, got 0"),
        (lambda: made("dropout", rate=1), "expected a rate above 0 and below 1, got 1"),
        (lambda: made("dp_sgd", epsilon=0), "expected an epsilon above 0, got 0"),
        (lambda: made("dp_sgd", epsilon=-1.0), "expected an epsilon above 0, got -1.0"),
        (lambda: made("dp_sgd", delta=2), "expected a delta above 0 and below 1, got 2"),
        (lambda: made("dp_sgd", clip=0), "expected a clip above 0, got 0"),
        (lambda: made("dp_sgd", epochs=0), "expected at least 1 epoch, got 0"),
        (lambda: made("purifier", trained_on="air"), "'real' or 'random' scores, got 'air'"),
        (lambda: made("label_only", digits=1), "has no setting 'digits'"),
        (lambda: made("rounding+rounding"), "duplicate defence"),
        (lambda: made("rounding+noise", digits=1), "has no part 'digits'"),
        (lambda: made("rounding+noise", noise=1), "expected the settings of 'noise' as keys and values, got 1"),
        (lambda: made("rounding+nois"), "did you mean 'noise'"),
    ],
)
def test_wrong_settings_are_answered_with_what_was_expected(make: Callable[[], Defence], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()


@pytest.mark.parametrize("name", [*PREDICTION, "rounding+hide_model", "codebook+rounding"])
def test_an_audit_runs_with_it(name: str) -> None:
    plan = make_plan(
        {
            "data": {"name": "breast", "sample": 120},
            "defences": [{"name": name, "settings": small(name)}],
            "protocols": ["logistic_regression", "decision_tree"],
            "attacks": ["equation_solving", "posterior_mean", "path_restriction"],
            "unknown": 0.3,
            "trials": 1,
            "rows": 50,
        }
    ).filled()
    findings = attacked(run(plan, open_source(plan.data, 0)))
    both = bool(
        attack_named("equation_solving").accounts_for(defence_named(name).known().names)
    )  # who knows, who does not
    assert len(findings) == (0 if "hide_model" in name else 3 + both)  # these attacks need the model
    assert all(np.isfinite(finding.score.error) for finding in findings)
    assert all(finding.model_accuracy > 0.5 for finding in findings if name in KEEP_LABELS)


def test_a_combined_defence_chains_every_hook() -> None:
    both = defence_named("dp_sgd+codebook+rounding+hide_model", dp_sgd={"epochs": 2}, rounding={"digits": 2})
    assert isinstance(both, Combined)
    log = defended(both)
    view = view_of(log, both)
    assert view.model is None
    assert view.defence.names == ("dp_sgd", "codebook", "rounding", "hide_model")
    assert view.defence[KnownCodebook].words is not None
    scores = released(log)
    assert len(np.unique(scores, axis=0)) <= 3
    assert np.allclose(scores * 100, np.rint(scores * 100))


def test_hiding_the_model_takes_the_white_box_and_nothing_else() -> None:
    from plumbob.threats import THREATS

    for threat in THREATS.values():
        left = made("hide_model").threat(threat)
        assert left.grant(WhiteBox) is None
        assert [g for g in threat.grants if not isinstance(g, WhiteBox)] == list(left.grants)
