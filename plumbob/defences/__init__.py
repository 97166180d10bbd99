"""Defences: changes at a named point of a protocol."""

from __future__ import annotations

from plumbob.defences.base import Defence, NoDefence
from plumbob.defences.verification import Verification
from plumbob.errors import BadInput, suggest

__all__ = ["DEFENCES", "Defence", "NoDefence", "Verification", "defence_named"]

DEFENCES: dict[str, type[Defence]] = {kind.name: kind for kind in (NoDefence, Verification)}


def defence_named(name: str) -> Defence:
    """One defence with its default settings."""
    if name not in DEFENCES:
        raise BadInput(f"no defence '{name}'{suggest(name, list(DEFENCES))}")
    return DEFENCES[name]()
