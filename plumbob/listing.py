"""What Plumbob has, as plain data for programs and as tables for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

from plumbob.attacks import attacks
from plumbob.auditing.matrix import matrix
from plumbob.data import registry
from plumbob.data.catalogue import DATA_SETS
from plumbob.defences import DEFENCES
from plumbob.papers import CLAIMS
from plumbob.protocols import PROTOCOLS
from plumbob.report.matrix import lines
from plumbob.threats import THREATS

Entry = dict[str, Any]


def entries(what: str) -> list[Entry]:
    """Objects with at least `name` and `summary`."""
    listings: dict[str, Callable[[], list[Entry]]] = {
        "attacks": _attacks,
        "defences": _defences,
        "protocols": lambda: [{"name": p.name, "summary": p.summary} for p in PROTOCOLS.values()],
        "threats": _threats,
        "matrix": _matrix,
        "data": _data,
        "claims": lambda: [{"name": c.name, "summary": c.summary, "where": c.where} for c in CLAIMS],
    }
    return listings[what]()


def show(what: str, found: list[Entry], console: Console) -> None:
    """A table; the matrix as lines, since no terminal is wide enough for it."""
    if what == "matrix":
        for line in lines(matrix()):
            console.print(Text(line, "" if line.startswith(" ") else "bold"))
        return
    grid = Grid(box=None, pad_edge=False)
    shown = [key for key in found[0] if key != "fits"]
    for key in shown:
        grid.add_column(key.replace("_", " "), no_wrap=key == "name")
    for entry in found:
        grid.add_row(*(escape(_cell(entry[key])) for key in shown))
    console.print(grid)
    if what == "threats":
        console.print("\nWhich attack fits which protocol and threat, and why the others do not: plumbob list matrix")


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)


def _matrix() -> list[Entry]:
    return [
        {"name": f"{block.protocol} / {row.threat}", "summary": f"{row.role}, in {block.phase}"}
        | {"protocol": block.protocol, "phase": block.phase, "threat": row.threat, "role": row.role}
        | {"knows": list(row.knowledge), "fits": list(row.fits)}
        | {"why_not": {name: why for why, names in row.reasons for name in names}}
        for block in matrix()
        for row in block.rows
    ]


def _attacks() -> list[Entry]:
    return [
        {
            "name": attack.name,
            "summary": attack.summary,
            "paper": attack.paper,
            "protocols": list(attack.protocols),
            "requires": [kind.__name__ for kind in attack.requires],
        }
        for attack in attacks().values()
    ]


def _threats() -> list[Entry]:
    found = []
    for threat in THREATS.values():
        fits = {
            f"{attack.name} on {protocol}": attack.why_not(protocol, threat) or ""
            for attack in attacks().values()
            for protocol in PROTOCOLS
        }
        knows = [grant.words for grant in threat.grants]
        found.append({"name": threat.name, "summary": threat.summary, "knows": knows, "fits": fits})
    return found


def _data() -> list[Entry]:
    return [
        {
            "name": entry.name,
            "summary": entry.summary,
            "rows": entry.rows,
            "features": entry.features,
            "classes": entry.classes,
            "licence": entry.licence,
            "file": registry.verify(entry.name),
        }
        for entry in map(registry.find, DATA_SETS)
    ]


def _defences() -> list[Entry]:
    return [{"name": d.name, "summary": d.summary, "point": d.point, "paper": d.paper} for d in DEFENCES.values()]
