"""Plumbob: a privacy auditor for vertical federated learning.

    import plumbob

    result = plumbob.audit(bank="bank.csv", shop="shop.csv", id="id", label="default")
    print(result)

What a person types first is here. Every name is loaded when it is first used, so the package itself imports in no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbob import attacks as attacks
    from plumbob import defences as defences
    from plumbob import protocols as protocols
    from plumbob.api import audit as audit
    from plumbob.app import Result as Result
    from plumbob.auditing.planning.plan import Plan as Plan
    from plumbob.errors import BadInput as BadInput
    from plumbob.federation import Federation as Federation
    from plumbob.recorded.tap import tap as tap
    from plumbob.threats import Threat as Threat
    from plumbob.threats import View as View
    from plumbob.transcript import Transcript as Transcript

__version__ = "0.1.0"
__all__ = [
    "BadInput",
    "Federation",
    "Plan",
    "Result",
    "Threat",
    "Transcript",
    "View",
    "__version__",
    "attacks",
    "audit",
    "defences",
    "protocols",
    "tap",
]

_HOMES = {
    "BadInput": "plumbob.errors",
    "Federation": "plumbob.federation",
    "Plan": "plumbob.auditing.planning.plan",
    "Result": "plumbob.app",
    "Threat": "plumbob.threats",
    "Transcript": "plumbob.transcript",
    "View": "plumbob.threats",
    "audit": "plumbob.api",
    "tap": "plumbob.recorded.tap",
}


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first asked for."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"plumbob.{name}")
    raise AttributeError(f"module 'plumbob' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
