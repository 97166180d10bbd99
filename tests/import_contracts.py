"""A contract for import-linter: helpers serve their own family only.

A module whose name starts with an underscore may be imported from the folder it stands in. The contracts that come with
import-linter want such modules listed one by one, so a new helper would slip through.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PrivateHelpers(Contract):
    """`rooms`: where helpers are private; `studied_by`: who may look inside; `ignored`: "importer -> imported", * for any."""

    rooms = fields.ListField(subfield=fields.StringField())
    studied_by = fields.ListField(subfield=fields.StringField(), required=False, default=[])
    ignored = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        broken = sorted(
            f"{importer} -> {helper}"
            for helper in graph.modules
            if (family := family_of(helper)) is not None and within(helper, self.rooms)
            for importer in graph.find_modules_that_directly_import(helper)
            if not within(importer, [family, *self.studied_by])
        )
        broken = [one for one in broken if not any(fnmatchcase(one, pattern) for pattern in self.ignored)]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for one in check.metadata["broken"]:
            output.print_error(f"- {one}: a helper of another family; move what both need, or give it a public name")


def family_of(module: str) -> str | None:
    """The folder that a helper serves; None for a public module.

    >>> family_of("plumbob.attacks.scores._box_equations"), family_of("plumbob.attacks._common.lattice_points")
    ('plumbob.attacks.scores', 'plumbob.attacks')
    """
    parts = module.split(".")
    private = [place for place, part in enumerate(parts) if part.startswith("_")]
    return ".".join(parts[: private[0]]) if private else None


def within(module: str, packages: list[str]) -> bool:
    """Whether a module is one of these packages or stands in one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)
