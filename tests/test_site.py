"""The documentation site: its navigation and its links. `make docs` builds it, strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generate import site

ROOT = Path(__file__).parents[1]
SECTIONS = ("Start", "Guides", "Concepts", "Attacks", "Defences", "Results", "Papers", "Reference")


def places(nav: Any) -> list[str]:
    """Every page and folder of a navigation."""
    if isinstance(nav, str):
        return [nav]
    return [place for part in (nav.values() if isinstance(nav, dict) else nav) for place in places(part)]


@pytest.fixture(scope="module")
def settings() -> Any:
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def test_the_sections_are_those_that_readers_know(settings: Any) -> None:
    assert [list(section) for section in settings["nav"]] == [[name] for name in SECTIONS]


def test_every_page_is_in_the_navigation(settings: Any) -> None:
    """So every page is two clicks away: its section, and itself."""
    told = set(places(settings["nav"]))
    folders = tuple(name for name in told if name.endswith("/"))
    there = [page.relative_to(ROOT / "docs").as_posix() for page in sorted((ROOT / "docs").rglob("*.md"))]
    assert [page for page in there if page not in told and not page.startswith(folders)] == []


def test_a_folder_stands_for_its_pages_with_its_own_page_first() -> None:
    nav = site.on_config(
        {"nav": [{"Results": "results/"}, {"None": "no_such_folder/"}], "docs_dir": str(ROOT / "docs")}
    )["nav"]
    assert nav[0]["Results"][0] == "results/README.md"
    assert len(nav[0]["Results"]) == len(list((ROOT / "docs" / "results").glob("*.md")))
    assert nav[1:] == []


@pytest.mark.parametrize(
    ("written", "page", "read"),
    [
        ("[how](../CONTRIBUTING.md#tests)", "threats.md", "[how](contributing.md#tests)"),
        ("[it](../../README.md#install)", "attacks/esa.md", "[it](../overview.md#install)"),
        ("[all](../results/)", "attacks/esa.md", "[all](../results/README.md)"),
        ("[plan](docs/plan.md#data)", "overview.md", "[plan](plan.md#data)"),
        ("![report](docs/images/report.png)", "overview.md", "![report](images/report.png)"),
        ("[code](../plumbob/app.py)", "plan.md", "code"),
        ("[plan](plan.md)", "threats.md", "[plan](plan.md)"),
        ("[out](https://example.org/a.md)", "threats.md", "[out](https://example.org/a.md)"),
    ],
)
def test_links_of_a_checkout_become_links_of_the_site(written: str, page: str, read: str) -> None:
    assert site.relinked(written, page, ROOT / "docs") == read


def test_nothing_comes_from_other_hosts(settings: Any) -> None:
    """The theme would fetch fonts and, for diagrams, a script."""
    assert settings["theme"]["font"] is False
    assert not {"extra_javascript", "extra_css", "repo_url"} & set(settings)
    assert [page for page in (ROOT / "docs").rglob("*.md") if "```mermaid" in page.read_text(encoding="utf-8")] == []
