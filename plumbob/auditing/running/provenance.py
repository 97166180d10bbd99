"""Which code made a finding: a hash of the modules it went through and of every module that those import.

A store keeps findings under their key and this hash together, so findings of other code are never served. Imports are read
from the source, without running it; packages of others are followed where an attack, defence or protocol comes from one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

LENGTH = 12  # hexadecimal digits of a hash that are kept
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.M)


@cache
def code_of(modules: frozenset[str]) -> str:
    """A hash of the source of these modules and of what they import from the packages they belong to.

    >>> code_of(frozenset({"plumbob.errors"})) == code_of(frozenset({"plumbob.errors", "plumbob"}))
    True
    """
    packages = {module.partition(".")[0] for module in modules}
    seen: set[str] = set()
    todo = list(modules)
    while todo:
        module = todo.pop()
        if module in seen or module.partition(".")[0] not in packages or _source(module) is None:
            continue
        seen.add(module)
        todo += [module.rpartition(".")[0], *_imports(module)]
    words = hashlib.sha256()
    for module in sorted(seen):
        words.update(f"{module}\n{_digest(module)}\n".encode())
    return words.hexdigest()[:LENGTH]


def modules_of(things: Iterable[object]) -> frozenset[str]:
    """The modules in which the classes of these things, and the classes those inherit from, are written."""
    kinds = (kind for thing in things for kind in type(thing).__mro__)
    return frozenset(kind.__module__ for kind in kinds if kind.__module__ not in ("builtins", "abc"))


@cache
def _source(module: str) -> Path | None:
    """The file of a module; nothing for what is not one, such as a function that is imported by name."""
    top, *inner = module.split(".")
    found = find_spec(top) if top else None
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None
    path = Path(found.origin)
    if inner and found.submodule_search_locations is None:
        return None
    inside = path.parent.joinpath(*inner)
    candidates = (path,) if not inner else (inside.with_suffix(".py"), inside / "__init__.py")
    return next((one for one in candidates if one.is_file()), None)


@cache
def _digest(module: str) -> str:
    path = _source(module)
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _imports(module: str) -> tuple[str, ...]:
    path = _source(module)
    return () if path is None else tuple(_named(path.read_text(encoding="utf-8"), module))


def _named(text: str, module: str) -> Iterator[str]:
    """Every module that the text may mean: `from a import b` is a, and a.b where that is a module."""
    path = _source(module)
    package = module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]
    for origin, names, whole in _IMPORT.findall(text):
        base = whole or _absolute(origin, package)
        yield base
        for name in re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", re.sub(r"#[^\n]*", "", names)):
            yield f"{base}.{name}"


def _absolute(origin: str, package: str) -> str:
    """A module by its whole name: one point in front means this package, each further one its parent."""
    points = len(origin) - len(origin.lstrip("."))
    if not points:
        return origin
    above = package.split(".")[: len(package.split(".")) - (points - 1)]
    return ".".join(filter(None, [*above, origin[points:]]))
