"""The lists of attacks, defences and protocols, and the matrix of what applies where."""

from __future__ import annotations

from collections.abc import Sequence

from docs.generate.pages import Subject
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.matrix import Block, Row, Status, matrix
from plumbob.report.phrases import label, sentence_list

HEADS = {
    "attacks": "# Attacks\n\nWhat a curious party can do with what it sees, by what is read. "
    "[The matrix](../matrix.md) says which apply under which threat. In Python every attack is `attack.run(view, rng)`; "
    "[transcripts](../transcripts.md) shows how to get a view.",
    "defences": "# Defences\n\nWhat parties can change in a protocol, by what is protected. "
    "[How to choose one](../frontier.md) compares what they leave and what they cost.",
    "protocols": "# Protocols\n\nHow parties train and predict together, by what crosses between them.",
}
FAMILIES = {
    "scores": "Scores of a joint prediction",
    "gradients": "Gradients of split training",
    "embeddings": "Outputs of a cut layer",
    "sums": "Encrypted training and boosting",
    "labels": "Labels and splits",
    "auxiliary": "Learned from other people's rows",
    "xgboost": "Real frameworks",
    "": "Settings of protocols, and steps before training",
}
MATRIX = """# Who could learn what, and how

Every protocol and threat: which attacks apply, and why the others that work on the protocol do not. `plumbob list matrix` prints
the same. [The threats](threats.md) say who is curious and what it knows.

Not applicable is a party that gets no message which says anything of other parties' rows. The reason names the messages it lacks:
every protocol declares which of its messages go to whom, and a test runs each protocol and compares.
"""


def index(kind: str, subjects: Sequence[Subject]) -> str:
    """The list of one kind, by family."""
    parts = [HEADS[kind]]
    families = group((s for s in subjects if s.kind == kind), lambda s: dict(s.facts).get("family", ""))
    order = list(FAMILIES)
    for family in sorted(families, key=lambda name: order.index(name) if name in order else len(order)):
        rows = [f"| [{s.title}]({s.name}.md) | {s.summary} |" for s in families[family]]
        parts.append("\n".join([f"## {FAMILIES.get(family, family)}", "", "| | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def matrix_page() -> str:
    """Threats that allow the same attacks for the same reasons share a line."""
    parts = [MATRIX]
    for phase, blocks in group(matrix(), lambda block: block.phase).items():
        parts.append(f"\n## In {phase}\n")
        for block in blocks:
            parts.append(_table(block))
    return "".join(parts)


def _table(block: Block) -> str:
    title = f"\n### {label(block.protocol)}\n\n| threats | attacks that apply | do not, and why |\n|---|---|---|\n"
    return title + "".join(_line(rows) for rows in group(block.rows, _alike).values())


def _alike(row: Row) -> object:
    """What the rows of one line have in common."""
    silent = row.status is Status.NOT_APPLICABLE
    return row.lacks if silent else (row.fits, row.reasons)


def _line(rows: Sequence[Row]) -> str:
    threats = ", ".join(f"`{row.threat}`" for row in rows)
    if rows[0].status is Status.NOT_APPLICABLE:
        return f"| {threats} | {rows[0].status} | {rows[0].lacks} |\n"
    fits = ", ".join(f"[{label(name)}](attacks/{name}.md)" for name in rows[0].fits) or "none"
    reasons = [f"{sentence_list([label(name) for name in names])}: {why}" for why, names in rows[0].reasons]
    return f"| {threats} | {fits} | {'; '.join(reasons)} |\n"
