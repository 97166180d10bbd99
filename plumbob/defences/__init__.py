"""Defences: changes at a named point of a protocol."""

from __future__ import annotations

from plumbob.defences.base import Defence, NoDefence
from plumbob.defences.verification import Verification
from plumbob.errors import made

__all__ = ["DEFENCES", "Defence", "NoDefence", "Verification", "defence_named"]

DEFENCES: dict[str, type[Defence]] = {kind.name: kind for kind in (NoDefence, Verification)}


def defence_named(name: str, **settings: object) -> Defence:
    """A defence with the given settings, the rest at their defaults."""
    return made("defence", DEFENCES, name, settings)
