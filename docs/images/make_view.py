"""Make docs/images/view.png: the list of a few small audits, in chromium. Run from the root of the repository."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from plumbob.app import run_audit
from plumbob.view.server import Server

PLANS = {
    "first": {"protocols": ["logistic_regression", "decision_tree"]},
    "rounded": {"protocols": ["logistic_regression"], "defences": ["none", "rounding"]},
    "label-only": {"protocols": ["logistic_regression"], "defences": ["label_only"]},
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "my-audits"
        for name, plan in PLANS.items():
            attacks = ["equation_solving", "posterior_mean", "path_restriction"]
            run_audit(
                {"data": "breast", "trials": 1, "unknown": [0.2], "rows": 100, "attacks": attacks} | plan, root / name
            )
        with Server(root, 0) as server, sync_playwright() as playwright:
            server.folder = Path("my-audits")
            threading.Thread(target=server.serve_forever, daemon=True).start()
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 640})
            page.goto(server.url)
            page.screenshot(path=Path(__file__).with_name("view.png"))
            browser.close()
            server.shutdown()


if __name__ == "__main__":
    main()
