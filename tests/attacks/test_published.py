"""A class that carries a paper's name does by default what the paper prints; where it is silent, what its authors' code does.

The table was written from the papers and from their authors' code, and not from the classes: default, who chose it, where.
"""

from __future__ import annotations

from typing import Any

import pytest

from plumbob.attacks import ATTACKS, Attack, attack_named
from plumbob.attacks.gradients._table_nine import TABLE_9, row_that_fits
from plumbob.errors import BadInput
from plumbob.registry import settable

PUBLISHED = {name: kind for name, kind in ATTACKS.items() if kind.paper != "plumbob"}
PAPER, CODE, OURS = "printed", "authors' code", "ours"
Row = tuple[Any, str, str]  # default, who chose it, and a word of the place

GIA: dict[str, Row] = {
    "loss": ("mse", PAPER, "Eq 18"),
    "steps": (10_000, OURS, "approaches 0"),
    "rate": (0.001, PAPER, "Section 4.3.1"),
    "finish": (0, PAPER, "Algorithm 1"),
    "box": (True, PAPER, "Eq 16"),
    "until": (1e-8, OURS, "approaches 0"),
    "adaptive": (False, PAPER, "Section 6"),
}
MATCHING: dict[str, Row] = {  # None: of the row of Table 9 that fits
    "iterations": (None, PAPER, "Table 5"),
    "rate": (None, OURS, "Table 9"),
    "report_every": (None, OURS, "no guess"),
}
CAFE: dict[str, Row] = {
    "iterations": (None, PAPER, "Table 5"),
    "earlier": (None, PAPER, ""),
    "rates": (None, PAPER, "Table 9"),
    "first_step": ("sgd", CODE, "cafe.py"),
    "alpha": (1e-2, PAPER, "Table 9"),
    "beta": (1e-4, PAPER, "Table 9"),
    "gamma": (1e-3, PAPER, "Table 9"),
    "xi": (None, PAPER, "Table 9"),
    "report_every": (None, OURS, "no guess"),
}
TABLE: dict[str, dict[str, Row]] = {
    # rassouli2022
    "chebyshev_centre": {"adaptive": (False, OURS, "ESA")},
    # luo2021
    "equation_solving": {"adaptive": (False, PAPER, "Section IV-A")},
    "path_restriction": {},
    "generative_regression": {
        "epochs": (60, CODE, "config.ini"),
        "steps": (None, OURS, "no limit"),
        "batch": (64, CODE, "main-grna.py"),
        "rate": (1e-4, CODE, "Trainers.py"),
        "schedule": ("constant", CODE, "Trainers.py"),
        "standardise": (False, CODE, "VFLDatasets.py"),
        "distance": ("scores", PAPER, "Eq 9"),
        "means": (0, OURS, "no such step"),
        "draws": (1, PAPER, "Section V-A"),
        "near": (False, PAPER, "Section V-B"),
        "known": (True, PAPER, "Algorithm 2"),
        "noise": (True, PAPER, "Algorithm 2"),
        "constraint": (True, PAPER, "Eq 9"),
        "generator": (True, PAPER, "Algorithm 2"),
        "adaptive": (False, PAPER, "Section VII"),
    },
    # jiang2022
    "gradient_inversion": GIA,
    "shadow_inversion": GIA
    | {
        "structure": (None, PAPER, "Section 5.3.2"),
        "activation": (None, PAPER, "Section 5.1.1"),
        "solve": (False, PAPER, "Algorithm 2"),
        "fitting": (10_000, OURS, "Algorithm 2"),
        "fitting_rate": (0.001, PAPER, "Section 4.3.1"),
    },
    # zhu2025
    "sdar": {
        "iterations": (20_000, CODE, "run_sdar.py"),
        "batch": (128, CODE, "run_sdar.py"),
        "simulator_rate": (1e-3, CODE, "util.py"),
        "decoder_rate": (5e-4, CODE, "util.py"),
        "simulator_weight": (0.02, CODE, "util.py"),
        "decoder_weight": (1e-5, CODE, "util.py"),
    },
    # pasquini2021
    "fsha": {
        "pilot_rate": (1e-5, CODE, "FSHA.ipynb"),
        "critic_rate": (1e-4, CODE, "FSHA.ipynb"),
        "penalty": (500.0, CODE, "FSHA.ipynb"),
        "width": (64, OURS, "convolutions"),
    },
    # li2022
    "norm_scoring": {},
    "direction_scoring": {},
    # takahashi2023
    "id2graph": {
        "discount": (0.6, CODE, "README.md"),
        "community_weight": (3.0, CODE, "run.sh"),
        "passes": (100, CODE, "run.sh"),
    },
    # fu2022
    "direct_label_inference": {},
    "model_completion": {
        "steps": (5_120, CODE, "model_completion.py"),
        "weight": (50.0, CODE, "model_completion.py"),
    },
    "active_completion": {
        "gamma": (1.0, CODE, "my_optimizers.py"),
        "most": (5.0, CODE, "my_optimizers.py"),
        "steps": (1_000, OURS, "1,024 steps"),
        "batch": (16, CODE, "model_completion.py"),
    },
    # ye2022
    "linear_equations": {
        "most": (24, OURS, "all dimensions"),
        "differences": (False, PAPER, "Algorithm 1"),
    },
    "leverage_sampling": {
        "runs": (20, PAPER, "Section VI-D"),
        "most": (18, OURS, "all dimensions"),
        "relative": (False, PAPER, "Algorithm 2, line 8"),
        "adaptive": (False, PAPER, "Algorithm 2"),
        "averaged": (False, PAPER, "Section VI-D"),
        "differences": (False, PAPER, "Algorithm 2"),
    },
    # weng2022
    "reverse_multiplication": {
        "singular": (None, OURS, "double precision"),
        "models": (None, OURS, "two classes"),
    },
    "reverse_sum": {
        "effort": (34, OURS, "Section 5.1.3"),
        "base": (2, PAPER, "Table 6"),
        "supergroups": (2, PAPER, "Table 6"),
        "random_bits": (30, PAPER, "Algorithm 1"),
        "rows": ("in_order", PAPER, "Section 5.1.2"),
    },
    "bin_mapping": {
        "decoder": ("reverse_sum", PAPER, "Section 5.4"),
        "effort": (34, OURS, "Section 5.1.3"),
        "ranks": (True, OURS, "does not say"),
        "centre": ("middle", OURS, "does not say"),
    },
    # jin2021
    "cafe": CAFE,
    "cafe_single_loop": CAFE | {"earlier": (None, PAPER, "Algorithm 4")},
    "dlg": MATCHING,
    "sapag": MATCHING,
    "cosine_gradients": MATCHING | {"beta": (1e-4, OURS, "Table 9")},
    "batch_norm_prior": MATCHING | {"alpha": (1e-2, PAPER, "Section 4.1"), "gamma": (1e-3, OURS, "Table 9")},
    "group_consistency": MATCHING
    | {"starts": (3, OURS, "no number"), "alpha": (1e-2, PAPER, "Section 4.1"), "gamma": (1e-3, OURS, "Table 9")},
}


