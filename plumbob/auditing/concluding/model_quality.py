"""Did the model learn? Where it does no better than naming the most frequent class, leaks and prices mean little."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from plumbob.auditing.concluding.judging import label_gain, recovered
from plumbob.auditing.concluding.summarise import attacked, group
from plumbob.auditing.running.finding import Finding


@dataclass(frozen=True)
class Useless:
    """A protocol and defence whose answers are no better than the most frequent class."""

    protocol: str
    defence: str
    accuracy: float
    usual: float
    by_defence: bool  # whether the model is of use without it
    whole: bool  # whether a column, or the label, was recovered exactly all the same

    @property
    def where(self) -> str:
        """The place with its figures."""
        place = self.protocol.replace("_", " ")
        defence = "no defence" if self.defence == "none" else self.defence
        return f"{place} ({defence}: {100 * self.accuracy:.0f} % against {100 * self.usual:.0f} %)"


def useless(findings: Iterable[Finding]) -> list[Useless]:
    """Every protocol and defence under which the model is no better than naming the most frequent class."""
    told = [f for f in attacked(findings) if f.trained and f.model_accuracy is not None and f.usual_class is not None]
    found = []
    learnt = {}
    for (protocol, defence), trials in group(told, lambda f: (f.protocol, f.defence)).items():
        answered = [(f.model_accuracy or 0.0) / (1 - f.withheld) for f in trials if f.withheld < 1]
        if not answered:
            continue  # nothing was released: that is not the model's fault
        accuracy, usual = fmean(answered), fmean(f.usual_class or 0.0 for f in trials)
        learnt[protocol, defence] = accuracy > usual
        if accuracy <= usual:
            found.append((protocol, defence, accuracy, usual, any(map(_whole, trials))))
    return [
        Useless(protocol, defence, accuracy, usual, learnt.get((protocol, "none"), False), whole)
        for protocol, defence, accuracy, usual, whole in found
    ]


def unlearnt(findings: Iterable[Finding]) -> str:
    """All of it as one warning, without its full stop; empty where every model is of use."""
    found = useless(findings)
    models, defended = ([one for one in found if one.by_defence == by] for by in (False, True))
    said = []
    if models:
        # A whole leak has no more to it.
        least = "" if all(one.whole for one in models) else "its leak may be understated and "
        places = ", ".join(one.where for one in models)
        said.append(
            f"the model learnt nothing, for it gets no more rows right than the most frequent class, so {least}the price of a "
            f"defence means nothing: {places}"
        )
    if defended:
        places = ", ".join(one.where for one in defended)
        what = "this defence leaves" if len(defended) == 1 else f"{len(defended)} defences leave"
        said.append(f"{what} a model of no use, so the protection is worth nothing: {places}")
    return "; ".join(said)


def _whole(finding: Finding) -> bool:
    """Whether a column, or the label, was recovered exactly."""
    return any(map(recovered, finding.score.columns)) or label_gain(finding) == 1
