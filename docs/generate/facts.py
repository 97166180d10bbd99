"""What a page says of a class, read from the class: family, needs, settings, a plan that runs it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml

from docs.generate.citations import cited
from plumbob.attacks import ATTACKS, Attack
from plumbob.attacks.base import needed
from plumbob.defences import DEFENCES, Defence
from plumbob.identity import Identified
from plumbob.protocols import PROTOCOLS, Protocol
from plumbob.registry import settable
from plumbob.report.phrases import label, sentence_list
from plumbob.threats import THREATS, AuxiliaryRows, Deviation

Kind = TypeVar("Kind")
Facts = list[tuple[str, str]]  # the lines of a head: what, and what holds for it
BY_THEMSELVES = {
    name: {"coordinator": False} for name in ("answer_solving", "shadow_answers")
}  # no coordinator in between
EVERYWHERE = "[every protocol of prediction](../protocols/index.md)"
USUAL_IN_TRAINING = ("active-training", "coordinator", "corrupted-coordinator", "passive-training")


def own(registry: Mapping[str, type[Kind]]) -> dict[str, type[Kind]]:
    """What is Plumbob's own: what other installed packages add is not for these pages."""
    return {name: kind for name, kind in registry.items() if kind.__module__.startswith("plumbob.")}


PREDICTING = [name for name, kind in own(PROTOCOLS).items() if kind.phase == "prediction"]


def family(kind: type) -> str:
    """The folder that the class is in."""
    return kind.__module__.split(".")[2]


def aliases(kind: type) -> tuple[str, ...]:
    """Names of the class itself, not of the one it is made from."""
    own: tuple[str, ...] = vars(kind).get("aliases", ())
    return own


def sentence(summary: str) -> str:
    """A class's summary as a sentence."""
    words = re.sub(r"^(ours|\w+\d{4}('s rival)?): ", "", summary)  # who published it has a line of its own
    return f"{words[:1].upper()}{words[1:]}."


def links(kind: str, names: Iterable[str]) -> str:
    return ", ".join(f"[{label(name)}](../{kind}/{name}.md)" for name in names) or "none"


def who(attack: type[Attack]) -> str:
    """Who has to be curious, and what it has to know."""
    does = [needed(kind) for kind in attack.requires if issubclass(kind, Deviation)]
    people = (does or ["the active party"]) if attack.needs_active else []
    people += ["the coordinator"] if attack.corrupted else []
    knows = [kind().words for kind in attack.requires if not issubclass(kind, Deviation)]
    return sentence_list([*people, *knows]) or "any party and its messages"


def protected(defence: type[Defence]) -> list[str]:
    """The protocols that it changes."""
    able = [name for name, kind in own(PROTOCOLS).items() if defence.point in kind.parts]
    if defence.point != "training":
        return able
    made = {name: PROTOCOLS[name]() for name in able}
    return [name for name, protocol in made.items() if defence().protect(protocol) is not protocol]


def attack_facts(attack: type[Attack]) -> Facts:
    facts = [
        ("family", family(attack)),
        ("works on", links("protocols", attack.protocols)),
        ("needs", who(attack)),
    ]
    facts += [("runs", _efforts(attack))] if not attack.by_default or "fast" in attack.presets else []
    return [*facts, ("paper", cited(attack.paper))]


def _efforts(attack: type[Attack]) -> str:
    """What a plan that names no attacks makes of it."""
    if not attack.by_default:
        return "where a plan names it, or at effort `thorough`"
    return "in audits of effort `quick` and `standard` as preset `fast`; at `thorough`, and where a plan names it, as published"


def defence_facts(defence: type[Defence]) -> Facts:
    return [
        ("family", family(defence)),
        ("changes", defence.point),
        ("works on", EVERYWHERE if protected(defence) == PREDICTING else links("protocols", protected(defence))),
        ("paper", cited(defence.paper)),
    ]


def protocol_facts(protocol: type[Protocol]) -> Facts:
    helpers = [
        name for name, defence in own(DEFENCES).items() if name != "none" and protocol.name in protected(defence)
    ]
    return [
        ("family", family(protocol)),
        ("attacked in", protocol.phase),
        ("takes part", ", ".join(protocol.roles)),
        ("attacks", links("attacks", _readers(protocol.name))),
        ("defences", links("defences", helpers)),
    ]


