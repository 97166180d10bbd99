"""The results page of a folder of outcomes: one table, the reasons, and figures next to the papers' numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plumbob.auditing.concluding.summarise import group
from plumbob.papers.claims import Claim, ClaimFigure, Outcome
from plumbob.report.canvas import Axis, nice_top
from plumbob.report.charts import Point, Series, line_chart

RESULTS_STYLE = """<style>
.chart{font:13px system-ui,sans-serif;background:#fff}text{fill:#1b2430}.tick,.axis{fill:#5b6472;font-size:11.5px}
.end{text-anchor:end}.middle{text-anchor:middle}.grid,.lead{stroke:#dfe3e8;fill:none}.zero{stroke:#5b6472;fill:none}
.s0{--t:#c03f0c}.base{--t:#6a7380}text.s0{fill:#c03f0c;font-weight:600}text.base{fill:#5b6472}
.line{fill:none;stroke:var(--t);stroke-width:2.2}.line.base{stroke-width:1.4}.band{fill:var(--t);opacity:.15}
.whisker{stroke:var(--t);stroke-width:1.2;fill:none}path.mark:not(.line){fill:var(--t);stroke:#fff}.tip{fill:var(--t)}
</style>"""
MARKS = {"reproduced": "reproduced", "contradicted": "**contradicted**", "open": "open"}


def write_pages(folder: Path, claims: Sequence[Claim], versions: dict[str, str]) -> list[Path]:
    """One Markdown page and its pictures for every paper and scale found in the folder."""
    found = [Outcome.read(path) for path in sorted(folder.glob("*-*-*-*.json"))]
    known = {claim.name: (i, claim) for i, claim in enumerate(claims)}
    found = sorted((o for o in found if o.claim in known), key=lambda o: known[o.claim][0])
    pages = []
    for (paper, scale, seed), outcomes in group(found, lambda o: (o.claim.split("/")[0], o.scale, o.seed)).items():
        page = folder / f"{paper}-{scale}-{seed}.md"
        page.write_text(_page(folder, paper, outcomes, known, versions), encoding="utf-8")
        pages.append(page)
    return pages


def _page(
    folder: Path, paper: str, outcomes: list[Outcome], known: dict[str, tuple[int, Claim]], versions: dict[str, str]
) -> str:
    first = outcomes[0]
    lines = [
        f"# {paper}: what was found",
        "",
        f"Made by `plumbob reproduce {paper} --scale {first.scale} --seed {first.seed} --out {folder.name}`; each row is",
        "the content of a file beside this page. " + ", ".join(f"{name} {v}" for name, v in versions.items()) + ".",
        "",
        "| claim | where | what it says | outcome | the paper | trials | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for o in outcomes:
        claim = known[o.claim][1]
        file = f"[{claim.id}]({paper}-{claim.id}-{o.scale}-{o.seed}.json)"
        cells = [file, claim.where, claim.summary, MARKS[o.status], o.expected, str(o.trials), f"{o.seconds:.1f}"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for o in outcomes:
        claim = known[o.claim][1]
        lines += [
            "",
            f"## {claim.id}: {claim.summary}",
            "",
            f"Outcome: {MARKS[o.status]}. {_sentence(o.why)}".rstrip(),
            "",
        ]
        lines += [f"- {name}: {_shown(value)}" for name, value in o.measured.items()]
        for figure in o.figures:
            title = re.sub(r"[^A-Za-z0-9]+", "-", figure.title).strip("-")
            name = f"{paper}-{claim.id}-{o.scale}-{o.seed}-{title}.svg"
            (folder / name).write_text(draw(figure), encoding="utf-8")
            lines += ["", f"![{claim.where}, {figure.title}: {figure.y} against the {figure.x}]({name})"]
        for sheet in sorted(folder.glob(f"{paper}-{claim.id}-{o.scale}-{o.seed}-*.png")):
            what = sheet.stem.split(f"-{o.seed}-", 1)[1]
            lines += [
                "",
                f"{what}: real pictures, and below each row the recovered ones.",
                "",
                f"![{what}]({sheet.name})",
            ]
    return "\n".join(lines) + "\n"


def draw(figure: ClaimFigure) -> str:
    """A figure as a picture of its own."""
    top = nice_top(max(y + m for c in figure.curves for y, m in zip(c.y, c.margin or [0.0] * len(c.y), strict=True)))
    inside = (
        float(np.median([y for curve in figure.curves for y in curve.y])) <= 1.0
    )  # errors; a few far above are cut off
    spread = [x for curve in figure.curves for x in curve.x]
    x = Axis(figure.x, min(spread), max(spread), percent=max(spread) <= 1.0)
    y = Axis(f"{figure.title}: {figure.y}", 0.0, min(top, 1.0) if inside else top, percent=False)
    series = []
    for i, curve in enumerate(figure.curves):
        margins = curve.margin or [0.0] * len(curve.y)
        points = tuple(
            Point(px, py, py - m, py + m, f"{curve.name}: {py:.4g}")
            for px, py, m in zip(curve.x, curve.y, margins, strict=True)
        )
        series.append(Series(curve.name, points, 0 if curve.margin else i, dashed=curve.margin is None))
    drawing = str(line_chart(series, x, y, f"{figure.title}: {figure.y}"))
    head, body = drawing.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{RESULTS_STYLE}{body}'


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    if isinstance(value, dict):
        return f"{len(value)}, each in the file"
    return str(value)
