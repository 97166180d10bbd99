"""Pages, lists, charts and matrix of attacks, defences and protocols, made from the classes and the committed findings.

    python -m docs.generate

writes them into this folder. Text that was written by hand is kept. `tests/test_generated_docs.py` fails where they are stale.
"""

from __future__ import annotations

from pathlib import Path

from docs.generate import paper_index
from docs.generate.charts import committed, drawings
from docs.generate.lists import HEADS, index, matrix_page
from docs.generate.pages import page, pictures, place, subjects, titled

DOCS = Path(__file__).parents[1]
CHARTS = ("attacks", "defences")  # what findings can be drawn of


def generated(docs: Path = DOCS) -> dict[Path, str]:
    """Every generated file with its content, by its place in the folder of the docs."""
    runs, old = committed(docs), {place(subject): _read(docs / place(subject)) for subject in subjects()}
    every = [titled(subject, old[place(subject)]) for subject in subjects()]
    files = {Path(kind) / "index.md": index(kind, every) for kind in HEADS}
    files |= paper_index.pages() | {Path("matrix.md"): matrix_page()}
    for subject in every:
        drawn = drawings(subject.kind, subject.name, runs) if subject.kind in CHARTS else []
        files |= {place(subject): page(subject, old[place(subject)], drawn), **pictures(subject, drawn)}
    return files


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def stale(docs: Path = DOCS) -> dict[Path, str | None]:
    """The files that are not as the code makes them, as they should be; None for a chart that nothing draws any more."""
    files = generated(docs)
    wrong: dict[Path, str | None] = {path: text for path, text in files.items() if _read(docs / path) != text}
    there = [path.relative_to(docs) for kind in CHARTS for path in (docs / "images" / kind).glob("*.svg")]
    return wrong | {path: None for path in there if path not in files}


def write(docs: Path = DOCS) -> list[str]:
    """Write what is stale; the names of the files."""
    changed = stale(docs)
    for path, text in changed.items():
        if text is None:
            (docs / path).unlink()
            continue
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text(text, encoding="utf-8")
    return sorted(path.as_posix() for path in changed)
