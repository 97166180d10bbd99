"""What MkDocs needs to know of this repository: pages of a folder, files beside docs/, links to folders and to source.

Links in the pages are written for a checkout, where `../CONTRIBUTING.md` and `attacks/` exist. The site has these elsewhere,
so links are rewritten; a link to source code, which the site does not have, becomes plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parents[2]
# The pages in the root of the repository, and their places in the site.
BESIDE = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
FRONT = ("index.md", "README.md")  # what a folder's own page may be called
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_config(config: Any) -> Any:
    """Every folder of the navigation as the list of its pages."""
    config["nav"] = _listed(config["nav"], Path(config["docs_dir"]))
    return config


def on_files(files: Any, config: Any) -> Any:
    """The pages that stand in the root of the repository."""
    from mkdocs.structure.files import File

    for name, place in BESIDE.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A page with links that lead somewhere in the site; code is left as it is."""
    place = page.file.src_uri
    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else relinked(part, place, config["docs_dir"]) for part in parts)


def relinked(text: str, place: str, docs: str | Path) -> str:
    """The text of a page at a place of the site.

    >>> relinked("[how](../CONTRIBUTING.md#add) [it](../../plumbob/app.py)", "attacks/esa.md", ROOT / "docs")
    '[how](../contributing.md#add) it'
    """
    return _LINK.sub(lambda link: _put_right(link, place, Path(docs)), text)


def _put_right(link: re.Match[str], place: str, docs: Path) -> str:
    mark, words, target = link.groups()
    path, _, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return link[0]
    written_in = "../" if place in BESIDE.values() else PurePosixPath(place).parent.as_posix()
    there = os.path.normpath(f"{written_in}/{path}").removeprefix("../docs/")
    there = BESIDE.get(there.removeprefix("../"), there) if there.startswith("../") else there
    if (docs / there).is_dir():
        front = next((name for name in FRONT if (docs / there / name).exists()), None)
        there = f"{there}/{front}" if front else "../"
    if there.startswith(".."):
        return words
    way = os.path.relpath(there, PurePosixPath(place).parent)
    return f"{mark}[{words}]({way}{'#' if anchor else ''}{anchor})"


def _listed(nav: Any, docs: Path) -> Any:
    if isinstance(nav, list):
        return [part for part in (_listed(part, docs) for part in nav) if part]
    if isinstance(nav, dict):
        told = {title: _listed(part, docs) for title, part in nav.items()}
        return {title: part for title, part in told.items() if part}
    return _pages(docs, nav) if nav.endswith("/") else nav


def _pages(docs: Path, folder: str) -> list[str]:
    """The folder's own page first, then the others by name; nothing where the folder does not exist."""
    names = sorted(path.name for path in (docs / folder).glob("*.md"))
    front = [name for name in FRONT if name in names]
    return [folder + name for name in (*front, *(name for name in names if name not in front))]
