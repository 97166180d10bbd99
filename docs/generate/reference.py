"""Write api.md from signatures and docstrings: `python -m docs.generate.reference`. A test compares the page with the code."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "api.md"
PUBLIC = {
    "An audit": {
        "plumbob": [],  # everything that it exports
        "plumbob.app": ["run_audit", "Result"],
        "plumbob.auditing.planning.plan_file": ["make_plan", "read_plan"],
        "plumbob.auditing.running.finding": ["read_findings", "Finding"],
        "plumbob.auditing.concluding.summarise": ["summarise", "Summary", "Verdict"],
        "plumbob.auditing.concluding.defence_frontier": ["frontiers", "Frontier"],
        "plumbob.auditing.planning.gate": ["Gate"],
    },
    "Tables and parties": {
        "plumbob.data.registry": ["load"],
        "plumbob.data.prepare": ["prepare", "Rules"],
        "plumbob.federation": ["Table", "Party", "Federation", "split", "split_at_random", "halves"],
    },
    "Protocols, transcripts, views": {
        "plumbob.protocols": [
            "Protocol",
            "PredictionProtocol",
            "TrainingProtocol",
            "Model",
            "predict",
            "protocol_named",
        ],
        "plumbob.transcript": ["Transcript", "Message"],
        "plumbob.threats": ["Threat", "View", "cut"],
    },
    "Attacks, defences, scores": {
        "plumbob.attacks": ["Attack", "Guess", "attack_named", "attacks"],
        "plumbob.defences": ["Defence"],
        "plumbob.scoring.score": ["score", "Score", "ColumnScore"],
        "plumbob.scoring.truth": ["truth_of"],
    },
    "Errors": {"plumbob.errors": ["BadInput"]},
}
HEAD = """# Python reference

The functions and classes that programs may rely on, generated from the code. [Transcripts and views](transcripts.md) has an
example, [Contributing](../CONTRIBUTING.md) says how to add an attack.
"""


def page() -> str:
    """The whole page."""
    parts, seen = [HEAD], set()
    for heading, modules in PUBLIC.items():
        parts.append(f"## {heading}\n")
        for module, names in modules.items():
            for name in names or exported(module):
                thing = getattr(importlib.import_module(module), name)
                if id(thing) not in seen:  # what `plumbob` itself exports is listed there
                    parts.append(entry(f"{module}.{name}", thing))
                seen.add(id(thing))
    return "\n".join(parts)


def exported(module: str) -> list[str]:
    """The functions and classes that a module exports."""
    there = importlib.import_module(module)
    return [name for name in there.__all__ if callable(getattr(there, name))]


def entry(path: str, thing: Any) -> str:
    """Signature and words of one function, or of a class with its public methods."""
    lines = [f"### `{path}`\n", f"```text\n{signature(path.rpartition('.')[2], thing)}\n```\n", words(thing)]
    if inspect.isclass(thing):
        lines += [line for name, member in vars(thing).items() if (line := method(name, member))] + [""]
    return "\n".join(lines)


def method(name: str, member: Any) -> str:
    """One line of a class; empty for what is not public or says nothing."""
    told = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    if name.startswith("_") or not inspect.isfunction(told) or not inspect.getdoc(told):
        return ""
    return f"- `{name if isinstance(member, property) else signature(name, told, 1_000)}`: {words(told).strip()}"


def signature(name: str, thing: Any, width: int = 110) -> str:
    """As it is called, one argument a line where it is long."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return f"{name}(sentence)"
    told = inspect.signature(thing)
    parts: list[str] = []
    star = False
    for part in told.parameters.values():
        if part.name in ("self", "cls"):
            continue
        if part.kind is part.KEYWORD_ONLY and not star:
            parts, star = [*parts, "*"], True
        stars = "*" if part.kind is part.VAR_POSITIONAL else "**" if part.kind is part.VAR_KEYWORD else ""
        kind = "" if part.annotation is part.empty else f": {written(part.annotation)}"
        parts.append(f"{stars}{part.name}{kind}{default(part)}")
    gives = (
        ""
        if inspect.isclass(thing) or told.return_annotation is told.empty
        else f" -> {written(told.return_annotation)}"
    )
    line = f"{name}({', '.join(parts)}){gives}"
    return line if len(line) <= width else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){gives}"


def written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def default(part: inspect.Parameter) -> str:
    """Plain values as they are; of others only that there is one."""
    if part.default is part.empty:
        return ""
    plain = part.default is None or isinstance(part.default, str | int | float | bool | tuple)
    return f" = {part.default!r}" if plain else " = ..."


def words(thing: Any) -> str:
    """The first paragraph of the docstring."""
    return (inspect.getdoc(thing) or "").split(">>>")[0].split("\n\n")[0].strip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
