"""What matching rows tells each party about its own people, before any model is trained.

active     asks party by party: of each of the rows that are left, whether the party has this person
passive    gets the shared ids: of each of its rows, whether everybody has this person

Every answer is right. Whoever knew only the share of common people would name the more frequent answer for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Matched:
    """What one party learns: which of its people others have too, and how many people these have."""

    learner: str
    about: tuple[str, ...]  # who has the people, all of them together
    rows: int  # of the learner, of which the answer is learnt
    shared: int
    listed: int  # how many ids the others were seen to have, or to ask about
    ids_shown: bool = False  # whether ids of people that the learner does not have crossed too

    @property
    def guessed(self) -> float:
        """Share of the rows of which the more frequent answer is right: what is known without matching.

        >>> Matched("bank", ("shop",), rows=120, shared=90, listed=100).guessed
        0.75
        """
        return max(self.shared, self.rows - self.shared) / self.rows