def settings(kind: type[Identified]) -> list[tuple[str, ...]]:
    """Name, type and default of every setting of the constructor; where the class says so, where the default comes from."""
    made = inspect.signature(kind).parameters
    return [
        (f"`{name}`", _type(kind, made[name]), f"`{_shown(made[name].default)}`")
        + ((str(kind.sources.get(name, "")),) if kind.sources else ())
        for name in settable(kind)
    ]


def presets(kind: type[Identified]) -> list[tuple[str, str]]:
    """Named settings that a plan can ask for; `small` ones are for tests."""
    named = {name: own for name, own in kind.presets.items() if name != "small"}
    return [
        (f"`{name}`", ", ".join(f"{key} {_shown(value)}" for key, value in own.items())) for name, own in named.items()
    ]


def _type(kind: Any, parameter: inspect.Parameter) -> str:
    try:
        hint = get_type_hints(kind.__init__)[parameter.name]
    except (NameError, KeyError):  # a name that only a type checker sees
        return f"`{parameter.annotation}`".replace("|", "or")
    if get_origin(hint) is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(hint))
    words = (
        hint.__name__ if isinstance(hint, type) and not get_args(hint) else re.sub(r"[\w.]+\.(\w+)", r"\1", str(hint))
    )
    return re.sub(r"^Optional\[(.+)\]$", r"\1 or None", words).replace(" | ", " or ")


def _shown(value: object) -> object:
    return value if isinstance(value, str) else repr(value)


def attack_plan(attack: type[Attack]) -> str:
    """The first protocol that it works on, under the first threat that fits."""
    protocol = attack.protocols[0]
    fitting = (t for t in _threats(protocol) if attack().why_not(protocol, THREATS[t]) is None)
    threat = next(fitting, None) or _with_rows(attack, protocol)
    named = {"name": protocol, "settings": BY_THEMSELVES[attack.name]} if attack.name in BY_THEMSELVES else protocol
    return _plan(protocols=[named], threats=[threat], attacks=[attack.name])


def _with_rows(attack: type[Attack], protocol: str) -> str:
    """The first threat that fits once it is granted rows of other people, which no built-in one of its kind is."""
    more = ((t, replace(THREATS[t], grants=(*THREATS[t].grants, AuxiliaryRows()))) for t in _threats(protocol))
    name = next(t for t, threat in more if attack().why_not(protocol, threat) is None)
    return f"{{name: {name}, auxiliary_rows: {AuxiliaryRows().count}}}"


def defence_plan(defence: type[Defence]) -> str:
    """None beside the defence with its settings, on the protocol with the most attacks among those that it changes."""
    defaults = {name: p.default for name, p in inspect.signature(defence).parameters.items() if p.default is not None}
    named = {"name": defence.name, "settings": defaults} if defaults else defence.name
    protocol = max(protected(defence), key=lambda name: len(_readers(name)))
    exposed = _exposed(protocol)
    if defence.point == "labels":
        exposed["threats"] = ["passive-known-people"]
    return _plan(**exposed, defences=["none", named])


def protocol_plan(protocol: type[Protocol]) -> str:
    return _plan(**_exposed(protocol.name))


def _readers(protocol: str) -> list[str]:
    return [name for name, attack in own(ATTACKS).items() if protocol in attack.protocols]


def _exposed(protocol: str) -> dict[str, list[Any]]:
    """The protocol with the threat under which most attacks apply."""
    made = [ATTACKS[name]() for name in _readers(protocol)]
    able = {name: sum(a.why_not(protocol, THREATS[name]) is None for a in made) for name in _threats(protocol)}
    return {"protocols": [protocol], "threats": [max(able, key=lambda name: able[name])]}


def _threats(protocol: str) -> list[str]:
    """Those that are about the phase in which the protocol is attacked come first."""
    first = USUAL_IN_TRAINING if PROTOCOLS[protocol].phase == "training" else ()
    return list(dict.fromkeys((*first, *THREATS)))


def _plan(**parts: list[Any]) -> str:
    lines = ["data: breast", "unknown: [0.3]"]
    for key, entries in parts.items():
        if all(isinstance(entry, str) for entry in entries):
            lines.append(f"{key}: [{', '.join(entries)}]")
            continue
        lines.append(f"{key}:")
        for entry in entries:
            lines += [f"  - {entry}"] if isinstance(entry, str) else _with_settings(entry)
    return "\n".join(lines) + "\n"


def _with_settings(entry: dict[str, Any]) -> list[str]:
    shown = yaml.safe_dump(entry["settings"], default_flow_style=True, sort_keys=False, width=1_000).strip()
    return [f"  - name: {entry['name']}", f"    settings: {shown}"]
