"""Attacks on networks and forests: who knows of a defence of the scores does no worse for it, and far better if it is coarse."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.defences import defence_named
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from plumbob.transcript import Transcript
from tests.defences.worlds import defended
from tests.worlds import made_table

RELEASES = (
    ("rounding", {"digits": 1}),
    ("rounding", {"digits": 2, "how": "nearest"}),
    ("label_only", {}),
    ("noise", {"sigma": 0.1}),
    ("codebook", {"levels": 4}),
    ("dp_scores", {}),
    ("randomised_response", {}),
)


@cache
def log_of(protocol: str, place: int) -> Transcript:
    name, settings = RELEASES[place]
    return defended(defence_named(name, **settings), protocol, made_table(rows=300), unknown=0.4, rows=60)


def error(attack: str, log: Transcript, adaptive: bool) -> float:
    view = cut(log, THREATS["active-auxiliary"])
    guess = attack_named(attack, adaptive=adaptive).run(view, np.random.default_rng(0)).values
    assert guess is not None
    return float(((guess - truth_of(log, view).values) ** 2).mean())


def lost(attack: str, protocol: str, places: range) -> np.ndarray:
    """Logarithm of the errors' ratio, who knows over who does not, release by release."""
    found = [[error(attack, log_of(protocol, i), adaptive) for adaptive in (True, False)] for i in places]
    return np.log(np.divide(*np.array(found).T))


@pytest.mark.parametrize(
    ("attack", "protocol"), [("linearised_posterior", "neural_network"), ("forest_boxes", "random_forest")]
)
def test_who_knows_of_a_coarse_release_does_far_better(attack: str, protocol: str) -> None:
    assert lost(attack, protocol, range(1)).mean() < np.log(0.9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "protocol"),
    [
        ("linearised_posterior", "neural_network"),
        ("forest_boxes", "random_forest"),
        ("forest_boxes", "boosted_trees"),
        ("grid_enumeration", "neural_network"),
    ],
)
def test_who_knows_does_no_worse(attack: str, protocol: str) -> None:
    """On average, and under no release by more than a tenth: that much is the luck of one world."""
    found = lost(attack, protocol, range(len(RELEASES)))
    assert found.mean() <= 0.0
    assert found.max() <= np.log(1.1), found
