"""A defence that carries one of the five papers' names has by default what the paper prints; where it is silent, that is said.

The table was written from the papers, and not from the classes: default, who chose it, and a word of the place.
"""

from __future__ import annotations

from typing import Any

import pytest

from plumbob.defences import DEFENCES
from plumbob.registry import settable

PAPERS = ("luo2021", "jin2021", "weng2022", "jiang2022", "ye2022")
PUBLISHED = {name: kind for name, kind in DEFENCES.items() if kind.paper in PAPERS}
PAPER, OURS = "printed", "ours"
TABLE: dict[str, dict[str, tuple[Any, str, str]]] = {
    # luo2021
    "rounding": {"digits": (1, PAPER, "Section VII"), "how": ("down", PAPER, "Section VII")},
    "dropout": {"rate": (0.5, OURS, "Section VII names none")},
    "verification": {"limit": (0.01, OURS, "Section VII"), "sides": ("certain", OURS, "Section VII")},
    "hide_model": {},
    "dp_scores": {
        "epsilon": (1.0, OURS, "Section VII"),
        "seed": (0, OURS, "repeatable"),
        "repeats": (1, OURS, "kept by id"),
    },
    # jiang2022
    "dp_sgd": {
        "epsilon": (1.0, PAPER, "Section 6.1.2"),
        "delta": (None, OURS, "Section 6.1.2"),
        "clip": (1.0, PAPER, "gamma = 1"),
        "epochs": (20, OURS, "Section 6.1.2"),
    },
    "noise": {
        "sigma": (0.1, PAPER, "Section 6.1.3.2"),
        "clip": (False, PAPER, "Section 6.1.3.2"),
        "seed": (0, OURS, "repeatable"),
        "repeats": (1, PAPER, "one answer"),
    },
    "label_only": {},
    "purifier": {"trained_on": ("real", PAPER, "Section 6.1.3.3")},
    # weng2022
    "dp_histograms": {"epsilon": (1.0, OURS, "Section 6")},
    "shared_indicators": {},
    # jin2021
    "fake_gradients": {
        "sigma": (1.1, PAPER, "Section 4.4"),
        "count": (1_000, PAPER, "Section 4.4"),
        "tau": (0.0, OURS, "Algorithm 5"),
        "literal": (False, OURS, "line 17"),
        "room_mb": (8, OURS, "memory"),
    },
    "dp_gradients": {
        "epsilon": (10.0, OURS, "Section G.3"),
        "delta": (1e-5, OURS, "Section G.3"),
        "clip": (3.0, PAPER, "Section G.3"),
        "amplified": (False, OURS, "Section G.3"),
    },
    # ye2022
    "gaussian_masking": {"sigma": (0.1, PAPER, "Section VI-D")},
    "masquerade": {"columns": (1, PAPER, "Algorithm 4")},
    "rank_reduction": {"rank": (0, PAPER, "Section V-B")},
    "deeper_cut": {"layers": (2, OURS, "Section VII")},
}


def test_every_published_defence_is_in_the_table() -> None:
    assert set(TABLE) == set(PUBLISHED)


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_a_published_defence_made_without_arguments_is_the_printed_one(name: str) -> None:
    made = PUBLISHED[name]()
    wanted = {setting: default for setting, (default, _, _) in TABLE[name].items()}
    assert {setting: made.settings[setting] for setting in settable(type(made))} == wanted


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_each_of_its_settings_says_who_chose_the_default_and_where(name: str) -> None:
    said = PUBLISHED[name].sources
    assert set(said) == set(TABLE[name])
    for setting, (_, origin, place) in TABLE[name].items():
        assert said[setting].origin == origin, setting
        assert place in said[setting].where, setting
