"""What seeds and keys call a thing: fixed words, whatever its class is named and whichever settings it is given later.

    identity = "Rounding(digits)"    ->    Rounding(digits=2)

The settings listed there are always written, in that order. Any other setting is written only where it differs from its default,
so a class can be renamed and given settings without changing a number that was found before. Where the default of a later setting
is not what the class did before it had it, the word says what that was, and the setting is written where it differs from this:

    identity = "GradientInversion(loss, steps, rate, finish, box=False)"

Settings that are `unseeded` are not written: the draws are the same whatever they are, so two findings differ by them alone.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, cast

from plumbob.setting_sources import Source

Workload = Literal["matrices", "loops", "powers", "networks"]  # what a computation spends its time on


class Identified:
    """Something with settings, which are its public attributes and can all be left at their defaults."""

    name: ClassVar[str]
    summary: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()  # other names of the class, such as a paper's abbreviation
    identity: ClassVar[str] = ""  # the fixed word and the settings that are always written; else the name and none
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})  # by name; tests run the `small` ones
    sources: ClassVar[Mapping[str, Source]] = MappingProxyType({})  # where the default of each setting comes from
    unseeded: ClassVar[tuple[str, ...]] = ()  # settings that are not written, unless `identity` lists them

    @classmethod
    def preset(cls, name: str, **changed: Any) -> Self:
        """One with the settings that the class lists under this name, or with its defaults where it lists none; some `changed`.

        A class whose defaults are quick needs no `small` preset, so a name that is not listed is no error.
        """
        return cls(**{**cls.presets.get(name, {}), **changed})

    @property
    def settings(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings of the constructor that differ from its defaults: what makes another like it."""
        usual, settings = signature(type(self)).parameters, self.settings
        return {key: settings[key] for key, one in usual.items() if key in settings and settings[key] != one.default}

    def identified(self) -> str:
        """The fixed words with the settings in them."""
        word, _, listed = (vars(type(self)).get("identity") or f"{self.name}()").partition("(")
        named = [key.strip().partition("=") for key in listed.removesuffix(")").split(",") if key.strip()]
        always = [key for key, sign, _ in named if not sign]
        before = {key: ast.literal_eval(value) for key, sign, value in named if sign}
        settings, usual = self.settings, _defaults(cast(Hashable, type(self))) | before
        later = [key for key in settings if key not in (*always, *self.unseeded) and settings[key] != usual.get(key)]
        return f"{word}({', '.join(f'{key}={_word(settings[key])}' for key in (*always, *later))})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.settings.items())})"


@cache
def _defaults(kind: Hashable) -> dict[str, Any]:
    return dict(kind().settings)  # type: ignore[operator]  # a class of `Identified`: mypy does not take one for hashable


def tupled(value: Any) -> Any:
    """Lists as tuples: how settings are written in code, where files and messages have lists."""
    return tuple(map(tupled, value)) if isinstance(value, list | tuple) else value


def _word(value: object) -> str:
    return value.identified() if isinstance(value, Identified) else repr(value)
