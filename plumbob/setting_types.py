"""Which values a setting can have, read off its annotation in the constructor; anything else is refused in one sentence.

    rate: Positive        steps: Count        loss: Literal["mse", "kld"]        widths: tuple[Whole, ...] | None

What a plan or a message writes as a list is a tuple here, and a whole number is one for a setting with a decimal point too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from plumbob.errors import BadInput

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", NoneType: "nothing (null)"}


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; with `above`, not `low` itself."""

    low: float
    high: float = math.inf
    above: bool = False

    def holds(self, value: float) -> bool:
        return (self.low < value if self.above else self.low <= value) and value <= self.high

    def words(self, noun: str) -> str:
        """What is expected, of a noun such as `a number`.

        >>> Range(0, 1).words("a number"), Range(0, above=True).words("a number")
        ('a number from 0 to 1', 'a number above 0')
        """
        if math.isinf(self.high):
            return f"{noun} above {self.low:,g}" if self.above else f"{noun} of at least {self.low:,g}"
        return f"{noun} {f'above {self.low:,g}, at most' if self.above else f'from {self.low:,g} to'} {self.high:,g}"


Whole = Annotated[int, Range(1)]  # a number of things, at least one
Count = Annotated[int, Range(0)]  # a number of things, or none
Positive = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]


def typed(what: str, kind: Callable[..., object], settings: Mapping[str, Any]) -> dict[str, Any]:
    """These settings as the constructor takes them; one that it cannot have is refused. Unknown ones stay as they are."""
    hints = _hints(kind)
    return {key: _checked(what, key, hints[key], value) if key in hints else value for key, value in settings.items()}


def expected(hint: Any) -> str:
    """What an annotation takes, in words.

    >>> expected(Positive | None), expected(Literal["mse", "kld"]), expected(tuple[Whole, ...])
    ('a number above 0 or nothing (null)', 'mse or kld', 'a list, each a whole number of at least 1')
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return next((m.words(expected(inner[0])) for m in inner[1:] if isinstance(m, Range)), expected(inner[0]))
    if origin in (Union, UnionType):
        return " or ".join(map(expected, inner))
    if origin is Literal:
        return " or ".join(map(str, inner))
    if origin is tuple and inner[-1] is Ellipsis:
        return f"a list, each {expected(inner[0])}"
    if origin is tuple:
        return f"a list of {len(inner)}: {', '.join(map(expected, inner))}"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


class _Wrong(Exception):
    """A value that an annotation does not take."""


def _checked(what: str, key: str, hint: Any, value: Any) -> Any:
    try:
        return _fitted(hint, value)
    except _Wrong:
        raise BadInput(f"{what}: setting '{key}': expected {expected(hint)}, got {value!r}") from None


def _fitted(hint: Any, value: Any) -> Any:
    """The value as an annotation has it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        made = _fitted(inner[0], value)
        if all(m.holds(made) for m in inner[1:] if isinstance(m, Range)):
            return made
        raise _Wrong
    if origin in (Union, UnionType):
        return _first(inner, value)
    if origin is Literal:
        if not any(type(value) is type(one) and value == one for one in inner):
            raise _Wrong
        return value
    if origin is tuple:
        return _tuple(inner, value)
    if hint in _WORDS:
        return _plain(hint, value)
    return value  # something that no plan can write; whoever made it in Python knows


def _first(hints: tuple[Any, ...], value: Any) -> Any:
    for hint in hints:
        try:
            return _fitted(hint, value)
        except _Wrong:
            continue
    raise _Wrong


def _tuple(hints: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _Wrong
    each = [hints[0]] * len(value) if hints[-1] is Ellipsis else list(hints)
    if len(each) != len(value):
        raise _Wrong
    return tuple(_fitted(hint, one) for hint, one in zip(each, value, strict=True))


def _plain(hint: Any, value: Any) -> Any:
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
    elif type(value) is hint:
        return value
    raise _Wrong


@cache
def _hints(kind: Callable[..., object]) -> dict[str, Any]:
    """Annotations of a constructor; none where they name what is not there while the program runs."""
    try:
        return get_type_hints(kind.__init__, include_extras=True)
    except (NameError, AttributeError):
        return {}
