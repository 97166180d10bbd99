"""Exceptions with a message for the user, and helpers that word them."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence

JOINERS = "\u200c\u200d"  # some scripts and emoji need them; every other format character could disguise a name
LONGEST = 2_000  # characters of a sentence; of a longer one the ends are kept, which say where and how to mend it


class BadInput(Exception):
    """Invalid input; the message is one sentence that says what is wrong, where, and how to fix it.

    Names in it come from files, so line breaks, control characters and overlong text are removed.
    """

    def __init__(self, sentence: str) -> None:
        line = one_line(sentence)
        super().__init__(line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 4 :]}")


class Unfit(BadInput):
    """This attack does not support the network at hand; others may."""


def one_line(text: str) -> str:
    """The text on one line, without terminal control characters and text-direction marks.

    >>> one_line("two\\nlines, \\x1b[31mred")
    'two lines, [31mred'
    """
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if char in "\t\n\r\v\f" or category in ("Zl", "Zp"):
            kept.append(" ")
        elif category not in ("Cc", "Cs") and (category != "Cf" or char in JOINERS):
            kept.append(char)
    return "".join(kept)


def suggest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'x'?` if a known word is close to the given one, else the known words if there are few."""
    longer = [name for name in known if word and name.startswith(word)]
    close = longer[:1] if len(longer) == 1 else difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= 30 else ""


def whole(what: str, value: object, low: int, high: int = 10**9) -> int:
    """Check an integer in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadInput(f"{what}: expected a whole number from {low:,} to {high:,}, got {value!r}")
    return value


def positive(what: str, value: object, most: float = 1e12) -> float:
    """Check a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise BadInput(f"{what}: expected a number above 0, got {value!r}")
    if value > most:
        raise BadInput(f"{what}: expected a number of at most {most:g}, got {value!r}")
    return float(value)


def not_negative(what: str, value: object) -> float:
    """Check a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise BadInput(f"{what}: expected a number of at least 0, got {value!r}")
    return float(value)


def boolean(what: str, value: object) -> bool:
    """Check a boolean: any other non-empty value would count as true."""
    if not isinstance(value, bool):
        raise BadInput(f"{what}: expected true or false, got {value!r}")
    return value


def one_of(what: str, value: object, known: Sequence[object]) -> None:
    """Check that a value is one of those known."""
    if isinstance(value, bool) or value not in known:
        raise BadInput(f"{what}: expected one of {', '.join(map(str, known))}, got {value!r}")
