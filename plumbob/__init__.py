"""Plumbob: a privacy auditor for vertical federated learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbob.recorded.tap import tap as tap

__version__ = "0.1.0"
__all__ = ["__version__", "tap"]


def __getattr__(name: str) -> Any:
    """`plumbob.tap`, loaded when it is first asked for: the package by itself stays light."""
    if name != "tap":
        raise AttributeError(f"module 'plumbob' has no attribute '{name}'")
    from plumbob.recorded.tap import tap

    return tap
