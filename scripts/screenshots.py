"""The screenshots of docs/: a model trained on MUTAG explains it, a browser looks at the report.

Needs what `make test-browser` needs.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def main() -> None:
    """Train, explain, look."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    command = shutil.which("cell-attention") or "cell-attention"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        model, report = f"{folder}/model", Path(folder) / "report.html"
        train = [command, "train", "MUTAG", "--lift", "symmetric", "--ratio", "0.6"]
        subprocess.run([*train, "--epochs", "200", "--out", model], check=True)  # noqa: S603
        explain = [command, "explain", model, "MUTAG", "--out", str(report)]
        subprocess.run(explain, check=True)  # noqa: S603
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(report.as_uri())
        page.click("td.name >> text='graph 7'")
        page.screenshot(path=PICTURES / "report.png")
        page.click("#theme")
        page.select_option("#view", "upper")
        page.locator("#edges button").nth(2).focus()
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=PICTURES / "report-dark.png")
        browser.close()


if __name__ == "__main__":
    main()
