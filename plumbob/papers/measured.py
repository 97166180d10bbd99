"""The charts on the pages of attacks and defences, drawn from findings that are committed beside them.

An attack's chart sets it beside every other attack of the same run; a defence's chart shows what the strongest attack
learns without and with it. Nothing is chosen by hand: every scene in which the name occurs is drawn.
`python -m plumbob.papers.measured docs` writes them into the pages anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbob.attacks import attacks
from plumbob.auditing.finding import Finding, read_findings
from plumbob.auditing.frontier import Frontier, Option, frontiers, leak_of
from plumbob.auditing.judge import Summary, group, summarise
from plumbob.defences import DEFENCES
from plumbob.report.answer import count, label, percent, with_margin
from plumbob.report.charts import Axis, Bar, bar_chart

MEASURED_STYLE = """<style>
.chart{font:13px system-ui,sans-serif;background:#fff}text{fill:#1b2430}.tick,.axis,.value{fill:#5b6472;font-size:11.5px}
.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#dfe3e8;fill:none}.zero,.err{stroke:#5b6472;fill:none}
rect.s0{fill:#c03f0c}rect.base{fill:#aab2bd}
</style>"""
ERROR_REMOVED = "guessing's error removed, mean over columns"
RUNS = (
    "pages/scores",
    "pages/defended",
    "pages/encrypted",
    "pages/boosted",
    "pages/pictures",
    "pages/hidden",
    "pages/hidden_table",
    "pages/moving",
    "pages/embeddings",
    "gradients",
    "cut_layer",
    "xgboost",
)
SETTINGS = {
    "blinding": "blinding=True",
    "masked_training": "masked=True",
}  # protections that are settings of a protocol
MEASURED_BEGIN, MEASURED_END = "<!-- measured: written by plumbob.papers.measured -->", "<!-- /measured -->"


@dataclass(frozen=True)
class Drawing:
    """One chart: the picture, and one sentence that says what is to be seen."""

    svg: str
    words: str


def attack_drawings(findings: Sequence[Finding], attack: str) -> Iterator[Drawing]:
    """One drawing for every protocol and threat of these findings in which the attack was run without a defence."""
    plain = [finding for finding in findings if finding.defence == "none"]
    for (data, protocol, threat), parts in group(plain, lambda f: (f.data, f.protocol, f.threat)).items():
        by_attack = group(parts, lambda f: f.attack)
        if attack not in by_attack:
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
                "s0" if name == attack else "base",
            )
            for name in order
        ]
        summary = next(s for s in summarise(parts) if s.setting.attack == attack)
        if not summary.claims:
            continue  # it found nothing to read there
        words = f"{_scene(data, protocol, threat, parts)}: {_counted(summary)}."
        yield Drawing(_picture(bars, f"{label(attack)} beside other attacks"), words)


def defence_drawings(findings: Sequence[Finding], defence: str) -> Iterator[Drawing]:
    """One drawing for every protocol of these findings in which a defence of this name was tried beside none."""
    for frontier in frontiers(findings):
        tried = [option for option in frontier.options if re.match(rf"{defence}\b", option.defence)]
        if frontier.reference is None or not tried:
            continue
        options = [frontier.reference, *tried]
        bars = [_option_bar(option, option is not frontier.reference) for option in options]
        parts = [f for f in findings if (f.data, f.protocol) == (frontier.data, frontier.protocol)]
        words = f"{_scene(frontier.data, frontier.protocol, '', parts)}: {_price(frontier, tried)}."
        yield Drawing(_picture(bars, f"Without and with {label(defence)}"), words)


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
        yield Drawing(_picture(bars, f"Without and with {label(name)}"), f"{scene}: the strongest attack.")


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
    exact, leaking, ordered = (len(levels.get(level, ())) for level in ("exact", "leak", "order"))
    noun = "tile" if summary.pictures is not None else "column"
    of = count(len(summary.verdicts), noun)
    if noun == "column" and len(summary.verdicts) > summary.unknown_columns:
        of += " hidden in one trial or another,"
    parts = [f"{exact} recovered exactly"] if exact else []
    parts += [f"{leaking} better than any guess"] if leaking else []
    parts += [f"{ordered} in the order of their rows"] if ordered else []
    return f"of {of} {', '.join(parts)}" if parts else f"of {of} none is learnt beyond chance"


def _price(frontier: Frontier, tried: Iterable[Option]) -> str:
    """Accuracy without and with, as measured."""
    if frontier.reference is None or not frontier.reference.trained:
        return (
            "what the strongest attack learns without and with it; nothing is trained there, so its price is not seen"
        )
    before = f"{percent(frontier.reference.accuracy.mean)} without a defence ({_by(frontier.reference)})"
    after = [f"{percent(option.accuracy.mean)} with {label(option.defence)} ({_by(option)})" for option in tried]
    return f"accuracy {', '.join([before, *after])}"


def _by(option: Option) -> str:
    return f"strongest attack: {label(option.worst.leak_attack)}"


def _scene(data: str, protocol: str, threat: str, findings: Sequence[Finding]) -> str:
    first = findings[0]
    trials = len({finding.trial for finding in findings})
    hidden = f"{first.unknown_columns} of {first.unknown_columns + first.known_columns} columns hidden"
    who = f", curious: {threat}" if threat else ""
    return f"{data}, {protocol.replace('_', ' ')}{who}; {hidden}, {count(trials, 'trial')} of {first.score.rows:,} rows"


def _picture(bars: Sequence[Bar], title: str) -> str:
    head, body = str(bar_chart(bars, Axis(ERROR_REMOVED, 0.0, 1.0, percent=True), title)).split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{MEASURED_STYLE}{body}\n'


def write(docs: Path) -> list[Path]:
    """Draw every chart anew and put it into its page, before the reference; the pages written."""
    runs = {run: read_findings(docs / "results" / run / "findings.jsonl") for run in RUNS}
    protections = [name for name in DEFENCES if name != "none"] + list(SETTINGS)
    written = []
    for kind, names in (("attacks", attacks()), ("defences", protections)):
        for name in names:
            drawn = [(run, drawing) for run, findings in runs.items() for drawing in _drawings(kind, findings, name)]
            if drawn:
                written.append(_put(docs, kind, name, drawn))
    return written


def _drawings(kind: str, findings: Sequence[Finding], name: str) -> Iterator[Drawing]:
    if kind == "attacks":
        return attack_drawings(findings, name)
    return setting_drawings(findings, name) if name in SETTINGS else defence_drawings(findings, name)


def _put(docs: Path, kind: str, name: str, drawn: Sequence[tuple[str, Drawing]]) -> Path:
    """The block between the marks: pictures, and below each what is to be seen and where it comes from."""
    lines = [MEASURED_BEGIN, "## Measured", "", f"{_legend(kind)} Lines are 95 % intervals over trials."]
    for old in (docs / "images" / kind).glob(f"{name}-[0-9]*.svg"):
        old.unlink()
    for i, (run, drawing) in enumerate(drawn, 1):
        picture = docs / "images" / kind / f"{name}-{i}.svg"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_text(drawing.svg, encoding="utf-8")
        lines += ["", f"![{drawing.words}](../images/{kind}/{picture.name})", ""]
        lines += [f"{drawing.words} ([findings](../results/{run}/findings.jsonl))"]
    page = docs / kind / f"{name}.md"
    text = re.sub(
        rf"{re.escape(MEASURED_BEGIN)}.*?{re.escape(MEASURED_END)}\n\n",
        "",
        page.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    before, reference, after = text.rpartition("## Reference")
    page.write_text(before + "\n".join([*lines, "", MEASURED_END, "", ""]) + reference + after, encoding="utf-8")
    return page


def _legend(kind: str) -> str:
    if kind == "attacks":
        return "This attack (dark) beside all others that were run on the same messages."
    return "What the strongest attack that knows of the defence learns, without it and with it (dark)."


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