def test_every_published_attack_is_in_the_table() -> None:
    assert set(TABLE) == set(PUBLISHED)


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_a_published_attack_made_without_arguments_is_the_printed_one(name: str) -> None:
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


@pytest.mark.parametrize("kind", list(ATTACKS.values()), ids=lambda kind: kind.name)
def test_presets_are_settings_that_differ_from_the_defaults(kind: type[Attack]) -> None:
    usual = kind().settings
    for preset, settings in kind.presets.items():
        assert kind.preset(preset).settings != usual, preset
        assert set(settings) <= set(usual), preset


def test_table_9_is_the_printed_one() -> None:
    rows = {name: (row.rates, row.xi, row.iterations) for name, row in TABLE_9.items()}
    assert rows == {
        "cifar10": ((5e-3, 8e-3, 2e-2), 90, 8_000),
        "mnist": ((1e-2, 1e-2, 1e-2), 25, 8_000),
        "linnaeus5": ((5e-3, 5e-3, 1e-2), 110, 20_000),
        "yale": ((1e-2, 1e-2, 1e-2), 32, 20_000),
    }


@pytest.mark.parametrize(
    ("tile", "count", "row"),
    [
        ((3, 16, 16), 4, "cifar10"),
        ((1, 14, 14), 4, "mnist"),
        ((1, 8, 8), 16, "yale"),
        ((1, 4, 4), 4, "mnist"),
        ((9,), 2, "mnist"),
    ],
)
def test_the_row_that_fits_is_known_by_the_pictures(tile: tuple[int, ...], count: int, row: str) -> None:
    assert row_that_fits([tile] * count) is TABLE_9[row]


def test_xi_is_the_printed_one_for_a_quarter_of_a_picture() -> None:
    pairs = 1 * (14 * 13 + 13 * 14)
    assert TABLE_9["mnist"].xi_per_pair * pairs == pytest.approx(25)


def test_a_preset_can_be_changed_in_part() -> None:
    kind = ATTACKS["gradient_inversion"]
    made = kind.preset("fast", steps=7)
    assert made.settings == kind().settings | kind.presets["fast"] | {"steps": 7}
    with pytest.raises(BadInput, match="expected a number of at least 0, got -1"):
        attack_named("gradient_inversion", until=-1.0)
