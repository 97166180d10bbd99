"""Where the default of a setting comes from: the paper prints it, its authors' code has it, or it is ours.

    sources = {"rate": printed("Section 4.3.1"), "batch": authors("GRNA/main-grna.py"), "steps": ours("no limit")}

A class that carries a paper's name declares one for each of its settings, so a reader knows what of it is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Origin = Literal["printed", "authors' code", "ours"]


@dataclass(frozen=True)
class Source:
    """Who chose a default, and where that stands; of ours, why it is so."""

    origin: Origin
    where: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.where}"


def printed(where: str) -> Source:
    """In the paper, at this place.

    >>> str(printed("Eq 16"))
    'printed: Eq 16'
    """
    return Source("printed", where)


def authors(where: str) -> Source:
    """In the code that the paper's authors published, in this file; the paper does not say."""
    return Source("authors' code", where)


def ours(why: str) -> Source:
    """Neither paper nor code says, or there is no such thing in them."""
    return Source("ours", why)
