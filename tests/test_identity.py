"""Identities are fixed: seeds and keys of all findings hash them, so a changed one changes every number.

tests/golden/identities.json was written when seeds still hashed the classes' own `repr`. Add lines to it; change none. Where an
attack's defaults became the paper's, its line stayed, as that of the preset that has the former ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plumbob.attacks import ATTACKS, Attack
from plumbob.auditing.planning.plan import DefencePlan, ProtocolPlan, ThreatPlan
from plumbob.defences import DEFENCES
from plumbob.identity import Identified
from plumbob.protocols import PROTOCOLS
from plumbob.threats import THREATS, describe

GOLDEN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "golden" / "identities.json").read_text(encoding="utf-8")
)


def now() -> dict[str, dict[str, Any]]:
    """Everything that can be named, and some of it with settings."""
    plain = {
        "attacks": {
            title: kind.preset(preset).identified()
            for name, kind in ATTACKS.items()
            for preset in ("", *(key for key in kind.presets if key != "small"))
            for title in [f"{name} ({preset})" if preset else name]
        },
        "defences": {name: kind().identified() for name, kind in DEFENCES.items()},
        "protocols": {name: kind().identified() for name, kind in PROTOCOLS.items()},
        "threats": {name: describe(threat) for name, threat in THREATS.items()},
    }
    changed = {
        "defences": [
            DefencePlan(name="rounding+hide_model", settings={"rounding": {"digits": 2}}),
            DefencePlan(name="dp_sgd", settings={"epsilon": 10.0}),
        ],
        "protocols": [
            ProtocolPlan(name="neural_network", settings={"hidden": [16, 8], "epochs": 3}),
            ProtocolPlan(name="secure_boost", settings={"code": "magic_numbers", "key_bits": 0}),
            ProtocolPlan(name="secure_boost", settings={"code": "labelled_groups"}),
        ],
    }
    plain["defences"] |= {plan.title: plan.defence().identified() for plan in changed["defences"]}
    plain["protocols"] |= {plan.title: plan.protocol().identified() for plan in changed["protocols"]}
    own = [
        ThreatPlan(name="mine", knows=("schema",), auxiliary_rows=50),
        ThreatPlan(name="collusion", auxiliary_rows=20),
        ThreatPlan(name="passive-training", colluding=("shop",)),
        ThreatPlan(name="coordinator", knows=()),
        ThreatPlan(name="cheating", deviates=("low_bits",)),
    ]
    plain["threats"] |= {f"{plan.name} changed": describe(plan.threat()) for plan in own}
    return plain


@pytest.mark.parametrize("kind", ["attacks", "defences", "protocols", "threats"])
def test_identities_are_those_that_seeds_have_always_hashed(kind: str) -> None:
    there = json.loads(json.dumps(now()[kind]))
    assert {name: there[name] for name in GOLDEN[kind]} == GOLDEN[kind]
    assert not set(there) - set(GOLDEN[kind]), "add the new identities to tests/golden/identities.json"


class Renamed(Identified):
    name = "renamed"
    identity = "OldName(size)"

    def __init__(self, *, size: int = 1, later: str = "as before") -> None:
        self.size, self.later, self._cache = size, later, [size]


def test_a_renamed_class_and_a_later_setting_change_nothing() -> None:
    assert Renamed(size=3).identified() == "OldName(size=3)"


def test_a_later_setting_counts_where_it_is_not_at_its_default() -> None:
    assert Renamed(later="new").identified() == "OldName(size=1, later='new')"


class NewDefault(Identified):
    """A setting that came later, with another default than what the class did before."""

    name = "new default"
    identity = "NewDefault(size, boxed=False)"

    def __init__(self, *, size: int = 1, boxed: bool = True) -> None:
        self.size, self.boxed = size, boxed


def test_a_later_setting_whose_default_is_new_counts_where_it_is_not_as_it_was_before() -> None:
    assert [NewDefault(boxed=boxed).identified() for boxed in (False, True)] == [
        "NewDefault(size=1)",
        "NewDefault(size=1, boxed=True)",
    ]


def test_a_class_without_fixed_words_goes_by_its_name_alone() -> None:
    class Own(Attack):
        name = "own"

        def __init__(self, *, rate: float = 0.1) -> None:
            self.rate = rate

        def run(self, view: object, rng: object) -> object: ...  # type: ignore[override]  # never run

    class Inherited(Renamed):
        name = "inherited"

    assert (Own().identified(), Own(rate=0.2).identified()) == ("own()", "own(rate=0.2)")
    assert Inherited().identified() == "inherited()"


def test_settings_that_are_things_themselves_are_identified_too() -> None:
    class Holder(Identified):
        name = "holder"

        def __init__(self, *, inner: Identified | None = None) -> None:
            self.inner = inner

    assert Holder(inner=Renamed()).identified() == "holder(inner=OldName(size=1))"


class Heavy(Identified):
    name = "heavy"
    presets = {"small": {"size": 2}}

    def __init__(self, *, size: int = 20_000) -> None:
        self.size = size


@pytest.mark.parametrize(("preset", "size"), [("small", 2), ("another", 20_000)])
def test_a_preset_gives_the_settings_that_the_class_lists_or_its_defaults(preset: str, size: int) -> None:
    assert Heavy.preset(preset).size == size


@pytest.mark.parametrize("kind", [*ATTACKS.values(), *DEFENCES.values(), *PROTOCOLS.values()], ids=lambda k: k.name)
def test_every_preset_that_a_class_lists_can_be_made(kind: type[Identified]) -> None:
    for preset, settings in kind.presets.items():
        made = kind.preset(preset).settings
        assert {key: made[key] for key in settings} == dict(settings)
