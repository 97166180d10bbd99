"""What Plumbob has, as plain data for programs and as tables for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

from plumbob.attacks import ATTACKS, Attack, attacks
from plumbob.auditing.planning.matrix import matrix
from plumbob.data import registry as data_sets
from plumbob.data.catalogue import DATA_SETS
from plumbob.defences import DEFENCES
from plumbob.papers import CLAIMS
from plumbob.protocols import PROTOCOLS
from plumbob.registry import Registry, settable
from plumbob.report.matrix import lines
from plumbob.threats import THREATS, Threat

Entry = dict[str, Any]
COLUMNS, WIDE = 4, 160  # more columns than these need a console as wide as that
FOR_PROGRAMS = ("fits", "settings", "presets")  # too long for a table; the pages in docs/ have them


def entries(what: str) -> list[Entry]:
    """Objects with at least `name` and `summary`."""
    if what in _REGISTERED:
        registry, more = _REGISTERED[what]
        return [{"name": one.name, "summary": one.summary, **more(one)} for one in registry.values()]
    return _matrix() if what == "matrix" else _data()


def show(what: str, found: list[Entry], console: Console) -> None:
    """A table; the matrix as lines, since no terminal is wide enough for it."""
    if what == "matrix":
        for line in lines(matrix()):
            console.print(Text(line, "" if line.startswith(" ") else "bold"))
        return
    grid = Grid(box=None, pad_edge=False)
    shown = [key for key in found[0] if key not in FOR_PROGRAMS]
    if len(shown) > COLUMNS and console.width < WIDE:
        found, shown = [_in_two(entry, shown) for entry in found], ["name", "summary"]
    for key in shown:
        grid.add_column(key.replace("_", " "), no_wrap=key == "name", overflow="fold")
    for entry in found:
        grid.add_row(*(escape(_cell(entry[key])) for key in shown))
    console.print(grid)
    if what == "threats":
        console.print("\nWhich attack fits which protocol and threat, and why the others do not: plumbob list matrix")


def _in_two(entry: Entry, keys: list[str]) -> Entry:
    """The name, and all the rest below the summary."""
    rest = [f"{key}: {_cell(entry[key])}" for key in keys if key not in ("name", "summary") and _cell(entry[key])]
    return {"name": entry["name"], "summary": f"{entry['summary']}\n{'; '.join(rest)}"}


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)


def _matrix() -> list[Entry]:
    return [
        {"name": f"{block.protocol} / {row.threat}", "summary": f"{row.role}, in {block.phase}"}
        | {"protocol": block.protocol, "phase": block.phase, "threat": row.threat, "role": row.role}
        | {"status": str(row.status), "knows": list(row.knowledge), "fits": list(row.fits), "lacks": row.lacks}
        | {"why_not": {name: why for why, names in row.reasons for name in names}}
        | {"addresses": {name: list(kinds) for name, kinds in row.addressed.items()}, "not_addressed": list(row.blind)}
        for block in matrix()
        for row in block.rows
    ]


def _of_attack(attack: type[Attack]) -> Entry:
    needs = [kind.__name__ for kind in attack.requires]
    addresses = list(map(str, attack.addresses))
    known = {"paper": attack.paper, "protocols": list(attack.protocols), "requires": needs, "addresses": addresses}
    return known | {
        "settings": _settings(attack),
        "presets": {name: _plain(own) for name, own in attack.presets.items()},
    }


def _settings(attack: type[Attack]) -> list[Entry]:
    """Every setting with its default and where that comes from: of a paper's attack the paper, its authors' code, or us."""
    defaults, sources = attack().settings, attack.sources
    return [
        {"name": name, "default": _plain(defaults[name])}
        | ({"from": sources[name].origin, "where": sources[name].where} if name in sources else {})
        for name in settable(attack)
    ]


def _plain(value: Any) -> Any:
    """Settings as JSON has them, which knows lists and no tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def _of_threat(threat: Threat) -> Entry:
    fits = {
        f"{name} on {protocol}": attack.why_not(protocol, threat) or ""
        for name, attack in attacks().items()
        for protocol in PROTOCOLS
    }
    return {"knows": [*threat.knowledge], "deviates": [one.words for one in threat.deviations], "fits": fits}


def _data() -> list[Entry]:
    return [
        {
            "name": entry.name,
            "summary": entry.summary,
            "rows": entry.rows,
            "features": entry.features,
            "classes": entry.classes,
            "licence": entry.licence,
            "file": data_sets.verify(entry.name),
        }
        for entry in map(data_sets.find, DATA_SETS)
    ]


# What a line says besides the name and the summary.
_REGISTERED: dict[str, tuple[Registry[Any], Callable[[Any], Entry]]] = {
    "attacks": (ATTACKS, _of_attack),
    "defences": (DEFENCES, lambda defence: {"point": defence.point, "paper": defence.paper}),
    "protocols": (PROTOCOLS, lambda _: {}),
    "threats": (THREATS, _of_threat),
    "claims": (CLAIMS, lambda claim: {"where": claim.where}),
}
