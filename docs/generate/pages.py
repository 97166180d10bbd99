"""One page: a head and an end that are generated, and between them text that is written by hand and kept.

The first line, the title, is kept too. A page that does not exist yet is made whole, with no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from docs.generate import facts
from docs.generate.charts import LEGENDS, Drawing
from docs.generate.citations import cited
from docs.generate.floor_table import floor_table
from plumbob.attacks import ATTACKS
from plumbob.defences import DEFENCES
from plumbob.protocols import PROTOCOLS
from plumbob.report.phrases import label

HEAD, TAIL, END = "<!--generated-->", "<!--generated:use-->", "<!--/generated-->"


@dataclass(frozen=True)
class Subject:
    """What a page is about, as the class says it."""

    kind: str  # the folder: attacks, defences, protocols
    name: str
    summary: str
    facts: facts.Facts
    title: str = ""
    plan: str = ""
    code: str = ""
    settings: Sequence[tuple[str, ...]] = ()  # name, type, default, and of some where that comes from
    presets: Sequence[tuple[str, ...]] = ()


def subjects() -> list[Subject]:
    """Every page that is generated, in the order of the lists."""
    plain = {name: kind for name, kind in facts.own(DEFENCES).items() if name != "none"}
    return [
        *(
            _subject("attacks", kind, facts.attack_facts(kind), facts.attack_plan(kind))
            for kind in facts.own(ATTACKS).values()
        ),
        *(_subject("defences", kind, facts.defence_facts(kind), facts.defence_plan(kind)) for kind in plain.values()),
        *(
            _subject("protocols", k, facts.protocol_facts(k), facts.protocol_plan(k))
            for k in facts.own(PROTOCOLS).values()
        ),
        *BESIDE,
    ]


# Protections that are no class of their own: a setting of a protocol, or a step before it.
BESIDE = (
    Subject(
        "defences",
        "masked_training",
        "Encrypted logistic regression without a coordinator: nobody opens a product of a row's values.",
        [
            ("setting of", f"{facts.links('protocols', ['encrypted_logistic_regression'])}: `masked: true`"),
            ("paper", cited("plumbob")),
        ],
    ),
    Subject(
        "defences",
        "precheck",
        "Warnings before training: columns that predictions will give away, found in the clear or on secret shares.",
        [
            ("runs in", "`plumbob precheck PLAN.yaml`, and every audit that names `parties`"),
            ("paper", cited("luo2021")),
        ],
    ),
    Subject(
        "defences",
        "psi",
        "Private set intersection: the parties find their shared rows without showing the others.",
        [("runs in", "every audit of several files (`align: psi`)"), ("paper", cited("jiang2022"))],
    ),
)


def _subject(folder: str, kind: type, found: facts.Facts, plan: str) -> Subject:
    short = facts.aliases(kind)
    code = f"plumbob.{folder}.{kind.__name__}()"
    name, summary = kind.name, kind.summary  # type: ignore[attr-defined]  # classes of the registries have both
    title = f"{label(name).capitalize()}{f' ({short[0]})' if short else ''}"
    settings, presets = tuple(facts.settings(kind)), tuple(facts.presets(kind))
    return Subject(folder, name, facts.sentence(summary), found, title, plan, code, settings, presets)


def page(subject: Subject, old: str, drawn: Sequence[tuple[str, Drawing]]) -> str:
    """The page anew, with the text of the old one."""
    parts = [f"# {subject.title}", head(subject), kept(old), tail(subject, drawn)]
    return "\n\n".join(part for part in parts if part) + "\n"


def titled(subject: Subject, old: str) -> Subject:
    """The subject under the title that its page has, if it has one."""
    title = old.partition("\n")[0].removeprefix("# ").strip()
    return replace(subject, title=title or subject.title or label(subject.name).capitalize())


def kept(old: str) -> str:
    """The hand-written text of a page."""
    return old.partition(END)[2].partition(TAIL)[0].strip()


def head(subject: Subject) -> str:
    rows = [f"- {what}: {words}" for what, words in subject.facts]
    return "\n".join([HEAD, "", subject.summary, "", *rows, "", END])


def tail(subject: Subject, drawn: Sequence[tuple[str, Drawing]]) -> str:
    parts: list[str] = []
    if subject.plan:
        parts += [f"## Run it\n\n```yaml\n{subject.plan}```", f"In Python: `{subject.code}`"]
    if subject.settings:
        heads = ("setting", "type", "default", "from")[: len(subject.settings[0])]
        parts += ["## Settings", _table(heads, subject.settings)]
    if subject.presets:
        words = "Presets are settings with a name; a plan asks for one by `preset`."
        parts += [words, _table(("preset", "settings"), subject.presets)]
    if drawn:
        parts.append(f"## Measured\n\n{LEGENDS[subject.kind]}")
        for i, (run, drawing) in enumerate(drawn, 1):
            parts.append(f"![{label(subject.name)}](../images/{subject.kind}/{subject.name}-{i}.svg)")
            parts.append(f"{drawing.words} ([findings](../results/{run}/findings.jsonl))")
    if subject.name == "complete_rows" and (table := floor_table()):
        parts.append(table)
    return "\n\n".join([TAIL, *parts, END]) if parts else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(cells)} |" for cells in rows)]
    return "\n".join(lines)


def place(subject: Subject) -> Path:
    return Path(subject.kind) / f"{subject.name}.md"


def pictures(subject: Subject, drawn: Sequence[tuple[str, Drawing]]) -> dict[Path, str]:
    """The charts of a page, by where they go."""
    folder = Path("images") / subject.kind
    return {folder / f"{subject.name}-{i}.svg": drawing.svg for i, (_, drawing) in enumerate(drawn, 1)}
