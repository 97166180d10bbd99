"""One registry for everything that a plan can name: attacks, defences, protocols, threats, claims.

Plumbob's own are found in the public modules of their room. Other packages add theirs by entry points: a line such as

    [project.entry-points."plumbob.attacks"]
    own_attack = "their_package.own_attack:OwnAttack"

in their pyproject.toml, and what stands there is listed, fits the matrix and is run like Plumbob's own.
"""

from __future__ import annotations

import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Protocol, TypeVar

from plumbob.errors import BadInput, suggest
from plumbob.lazy_imports import loading


class Named(Protocol):
    """A thing, or a class of things, that has a name."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)
Kind = TypeVar("Kind")


class BrokenPackage(UserWarning):
    """Another package offers something that cannot be used."""


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Everything of one kind, by name, looked for when it is first asked for.

    >>> from types import SimpleNamespace
    >>> Registry("colour", lambda: [SimpleNamespace(name="red")]).named("read")
    Traceback (most recent call last):
    plumbob.errors.BadInput: no colour 'read'; did you mean 'red'?
    """

    def __init__(
        self,
        what: str,
        own: Callable[[], Iterable[Entry]],
        check: Callable[[Any], bool] = lambda _: True,
        *,
        in_order: bool = False,  # whether Plumbob's own stay in the order in which they are declared, not by name
    ) -> None:
        self.what, self._own, self._check, self._in_order = what, own, check, in_order

    @property
    def group(self) -> str:
        """Under which entry points other packages add to it."""
        return f"plumbob.{self.what}s"

    @cached_property
    def _filled(self) -> tuple[dict[str, Entry], dict[str, str]]:
        """What there is, and what other packages offer in vain, each with the sentence that says why."""
        with loading():
            own = list(self._own())
        own = own if self._in_order else sorted(own, key=lambda one: one.name)
        found: dict[str, Entry] = {}
        for entry in own:
            if found.setdefault(entry.name, entry) is not entry:
                raise BadInput(f"the {self.what} '{entry.name}' is offered twice, by Plumbob itself")
        holders = dict.fromkeys(found, "plumbob")
        refused: dict[str, str] = {}
        for point in self._foreign():
            package = _package(point)
            try:
                entry = self._loaded(point)
            except BadInput as error:
                refused[point.name] = str(error)
                continue
            if holders.setdefault(entry.name, package) == "plumbob":  # nobody replaces what audits rely on
                _warn(f"package '{package}' offers the {self.what} '{entry.name}', which is Plumbob's own and stays so")
            elif found.setdefault(entry.name, entry) is not entry:
                both = f"'{holders[entry.name]}' and '{package}'"
                refused[entry.name] = (
                    f"the {self.what} '{entry.name}' is offered twice, by {both}; uninstall one of them"
                )
        for sentence in refused.values():
            _warn(sentence)
        taken = {name: entry for name, entry in found.items() if name not in refused or holders[name] == "plumbob"}
        return taken, refused

    @property
    def _entries(self) -> dict[str, Entry]:
        return self._filled[0]

    def _foreign(self) -> list[EntryPoint]:
        return sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value))

    def _loaded(self, point: EntryPoint) -> Entry:
        package = _package(point)
        try:
            entry = point.load()
        except Exception as error:  # whatever a package of somebody else raises while it is imported
            raise BadInput(
                f"package '{package}' offers the {self.what} '{point.name}', which cannot be loaded "
                f"({type(error).__name__}: {error}); repair or uninstall the package"
            ) from error
        if not self._check(entry):
            raise BadInput(f"package '{package}': the entry point '{point.name}' of {self.group} names no {self.what}")
        return entry  # type: ignore[no-any-return]  # an entry point may be anything; `_check` has looked at it

    def named(self, name: str) -> Entry:
        """One of them, by its name or an alias; a wrong name is answered with the right one, a broken one with what is wrong."""
        entries, refused = self._filled
        name = self.canonical(name)
        if name not in entries:
            raise BadInput(refused.get(name) or f"no {self.what} '{name}'{suggest(name, list(entries))}")
        return entries[name]

    def canonical(self, name: str) -> str:
        """The name that an alias stands for, such as `equation_solving` for `ESA`; any other name as it is."""
        return next((one for one, entry in self._entries.items() if name in getattr(entry, "aliases", ())), name)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, BrokenPackage, stacklevel=4)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module


def class_of(base: type) -> Callable[[Any], bool]:
    """Whether an entry is a class below `base` that has a name and of which things can be made."""
    return lambda entry: (
        inspect.isclass(entry) and issubclass(entry, base) and not inspect.isabstract(entry) and hasattr(entry, "name")
    )


def make(registry: Registry[Any], name: str, /, **settings: object) -> Any:
    """One of a registry of classes, made with these settings; a wrong name or setting is answered with the right one."""
    kind = registry.named(name)
    for key in settings:
        if key not in (known := settable(kind)):
            raise BadInput(f"{registry.what} '{name}' has no setting '{key}'{suggest(key, known)}")
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{registry.what} '{name}': its settings cannot be used: {error}") from error


def settable(kind: Callable[..., object]) -> tuple[str, ...]:
    """The settings that a class takes, in the order of its constructor."""
    return _settable(kind)


@cache
def _settable(kind: Callable[..., object]) -> tuple[str, ...]:
    return tuple(name for name in inspect.signature(kind).parameters if name != "guards")  # which defences put there


def classes_in(package: str, base: type[Kind]) -> Iterator[type[Kind]]:
    """The concrete classes below `base` that the public modules of a package and of its public folders define."""
    home = import_module(package)
    for module in pkgutil.iter_modules(home.__path__, f"{package}."):
        if module.name.rpartition(".")[2].startswith("_"):
            continue
        if module.ispkg:
            yield from classes_in(module.name, base)
            continue
        loaded = import_module(module.name)
        if getattr(loaded.__spec__, "_initializing", False):
            raise ImportError(f"{module.name} asks for everything registered while it is itself being imported")
        for kind in vars(loaded).values():
            here = inspect.isclass(kind) and issubclass(kind, base) and kind.__module__ == module.name
            if here and not inspect.isabstract(kind) and "name" in vars(kind):
                yield kind


def exported(registry: Registry[Any], module: str, name: str) -> Any:
    """A registered class by the name of the class or by an alias that it declares, for `__getattr__` of a room."""
    if name[:1].isupper():  # a module's name must not fill the registry while that module is being imported
        for kind in registry.values():
            if name == kind.__name__ or name in kind.aliases:
                return kind
    raise AttributeError(f"module '{module}' has no attribute '{name}'")
