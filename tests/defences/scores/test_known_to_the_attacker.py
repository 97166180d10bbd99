"""Every attack on every defence's view: it survives, and who knows of the defence does not do worse for it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.attacks import ATTACKS, Attack, attacks, knowing
from plumbob.defences import DEFENCES, Defence, defence_named
from plumbob.known_defences import KnownDefences
from plumbob.protocols import PROTOCOLS
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View
from plumbob.transcript import Transcript
from tests.defences.worlds import defended, view_of
from tests.worlds import made_table

THREAT = THREATS["active-auxiliary"]
SETTINGS: dict[str, dict[str, object]] = {"dp_sgd": {"epochs": 2}}
EVERY = [
    pytest.param(attack, protocol, defence, id=f"{attack}-{protocol}-{defence}")
    for attack, one in attacks().items()
    for protocol, room in PROTOCOLS.items()
    if room.phase == "prediction"
    for defence, kind in DEFENCES.items()
    if kind.point not in ("gradients", "embeddings", "labels", "histograms")  # they change nothing in prediction
    if one.why_not(protocol, defence_named(defence).threat(THREAT)) is None
]
CHANGED: tuple[tuple[str, dict[str, object]], ...] = (
    ("rounding", {"digits": 1}),
    ("rounding", {"digits": 3}),
    ("rounding", {"digits": 2, "how": "nearest"}),
    ("label_only", {}),
    ("noise", {"sigma": 0.1}),
    ("noise", {"sigma": 0.1, "clip": True}),
    ("noise", {"sigma": 0.1, "clip": True, "repeats": 50}),
    ("codebook", {"levels": 4}),
    ("purifier", {}),
)
# Who knows may lose so much, as a share of the error, over all defences and under the one that suits it least.
MARGINS = {
    "equation_solving": (0.0, 0.0),
    "gradient_inversion": (0.0, 0.1),
    "generative_regression": (0.0, 0.25),
    "shadow_inversion": (0.0, 0.35),
}


@cache
def prediction(
    name: str, protocol: str, seed: int = 0, rows: int = 40, of: int = 300, **settings: object
) -> tuple[Defence, Transcript]:
    defence = defence_named(name, **(SETTINGS.get(name, {}) | settings))
    table = made_table(rows=of, seed=seed)
    return defence, defended(defence, protocol, table=table, seed=seed, rows=rows)


@pytest.mark.parametrize(("attack", "protocol", "defence"), EVERY)
def test_every_attack_survives_every_defence(attack: str, protocol: str, defence: str) -> None:
    made, log = prediction(defence, protocol, of=220)
    view = view_of(log, made, THREAT)
    guess = knowing(attack, **ATTACKS[attack].presets.get("small", {})).run(view, np.random.default_rng(0))
    assert guess.names == view.unknown_names
    if guess.values is not None:
        assert guess.values.shape == (len(view.own), len(view.unknown))
        assert np.isfinite(guess.values).all()
    if guess.branches is not None:
        assert (guess.branches.candidates >= 1).all()
        assert (guess.branches.chosen < len(guess.branches.paths)).all()
    assert np.isfinite(score(guess, truth_of(log, view), view, np.random.default_rng(0)).error)


def error(attack: Attack, log: Transcript, view: View) -> float:
    guess = attack.run(view, np.random.default_rng(0))
    return score(guess, truth_of(log, view), view, np.random.default_rng(0)).error


def lost(name: str, seed: int, defence: str, settings: dict[str, object]) -> float:
    """Logarithm of the errors' ratio: the attacker who knows of the defence over the one who takes scores as they are."""
    made, log = prediction(defence, "logistic_regression", seed, 60, **settings)
    view = view_of(log, made, THREAT)
    fast = attacks("fast")[name]
    return float(np.log(error(knowing(name, preset="fast"), log, view) / error(fast, log, view)))


def losses(name: str, worlds: int) -> np.ndarray:
    """What knowing of each defence costs an attack, as a mean over worlds."""
    return np.array([[lost(name, seed, *one) for one in CHANGED] for seed in range(worlds)]).mean(axis=0)


@pytest.mark.parametrize("name", [name for name in MARGINS if name not in ("equation_solving", "shadow_inversion")])
def test_who_knows_of_the_defence_does_not_do_worse(name: str) -> None:
    assert losses(name, 2).mean() <= np.log1p(MARGINS[name][0])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MARGINS))
def test_no_single_defence_is_much_worse_to_know_of(name: str) -> None:
    """Four worlds: with fewer, the least suitable defence of eight depends on chance. Two attacks take 20 s each above."""
    average, worst = MARGINS[name]
    found = losses(name, 4)
    assert found.mean() <= np.log1p(average)
    assert found.max() <= np.log1p(worst), dict(zip(map(str, CHANGED), found.round(3), strict=True))


@pytest.mark.parametrize("name", [name for name, kind in ATTACKS.items() if kind.knows])
def test_a_published_attack_knows_of_no_defence_and_ours_do(name: str) -> None:
    assert attacks()[name].adaptive is (ATTACKS[name].paper == "plumbob")


@pytest.mark.parametrize("name", ["gradient_inversion", "generative_regression", "shadow_inversion"])
def test_without_a_defence_of_the_scores_nothing_changes(name: str) -> None:
    made, log = prediction("verification", "logistic_regression")
    view = view_of(log, made, THREAT)
    one, two = (
        knowing(name, preset="fast").run(each, np.random.default_rng(0)).values
        for each in (view, replace(view, defence=KnownDefences()))
    )
    assert np.array_equal(one, two)


def test_a_tree_under_noise_is_attacked_by_its_likeliest_class() -> None:
    """Noise that hardly ever turns the largest score over leaves PRA what it had."""
    plain, noisy = (
        view_of(log, made)
        for made, log in (
            prediction("none", "decision_tree"),
            prediction("noise", "decision_tree", 0, 40, sigma=0.05),
        )
    )
    one, two = (attacks()["path_restriction"].run(view, np.random.default_rng(0)).branches for view in (plain, noisy))
    assert one is not None
    assert two is not None
    assert np.array_equal(one.chosen, two.chosen)


def test_noise_that_names_a_class_out_of_reach_still_leaves_a_path() -> None:
    made, log = prediction("noise", "decision_tree", 0, 40, sigma=3.0)
    branches = attacks()["path_restriction"].run(view_of(log, made), np.random.default_rng(0)).branches
    assert branches is not None
    assert (branches.candidates >= 1).all()
