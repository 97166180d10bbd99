"""An index of the five papers: for each section or equation where it lives here, how to run it, and which test holds it.

The rows stand in `docs/generate/papers/<paper>.yaml`, one a line: [where, what, lives, run, test]. `lives` names attacks,
defences, protocols and threats as they are registered, or a file; `run` is a claim, a part of a plan or a command.

`parts.yaml` holds what readers of the papers ask for and seldom find: [paper, part, run, claim, what came out]. Figures in
the last are taken from the claim's committed result: `{m[drive][withheld]:.0%}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from docs.generate.citations import cited
from plumbob.papers import Outcome

HERE = Path(__file__).parent / "papers"
RESULTS = Path(__file__).parents[1] / "results"
PAPERS = ("luo2021", "jin2021", "weng2022", "jiang2022", "ye2022")
FOLDERS = {"attack": "attacks", "defence": "defences", "protocol": "protocols"}
HEAD = """# Index of {paper}

{citation}. One line for each section, equation, algorithm and table: where it is in Plumbob, how to run it, and
the test that holds it. [The results](../results/{paper}-paper-0.md) say how the claims came out.

| where | what | in Plumbob | run it | test |
|---|---|---|---|---|
"""
FRONT = """# The papers, section by section

Plumbob stands on five papers. Their indexes say where each section, equation, algorithm and table is, how to run it, and
which test holds it. [The results](../results/) say which claims were reproduced.

{papers}

## Parts that are easily left out

| paper | part | run it | what came out |
|---|---|---|---|
{parts}"""


@dataclass(frozen=True)
class Row:
    """One place of a paper."""

    where: str
    what: str
    lives: tuple[str, ...]
    run: str
    tests: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        tests = ", ".join(f"[{name.partition('::')[2]}](../../{name.partition('::')[0]})" for name in self.tests)
        return self.where, self.what, ", ".join(map(link, self.lives)) or "–", commands(self.run), tests or "–"


def rows(paper: str) -> list[Row]:
    """The rows of a paper, in the order of the paper."""
    raw = yaml.safe_load((HERE / f"{paper}.yaml").read_text(encoding="utf-8"))
    return [Row(where, what, tuple(lives), run, tuple(tests)) for where, what, lives, run, tests in raw]


@dataclass(frozen=True)
class PaperPart:
    """A part of a paper with what came out of it."""

    paper: str
    what: str
    run: str
    claim: str
    template: str

    @property
    def came_out(self) -> str:
        """The template with the figures of the committed result; without a claim it has none."""
        if not self.claim:
            return self.template
        result = RESULTS / f"{self.claim.replace('/', '-')}-paper-0.json"
        return self.template.format(m=Outcome.read(result).measured)

    @property
    def cells(self) -> tuple[str, ...]:
        return self.paper, self.what, commands(self.run), self.came_out


def parts() -> list[PaperPart]:
    raw = yaml.safe_load((HERE / "parts.yaml").read_text(encoding="utf-8"))
    return [PaperPart(*row) for row in raw]


def commands(run: str) -> str:
    return ", ".join(f"`{part}`" for part in run.split(" | ")) if run else "–"


def link(place: str) -> str:
    """A page of a registered thing, or a file by its path.

    >>> link("attack equation_solving"), link("plumbob/crypto/psi.py")
    ('[equation_solving](../attacks/equation_solving.md)', '[psi.py](../../plumbob/crypto/psi.py)')
    """
    kind, _, name = place.partition(" ")
    if kind in FOLDERS:
        return f"[{name}](../{FOLDERS[kind]}/{name}.md)"
    return f"[`{name}`](../threats.md)" if kind == "threat" else f"[{Path(place).name}](../../{place})"


def pages() -> dict[Path, str]:
    """The index of each paper, and the page that lists them."""
    listed = "\n".join(f"- [{paper}]({paper}.md): {cited(paper)}" for paper in PAPERS)
    made = {Path("papers") / f"{paper}.md": page(paper, rows(paper)) for paper in PAPERS}
    lines = "".join(f"| {' | '.join(part.cells)} |\n" for part in parts())
    return made | {Path("papers") / "index.md": FRONT.format(papers=listed, parts=lines)}


def page(paper: str, lines: Sequence[Row]) -> str:
    head = HEAD.format(paper=paper, citation=cited(paper))
    return head + "".join(f"| {' | '.join(row.cells)} |\n" for row in lines)
