"""The one exception a user is meant to read, and the sentences it is made with."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Kind = TypeVar("Kind")


class BadInput(Exception):
    """Something the user gave cannot be used; the message is one sentence that says what, where and how to mend it."""


def suggest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'x'?` when a known word is close to the given one, else the known words when they are few."""
    longer = [name for name in known if word and name.startswith(word)]
    close = longer[:1] if len(longer) == 1 else difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= 30 else ""


def made(what: str, kinds: Mapping[str, Callable[..., Kind]], name: str, settings: Mapping[str, object]) -> Kind:
    """One of the named kinds, made with the given settings; a wrong name or setting is answered with the right one."""
    if name not in kinds:
        raise BadInput(f"no {what} '{name}'{suggest(name, list(kinds))}")
    known = [key for key in vars(kinds[name]()) if key != "guards"]  # which defences put there
    for key in settings:
        if key not in known:
            raise BadInput(f"{what} '{name}' has no setting '{key}'{suggest(key, known)}")
    try:
        return kinds[name](**settings)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{what} '{name}': its settings cannot be used: {error}") from error


def whole(what: str, value: object, low: int, high: int = 10**9) -> int:
    """A whole number in a range, or one sentence."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadInput(f"{what}: expected a whole number from {low:,} to {high:,}, got {value!r}")
    return value


def positive(what: str, value: object, most: float = 1e12) -> float:
    """A number above zero that one can compute with, or one sentence."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise BadInput(f"{what}: expected a number above 0, got {value!r}")
    if value > most:
        raise BadInput(f"{what}: expected a number of at most {most:g}, got {value!r}")
    return float(value)


def not_negative(what: str, value: object) -> float:
    """A number of at least zero, or one sentence."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise BadInput(f"{what}: expected a number of at least 0, got {value!r}")
    return float(value)


def boolean(what: str, value: object) -> bool:
    """True or false, or one sentence: a word in its place would count as true."""
    if not isinstance(value, bool):
        raise BadInput(f"{what}: expected true or false, got {value!r}")
    return value


def one_of(what: str, value: object, known: Sequence[object]) -> None:
    """One of the given values, or one sentence."""
    if isinstance(value, bool) or value not in known:
        raise BadInput(f"{what}: expected one of {', '.join(map(str, known))}, got {value!r}")
