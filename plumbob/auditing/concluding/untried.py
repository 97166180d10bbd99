"""What was asked for and not tried, and why. Finding nothing there means nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Untried:
    """A defence, an attack or a situation that was not tried."""

    what: str
    why: str

    @property
    def words(self) -> str:
        """Both in one sentence, without its full stop.

        >>> Untried("rounding on decision_tree", "it changes nothing there").words
        'rounding on decision_tree was not tried: it changes nothing there'
        """
        return f"{self.what} was not tried: {self.why}"
