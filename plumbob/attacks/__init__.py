"""Attacks, one file each. A new file in this folder with an `Attack` in it is all it takes to add one."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import Any

from plumbob.attacks.base import Attack, Branches, Guess
from plumbob.errors import BadInput, suggest

__all__ = ["Attack", "Branches", "Guess", "attack_named", "attacks"]


def attacks() -> dict[str, Attack]:
    """Every attack with its default settings, by name."""
    return {name: kind() for name, kind in _kinds(tuple(__path__)).items()}


def attack_named(name: str) -> Attack:
    """One attack with its default settings."""
    known = _kinds(tuple(__path__))
    if name not in known:
        raise BadInput(f"no attack '{name}'{suggest(name, list(known))}")
    return known[name]()


@lru_cache(maxsize=4)
def _kinds(folders: tuple[str, ...]) -> dict[str, type[Attack]]:
    """What the files in these folders define; looked for once, because a plan asks thousands of times."""
    for module in pkgutil.iter_modules(folders):
        importlib.import_module(f"{__name__}.{module.name}")
    return {kind.name: kind for kind in sorted(_leaves(Attack), key=lambda kind: kind.name)}


def _leaves(kind: Any) -> list[type[Attack]]:
    """Concrete attacks of this package; those that tests or users define on the side are not listed."""
    below = kind.__subclasses__()
    found = [leaf for child in below for leaf in _leaves(child)]
    concrete = not getattr(kind, "__abstractmethods__", None) and kind.__module__.startswith(f"{__name__}.")
    return [*found, kind] if concrete else found
