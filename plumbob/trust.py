"""What may run here besides Plumbob's own code. A value that is passed along: whoever loads code of others asks it first."""

from __future__ import annotations

from dataclasses import dataclass

from plumbob.errors import BadInput


@dataclass(frozen=True)
class Trust:
    """Whether code of others may run: pickled models, whole PyTorch modules, networks of other packages.

    Only a caller can grant it, with `--trust-code` or in Python. No plan, recorded run or saved view can.

    >>> Trust(code=True).ask("network 'torch.nn:Linear' is code of another package")
    """

    code: bool = False

    def ask(self, what: str) -> None:
        """Refuse what would run code of others, unless that was allowed."""
        if not self.code:
            raise BadInput(f"{what}; pass --trust-code if you trust it")


NO_CODE = Trust()
