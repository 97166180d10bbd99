"""Make docs/images/report.png: the answer of the audit in docs/results/demo, in chromium. Run from the root of the repository."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from plumbob.auditing.planning.plan_file import read_plan
from plumbob.auditing.running.finding import read_findings
from plumbob.report.facts import Asked
from plumbob.report.page import About, render

DEMO = Path(__file__).parents[1] / "results" / "demo"
QUESTION = "What does a curious party learn about the columns of the others?"


def main() -> None:
    plan = read_plan(DEMO / "plan.yaml")
    asked = Asked(threats=tuple(threat.threat() for threat in plan.threats))
    about = About(title=f"Privacy audit: {plan.data.name}", question=QUESTION, asked=asked)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        page.write_text(render(read_findings(DEMO / "findings.jsonl"), about), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1180, "height": 1000}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=Path(__file__).with_name("report.png"))
        browser.close()


if __name__ == "__main__":
    main()
