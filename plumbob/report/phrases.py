"""How names, numbers and lists are written, on every page and on the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plumbob.errors import one_line

BASELINES = {
    "uniform": "uniform guess",
    "normal": "normal guess",
    "own_mean": "own mean",
    "own_row_mean": "own row mean",
    "no_message": "best without a message",
    "best_constant": "best constant",
    "random_path": "random path",
}
ATTACKERS = {"adaptive=True": "knows the defence", "adaptive=False": "does not know the defence"}
LONGEST = 80  # characters of a name that are shown


def plain(text: str) -> str:
    """A name on one line, without the characters that steer a terminal or turn the direction of writing."""
    return one_line(text).strip() or "(unnamed)"


def short(name: str) -> str:
    """A name cut in its middle where it is too long to read."""
    name = plain(name)
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 2 + 1 :]}"


def label(name: str) -> str:
    """The name of an attack or protocol, as words.

    >>> label("gradient_inversion (adaptive=False)")
    'gradient inversion (does not know the defence)'
    """
    for setting, words in ATTACKERS.items():
        name = name.replace(setting, words)
    return short(name.replace("_", " "))


def reduced(attack: str) -> bool:
    """Whether an attack was run in a preset that is faster and weaker than what it does by default.

    >>> reduced("shadow_inversion (fast, adaptive=True)"), reduced("posterior_mean")
    (True, False)
    """
    return re.search(r"\((?:fast|small)\b", attack) is not None


def baseline_words(name: str) -> str:
    return BASELINES.get(name, label(name))


def defended(defence: str) -> bool:
    return defence.strip().lower() not in ("", "none")


def defence_words(defence: str) -> str:
    return f"with {short(defence)}" if defended(defence) else "without defence"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float) -> str:
    """A share for a reader; a loss beyond 100 % says no more than that.

    >>> percent(0.123), percent(-7.0)
    ('12 %', 'below −100 %')
    """
    if share < -1:
        return "below −100 %"
    rounded = round(100 * share)
    return f"{rounded} %" if rounded >= 0 else f"−{-rounded} %"


def number(value: float) -> str:
    """Three digits that matter.

    >>> number(0.03751), number(3e-17), number(1234.5)
    ('0.0375', '3e-17', '1,234')
    """
    if value == 0:
        return "0"
    if abs(value) < 1e-4 or abs(value) >= 1e6:
        return f"{value:.2g}".replace("-", "−", 1) if value < 0 else f"{value:.2g}"
    text = f"{abs(value):,.0f}" if abs(value) >= 1000 else f"{abs(value):.3g}"
    return f"−{text}" if value < 0 else text


def with_margin(value: float, margin: float) -> str:
    """A value with its interval, both to the same digit.

    >>> with_margin(0.0565, 0.000971), with_margin(0.124, 0.0000012)
    ('0.0565 ± 0.0010', '0.124 ± 1.2e-06')
    """
    shown = number(value)
    digits = len(shown.partition(".")[2])
    if margin == 0 or "e" in shown or "," in shown or round(margin, digits) == 0:
        return f"{shown} ± {number(margin)}"
    return f"{shown} ± {margin:.{digits}f}"


def sentence_list(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
