"""Did the model learn? Where it does no better than naming the most frequent class, leaks and prices mean little."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from plumbob.auditing.concluding.judging import label_gain, recovered
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.running.finding import Finding


def unlearnt(findings: Iterable[Finding]) -> list[str]:
    """One sentence for every protocol and defence whose answers are no better than the most frequent class."""
    told = [f for f in findings if f.trained and f.model_accuracy is not None and f.usual_class is not None]
    notes = []
    learnt = {}
    for (protocol, defence), trials in group(told, lambda f: (f.protocol, f.defence)).items():
        answered = [(f.model_accuracy or 0.0) / (1 - f.withheld) for f in trials if f.withheld < 1]
        if not answered:
            continue  # nothing was released: that is not the model's fault
        accuracy, usual = fmean(answered), fmean(f.usual_class or 0.0 for f in trials)
        learnt[protocol, defence] = accuracy > usual
        if accuracy > usual:
            continue
        place = protocol.replace("_", " ")
        rates = f"{100 * accuracy:.0f} % of the rows right, the most frequent class alone {100 * usual:.0f} %"
        if learnt.get((protocol, "none")):
            notes.append(
                f"{place} with {defence} gets {rates}: what it releases is of no use, so its protection is worth nothing"
            )
        else:
            least = (
                "" if any(map(_whole, trials)) else "its leak may be understated and "
            )  # a whole leak has no more to it
            notes.append(
                f"{place} ({'no defence' if defence == 'none' else defence}) gets {rates}: the model learnt nothing, so "
                f"{least}the price of a defence means nothing"
            )
    return notes


def _whole(finding: Finding) -> bool:
    """Whether a column, or the label, was recovered exactly."""
    return any(map(recovered, finding.score.columns)) or label_gain(finding) == 1
