"""Attacks, one file each, by what is read:

    scores/       prediction scores                     embeddings/   outputs of the cut layer
    gradients/    gradients of split training           labels/       labels, from whatever carries them
    sums/         encrypted training, histograms        auxiliary/    anything, learned from other people's rows

Files that start with an underscore help the attacks of their folder; `_common/` helps several folders.
"""

from __future__ import annotations

from typing import Any

from plumbob.attacks.base import Attack, Branches, Guess
from plumbob.registry import Registry, class_of, classes_in, exported, make
from plumbob.setting_types import typed

__all__ = ["ATTACKS", "Attack", "Branches", "Guess", "attack_called", "attack_named", "attacks", "knowing", "name_of"]

ATTACKS: Registry[type[Attack]] = Registry(
    "attack",
    lambda: classes_in(__name__, Attack),  # type: ignore[type-abstract]  # the class itself is only compared with
    class_of(Attack),
)


def attacks(preset: str = "") -> dict[str, Attack]:
    """Every attack by name, with the settings of a preset, or with its defaults where it lists none of that name."""
    return {name: kind.preset(preset) for name, kind in ATTACKS.items()}


def attack_named(name: str, /, **settings: object) -> Attack:
    """One attack with the given settings, the rest at their defaults."""
    made: Attack = make(ATTACKS, name, **typed(f"attack '{name}'", ATTACKS.named(name), settings))
    return made


def knowing(name: str, /, preset: str = "", **settings: object) -> Attack:
    """One attack by an attacker who knows the defences in place, where that makes a difference to it."""
    kind = ATTACKS.named(name)
    return kind.preset(preset, **({"adaptive": True} if kind.knows else {}), **settings)


def name_of(title: str) -> str:
    """The name in an attack's title, which carries its preset and settings in brackets.

    >>> name_of("gradient_inversion (fast, rate=0.001)")
    'gradient_inversion'
    """
    return title.partition(" (")[0]


def attack_called(title: str) -> type[Attack] | None:
    """The class behind a title that findings carry: None where nothing here has that name."""
    return ATTACKS.get(name_of(title))


def __getattr__(name: str) -> Any:
    """`plumbob.attacks.EquationSolving`, or by the paper's short name, `plumbob.attacks.ESA`."""
    return exported(ATTACKS, __name__, name)
