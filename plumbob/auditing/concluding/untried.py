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


@dataclass(frozen=True)
class Inapplicable(Untried):
    """An attack that reads what nobody of the plan sends."""

    @property
    def words(self) -> str:
        """
        >>> Inapplicable("reverse_sum on secure_boost", "it reads magic numbers, and nothing is hidden here").words
        'reverse_sum on secure_boost is not applicable: it reads magic numbers, and nothing is hidden here'
        """
        return f"{self.what} is not applicable: {self.why}"


@dataclass(frozen=True)
class Gap:
    """A situation that a plan asks for and in which no attack was run."""

    protocol: str
    threat: str
    defence: str
    why: str
    meaningful: bool = True  # False where the curious get nothing to learn from, or a stronger threat was tested
    covered_by: str = ""  # the threat that was tested and whose attacker sees all of this and knows more

    @property
    def what(self) -> str:
        return f"{self.protocol}, threat {self.threat}, defence {self.defence}"

    @property
    def state(self) -> str:
        """What became of it: not tested, not run because another covers it, or not applicable."""
        if self.meaningful:
            return "not tested"
        return "not run" if self.covered_by else "not applicable"

    @property
    def words(self) -> str:
        """
        >>> Gap("neural_network", "active-black-box", "none", "needs the model").words
        'neural_network, threat active-black-box, defence none: not tested, needs the model'
        """
        return f"{self.what}: {self.state}, {self.why}"
