"""What a plan chooses by name, with settings: the part that protocols, defences and attacks share, and attacks.

An attack may be listed as a name, as a name with settings, with a preset that its class declares, or with both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_serializer, model_validator

from plumbob.attacks import ATTACKS, Attack, attack_named
from plumbob.errors import BadInput, suggest
from plumbob.identity import tupled
from plumbob.setting_types import typed

Effort = Literal["quick", "standard", "thorough"]
FAST = "fast"  # the preset that quick and standard audits run


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Chosen(Part):
    """Something chosen by name, with settings."""

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)

    @field_validator("settings")
    @classmethod
    def _in_order(cls, settings: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """In the order of the constructor: titles, and the seeds made from them, do not depend on the order in the plan."""
        if "name" in settings:
            raise ValueError("'name' is not a setting; put it next to 'settings'")
        return cls._ordered(str(info.data.get("name")), settings)

    @classmethod
    def _ordered(cls, name: str, settings: dict[str, Any]) -> dict[str, Any]:
        return settings

    @property
    def title(self) -> str:
        """The name with any settings: what identifies it in findings."""
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name} ({settings})" if settings else self.name


def by_signature(kind: Callable[..., object] | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings in the order of the constructor; unknown ones last, to be refused."""
    places = [] if kind is None else list(signature(kind).parameters)
    return dict(sorted(settings.items(), key=lambda one: places.index(one[0]) if one[0] in places else len(places)))


class AttackPlan(Chosen):
    """An attack and its settings: those of a preset, others one by one, the rest at their defaults."""

    preset: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _long_form(cls, given: Any) -> Any:
        """A bare name, or an attack made in Python, as keys and values."""
        if isinstance(given, str):
            return {"name": given}
        return {"name": given.name, "settings": _own_settings(given)} if isinstance(given, Attack) else given

    @model_serializer(mode="wrap")
    def _short_form(self, whole: Callable[[AttackPlan], dict[str, Any]]) -> dict[str, Any] | str:
        if self.settings or self.preset is not None:
            return {key: value for key, value in whole(self).items() if value not in (None, {})}
        return self.name

    @field_validator("name")
    @classmethod
    def _without_alias(cls, name: str) -> str:
        return ATTACKS.canonical(name)

    @classmethod
    def _ordered(cls, name: str, settings: dict[str, Any]) -> dict[str, Any]:
        if (kind := ATTACKS.get(name)) is None:  # which is said where the attack is made
            return settings
        plain = {key: tupled(value) for key, value in by_signature(kind, settings).items()}
        return typed(f"attack '{name}'", kind, plain)

    @property
    def title(self) -> str:
        """The name with its preset and any settings: what identifies it in findings."""
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        words = ", ".join([*([self.preset] if self.preset is not None else []), *settings])
        return f"{self.name} ({words})" if words else self.name

    def knowing(self, adaptive: bool) -> AttackPlan:
        """The same attack by somebody who knows the defence, or by somebody who does not."""
        return self.model_copy(update={"settings": {**self.settings, "adaptive": adaptive}})

    @property
    def attackers(self) -> tuple[AttackPlan, ...]:
        """Who makes the attack where knowing the defence makes a difference: beside one who does not, always one who does.

        Attacks of our own know it by default, and a plan that sets `adaptive` says who it wants.
        """
        if "adaptive" in self.settings or self.attack().adaptive:
            return (self,)
        return self.knowing(False), self.knowing(True)

    @property
    def whoever(self) -> str:
        """The title without what the attacker knows of defences."""
        rest = {key: value for key, value in self.settings.items() if key != "adaptive"}
        return self.model_copy(update={"settings": rest}).title

    def attack(self) -> Attack:
        """The attack; settings that it cannot have are refused with a sentence."""
        presets = ATTACKS.named(self.name).presets
        if self.preset is not None and self.preset not in presets:
            known = suggest(self.preset, list(presets)) or "; it has none"
            raise BadInput(f"attack '{self.name}' has no preset '{self.preset}'{known}")
        return attack_named(self.name, **{**presets.get(self.preset or "", {}), **self.settings})


def quick(name: str) -> AttackPlan:
    """An attack as audits of effort quick and standard run it: the preset `fast` where its class declares one, else as it is."""
    return AttackPlan(name=name, preset=FAST if FAST in ATTACKS.named(name).presets else None)


def unnamed(effort: Effort) -> tuple[AttackPlan, ...]:
    """The attacks of a plan that names none, by its effort.

    quick, standard    every attack that runs by default, in its preset `fast` where it has one
    thorough           these, and every attack without a preset: the published ones as printed, the slow ones included
    """
    fast = [quick(name) for name, kind in ATTACKS.items() if kind.by_default]
    every = [*fast, *(AttackPlan(name=name) for name in ATTACKS)] if effort == "thorough" else fast
    return tuple({one.title: one for one in every}.values())


def _own_settings(attack: Attack) -> Mapping[str, Any]:
    """What an attack that was made in Python differs in from the defaults of its class, which a plan must know by name."""
    if ATTACKS.get(attack.name) is not type(attack):
        raise BadInput(
            f"attack '{attack.name}': {type(attack).__name__} is not registered under this name; register it"
        )
    return attack.chosen
