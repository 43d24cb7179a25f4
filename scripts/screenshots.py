"""The screenshots of docs/: a model trained on MUTAG explains it, a browser looks at the report and
at the local page.

Needs what `make test-browser` needs.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

TYPED = (
    "O=[N+]([O-])c1ccc2ccc3cccc4ccc1c2c34 1-nitropyrene",
    "O=[N+]([O-])c1ccccc1 nitrobenzene",
    "c1ccc2ccccc2c1 naphthalene",
    "C1CC open ring",
)
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
        local_page(browser, command, model)
        browser.close()


def local_page(browser: Any, command: str, model: str) -> None:
    """Serve the model, predict some molecules, look."""
    words = [command, "serve", model, "--port", "0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        line = server.stdout.readline() if server.stdout else ""
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(line.split(" at ")[1].split(" ")[0])
        page.fill("#smiles", "\n".join(TYPED))
        page.keyboard.press("Control+Enter")
        count = len(TYPED)
        page.locator("#progress", has_text=f"{count} of {count} done").wait_for()
        page.screenshot(path=PICTURES / "serve.png")
    finally:
        server.kill()
        server.communicate()


if __name__ == "__main__":
    main()
