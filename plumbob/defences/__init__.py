"""Defences, one file each, by what they protect:

    scores/       joint prediction: scores, training, knowledge of the model
    gradients/    split training                        embeddings/   split networks
    sums/         encrypted boosting                    labels/       split networks, at the party with the labels

A defence is a change at a named point of a protocol, and is judged against an attacker who knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbob.defences.base import Combined, Defence, NoDefence
from plumbob.errors import BadInput, suggest
from plumbob.registry import Registry, class_of, classes_in, exported, make

__all__ = ["DEFENCES", "Combined", "Defence", "NoDefence", "defence_named"]

DEFENCES: Registry[type[Defence]] = Registry(
    "defence",
    lambda: (kind for kind in classes_in(__name__, Defence) if kind is not Combined),
    class_of(Defence),
)


def defence_named(name: str, /, **settings: object) -> Defence:
    """A defence with the given settings, the rest at their defaults; `a+b` is both, with settings by name.

    >>> defence_named("rounding+hide_model", rounding={"digits": 2})
    Rounding(digits=2, how='down')+HideModel()
    """
    if "+" not in name:
        return _made(name, settings)
    names = [part.strip() for part in name.split("+")]
    if len(set(names)) < len(names):
        raise BadInput(f"defence '{name}': duplicate defence; each may occur once")
    for key, value in settings.items():
        if key not in names:
            raise BadInput(f"defence '{name}' has no part '{key}'{suggest(key, names)}")
        if not isinstance(value, dict):
            raise BadInput(f"defence '{name}': expected the settings of '{key}' as keys and values, got {value!r}")
    given = {key: value for key, value in settings.items() if isinstance(value, dict)}
    return Combined([_made(part, given.get(part, {})) for part in names])


def _made(name: str, settings: Mapping[str, object]) -> Defence:
    made: Defence = make(DEFENCES, name, **settings)
    return made


def __getattr__(name: str) -> Any:
    """`plumbob.defences.Rounding`: every registered class by its own name."""
    return exported(DEFENCES, __name__, name)
