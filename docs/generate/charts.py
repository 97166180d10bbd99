"""The charts on the pages of attacks and defences, drawn from the committed findings.

An attack's chart sets it beside every other attack of the same run; a defence's chart shows what the strongest attack
learns without and with it. Nothing is chosen by hand: every scene in which the name occurs is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from plumbob.attacks import ATTACKS, name_of
from plumbob.auditing.concluding.defence_frontier import Frontier, Option, frontiers, leak_of
from plumbob.auditing.concluding.summarise import Summary, group, summarise
from plumbob.auditing.running.finding import Finding, read_findings
from plumbob.defences import DEFENCES
from plumbob.kinds import Kind
from plumbob.report.canvas import Axis
from plumbob.report.charts import Bar, bar_chart
from plumbob.report.phrases import count, label, percent, with_margin
from plumbob.scoring.column_ceiling import CEILING
from plumbob.scoring.leak_levels import Level

MEASURED_STYLE = """<style>
.chart{font:13px system-ui,sans-serif;background:#fff}text{fill:#1b2430}.tick,.axis,.value{fill:#5b6472;font-size:11.5px}
.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#dfe3e8;fill:none}.zero,.err{stroke:#5b6472;fill:none}
rect.s0{fill:#c03f0c}rect.base{fill:#aab2bd}
</style>"""
LABELS_RIGHT = "share of rows whose class was right"
ERROR_REMOVED = "guessing's error removed, mean over columns"
RUNS = (
    "pages/scores",
    "pages/defended",
    "pages/encrypted",
    "pages/boosted",
    "pages/guarded",
    "pages/pictures",
    "pages/hidden",
    "pages/hidden_table",
    "pages/moving",
    "pages/without_coordinator",
    "pages/embeddings",
    "pages/people",
    "pages/labels_of_sums",
    "pages/label_guards",
    "pages/labels_at_the_cut",
    "pages/deeper",
    "pages/messages_alone",
    "pages/whole_at_the_cut",
    "pages/whole_scores",
    "pages/guarded_labels",
    "pages/guarded_columns",
    "pages/cut_forward",
    "pages/averaged_labels",
    "pages/deviating",
    "pages/any_at_the_cut",
    "pages/centres",
    "gradients",
    "cut_layer",
    "xgboost",
)
SETTINGS = {
    "blinding": "blinding=True",
    "masked_training": "masked=True",
}  # protections that are settings of a protocol
LEGENDS = {
    "attacks": "This attack (dark) beside the others on the same messages, with 95 % intervals.",
    "defences": "What the strongest adaptive attack learns without and with it (dark), with 95 % intervals.",
}


@dataclass(frozen=True)
class Drawing:
    """One chart: the picture, and one sentence that says what is to be seen."""

    svg: str
    words: str


class Run(tuple[Finding, ...]):
    """The findings of one committed audit; what all defences share is worked out once."""

    @cached_property
    def frontiers(self) -> list[Frontier]:
        return frontiers(self)


def attack_drawings(findings: Sequence[Finding], attack: str) -> Iterator[Drawing]:
    """One drawing for every protocol and threat of these findings in which the attack was run without a defence."""
    plain = [finding for finding in findings if finding.defence == "none" and finding.score.metric != CEILING]
    for (data, protocol, threat), parts in group(plain, lambda f: (f.data, f.protocol, f.threat)).items():
        by_attack = group(parts, lambda f: f.attack)
        mine = [title for title in by_attack if name_of(title) == attack]  # with whichever settings it was run
        if not mine:
            continue
        learnt = {name: leak_of(trials) for name, trials in by_attack.items()}
        order = sorted(learnt, key=lambda name: -learnt[name].mean)
        bars = [
            Bar(
                label(name),
                learnt[name].mean,
                max(0.0, learnt[name].mean - learnt[name].margin),
                min(1.0, learnt[name].mean + learnt[name].margin),
                percent(learnt[name].mean),
                f"{label(name)}: {with_margin(learnt[name].mean, learnt[name].margin)}",
                "s0" if name in mine else "base",
            )
            for name in order
        ]
        shown = next(title for title in order if title in mine)
        summary = next(s for s in summarise(parts) if s.setting.attack == shown)
        if not summary.claims:
            continue  # it found nothing to read there
        run = f", as {label(shown)}" if shown != attack else ""
        words = f"{_scene(data, protocol, threat, parts)}{run}: {_counted(summary)}."
        yield _drawing(bars, f"{label(attack)} beside other attacks", words)


def label_drawings(findings: Sequence[Finding], attack: str) -> Iterator[Drawing]:
    """One for an attack that reads labels alone: the share of rows whose class was right, beside what needs no message."""
    told = [f for f in findings if f.defence == "none" and f.score.label_accuracy is not None]
    for (data, protocol, threat), parts in group(told, lambda f: (f.data, f.protocol, f.threat)).items():
        by_attack = group(parts, lambda f: f.attack)
        if not any(name_of(title) == attack for title in by_attack):
            continue
        bars = []
        for title, trials in by_attack.items():
            mean, margin = _mean_and_margin([t.score.label_accuracy or 0.0 for t in trials])
            mine = name_of(title) == attack
            bars.append(_accuracy_bar(label(title), mean, margin, "s0" if mine else "base"))
        usual, margin = _mean_and_margin([t.score.label_baseline or 0.0 for t in parts])
        bars = sorted(bars, key=lambda bar: -bar.value)
        bars.append(_accuracy_bar("without messages", usual, margin, "base"))
        words = f"{_scene(data, protocol, threat, parts)}: labels guessed rightly."
        yield _drawing(bars, f"Labels by {label(attack)} and others", words, LABELS_RIGHT)


def _reads_labels_alone(attack: str) -> bool:
    return attack in ATTACKS and ATTACKS[attack].addresses == (Kind.LABEL,)


def _mean_and_margin(shares: Sequence[float]) -> tuple[float, float]:
    margin = 1.96 * float(np.std(shares, ddof=1)) / len(shares) ** 0.5 if len(shares) > 1 else 0.0
    return float(np.mean(shares)), margin


def _accuracy_bar(title: str, mean: float, margin: float, tone: str) -> Bar:
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    return Bar(title, mean, low, high, percent(mean), f"{title}: {with_margin(mean, margin)}", tone)


def defence_drawings(findings: Run, defence: str) -> Iterator[Drawing]:
    """One drawing for every protocol of these findings in which a defence of this name was tried beside none."""
    for frontier in findings.frontiers:
        tried = [option for option in frontier.options if re.match(rf"{defence}\b", option.defence)]
        if frontier.reference is None or not tried:
            continue
        options = [frontier.reference, *tried]
        bars = [_option_bar(option, option is not frontier.reference) for option in options]
        parts = [f for f in findings if (f.data, f.protocol) == (frontier.data, frontier.protocol)]
        words = f"{_scene(frontier.data, frontier.protocol, '', parts)}: {_price(frontier, tried)}."
        yield _drawing(bars, f"Without and with {label(defence)}", words)


def label_guard_drawings(findings: Sequence[Finding], defence: str) -> Iterator[Drawing]:
    """What a defence does about labels: the best guess without and with it, where passive parties guess them."""
    told = [f for f in findings if f.score.label_accuracy is not None and _reads_labels_alone(name_of(f.attack))]
    for (data, protocol, threat), parts in group(told, lambda f: (f.data, f.protocol, f.threat)).items():
        tried = group(parts, lambda f: f.defence)
        shown = [title for title in tried if title == "none" or re.match(rf"{defence}\b", title)]
        if "none" not in shown or len(shown) < 2:
            continue
        bars = []
        for title in sorted(shown, key=lambda one: one != "none"):
            by_attack = group(tried[title], lambda f: f.attack)
            rights = {a: [f.score.label_accuracy or 0.0 for f in found] for a, found in by_attack.items()}
            best = max(rights, key=lambda a: float(np.mean(rights[a])))
            mean, margin = _mean_and_margin(rights[best])
            words = "no defence" if title == "none" else label(title)
            bars.append(_bar(words, mean, margin, label(best), "base" if title == "none" else "s0"))
        usual, margin = _mean_and_margin([f.score.label_baseline or 0.0 for f in parts])
        bars.append(_accuracy_bar("without messages", usual, margin, "base"))
        words = f"{_scene(data, protocol, threat, parts)}: labels guessed rightly by the strongest attack."
        yield _drawing(bars, f"Labels without and with {label(defence)}", words, LABELS_RIGHT)


def setting_drawings(findings: Sequence[Finding], name: str) -> Iterator[Drawing]:
    """The same for a protection that is a setting of a protocol and not a defence of its own."""
    switch = SETTINGS[name]
    for title, after in group(findings, lambda f: f.protocol).items():
        before = [f for f in findings if f.protocol == title.replace(f", {switch}", "")]
        if switch not in title or not before:
            continue
        bars = []
        for words, parts, tone in (("without", before, "base"), (f"with {label(name)}", after, "s0")):
            learnt = {attack: leak_of(trials) for attack, trials in group(parts, lambda f: f.attack).items()}
            worst = max(learnt, key=lambda attack: learnt[attack].mean)
            bars.append(_bar(words, learnt[worst].mean, learnt[worst].margin, label(worst), tone))
        scene = _scene(before[0].data, before[0].protocol, before[0].threat, before)
        yield _drawing(bars, f"Without and with {label(name)}", f"{scene}: the strongest attack.")


def _option_bar(option: Option, highlighted: bool) -> Bar:
    leak = option.worst.leak
    title = label(option.defence) if highlighted else "no defence"
    return _bar(title, leak.mean, leak.margin, label(option.worst.leak_attack), "s0" if highlighted else "base")


def _bar(title: str, mean: float, margin: float, attack: str, tone: str) -> Bar:
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    return Bar(title, mean, low, high, percent(mean), f"{title}: {with_margin(mean, margin)} by {attack}", tone)


def _counted(summary: Summary) -> str:
    """How many columns ended at which level."""
    levels = group(summary.verdicts, lambda verdict: verdict.level)
    exact, leaking, ordered = (len(levels.get(level, ())) for level in (Level.EXACT, Level.LEAK, Level.ORDER))
    noun = "tile" if summary.pictures is not None else "column"
    parts = [f"{exact} exactly"] if exact else []
    parts += [f"{leaking} better than guessing"] if leaking else []
    parts += [f"{ordered} in order only"] if ordered else []
    return f"of {count(len(summary.verdicts), noun)}, {', '.join(parts) or 'none better than guessing'}"


def _price(frontier: Frontier, tried: Iterable[Option]) -> str:
    """Accuracy without and with, as measured."""
    if frontier.reference is None or not frontier.reference.trained:
        return "nothing is trained here, so the cost in accuracy is not measured"
    before = f"accuracy {percent(frontier.reference.accuracy.mean)} without a defence"
    after = [f"{percent(option.accuracy.mean)} with {label(option.defence)}" for option in tried]
    strongest = dict.fromkeys(label(option.worst.leak_attack) for option in (frontier.reference, *tried))
    return f"{', '.join([before, *after])}; strongest attack: {', then '.join(strongest)}"


def _scene(data: str, protocol: str, threat: str, findings: Sequence[Finding]) -> str:
    first = findings[0]
    trials = len({finding.trial for finding in findings})
    hidden = f"{first.unknown_columns} of {first.unknown_columns + first.known_columns} columns hidden"
    who = f", threat `{threat}`" if threat else ""
    return f"{data}, {protocol.replace('_', ' ')}{who}, {hidden}, {count(trials, 'trial')} of {first.score.rows:,} rows"


def _drawing(bars: Sequence[Bar], title: str, words: str, axis: str = ERROR_REMOVED) -> Drawing:
    head, body = str(bar_chart(bars, Axis(axis, 0.0, 1.0, percent=True), title)).split(">", 1)
    return Drawing(f'{head} xmlns="http://www.w3.org/2000/svg">{MEASURED_STYLE}{body}\n', words)


def committed(docs: Path) -> dict[str, Run]:
    """The findings that charts are drawn from, by run."""
    return {run: Run(read_findings(docs / "results" / run / "findings.jsonl")) for run in RUNS}


def drawings(kind: str, name: str, runs: Mapping[str, Run]) -> list[tuple[str, Drawing]]:
    """Every drawing of an attack or a defence, with the run that it is made from."""
    draw = attack_drawings if kind == "attacks" else setting_drawings if name in SETTINGS else defence_drawings
    if kind == "attacks" and _reads_labels_alone(name):
        draw = label_drawings
    found = [(run, drawing) for run, findings in runs.items() for drawing in draw(findings, name)]
    if kind == "defences" and name in DEFENCES and DEFENCES[name].point == "histograms":
        found += [(run, drawing) for run, findings in runs.items() for drawing in label_guard_drawings(findings, name)]
    return found
