"""Columns of the parties' files that took no part, in words: nothing is known of what would leak of them."""

from __future__ import annotations

from collections.abc import Sequence

from plumbob.auditing.concluding.summarise import group
from plumbob.federation import Dropped
from plumbob.report.phrases import count, short

NAMED = 6  # columns that a sentence names


def headline(dropped: Sequence[Dropped]) -> str:
    """One sentence, without its full stop; empty if every column took part.

    >>> headline([Dropped("shop", "note", "free text or a key"), Dropped("shop", "open", "constant")])
    "Not audited: 2 columns (shop: 'note', free text or a key; 'open', constant)"
    """
    if not dropped:
        return ""
    parties = group(dropped[:NAMED], lambda one: one.party)
    told = "; ".join(f"{_party(party)}{'; '.join(map(_column, columns))}" for party, columns in parties.items())
    more = f"; and {len(dropped) - NAMED:,} more in the report" if len(dropped) > NAMED else ""
    return f"Not audited: {count(len(dropped), 'column')} ({told}{more})"


def listed(dropped: Sequence[Dropped]) -> list[str]:
    """Every one of them."""
    return [f"{_party(one.party)}{_column(one)}" for one in dropped]


def _party(name: str) -> str:
    return f"{short(name)}: " if name else ""


def _column(one: Dropped) -> str:
    return f"'{short(one.column)}', {one.why}"
