"""The screenshots of docs/: a model trained on MUTAG explains it, a browser looks at the report; a
model of its molecules is served, a browser looks at the local page in light, dark and narrow.

Needs what `make test-browser` needs. `report` or `page` as an argument takes the pictures of one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

TYPED = (
    "O=[N+]([O-])c1ccc2ccc3cccc4ccc1c2c34 1-nitropyrene",
    "O=[N+]([O-])c1ccccc1 nitrobenzene",
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C caffeine",
    "C1CC open ring",
)
DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "pictures"
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 420, "height": 1400}


def main(names: list[str]) -> None:
    """Take the pictures of these names."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    command = shutil.which("cell-attention") or "cell-attention"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if "report" in names:
            report(browser, command, folder)
        if "page" in names:
            local_page(browser, command, f"{folder}/mutagenicity-model")
        browser.close()


def report(browser: Any, command: str, folder: str) -> None:
    """Train on MUTAG, explain, look."""
    model, path = f"{folder}/model", Path(folder) / "report.html"
    train = [command, "train", "MUTAG", "--design", "paper", "--lift", "symmetric"]
    subprocess.run([*train, "--ratio", "0.6", "--epochs", "200", "--out", model], check=True)  # noqa: S603
    subprocess.run([command, "explain", model, "MUTAG", "--out", str(path)], check=True)  # noqa: S603
    page = browser.new_page(viewport=WIDE)
    page.goto(path.as_uri())
    page.click("td.name >> text='graph 7'")
    page.screenshot(path=PICTURES / "report.png")
    page.click("#theme")
    page.select_option("#view", "upper")
    page.locator("#edges button").nth(2).focus()
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=PICTURES / "report-dark.png")


def local_page(browser: Any, command: str, model: str) -> None:
    """Train on molecules, serve the model, predict some, look."""
    table = str(DOCS / "notebooks" / "mutagenicity.csv")
    subprocess.run([command, "train", table, "--out", model], check=True)  # noqa: S603
    words = [command, "serve", model, "--port", "0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        line = server.stdout.readline() if server.stdout else ""
        for name, scheme, size in (
            ("serve", "light", WIDE),
            ("serve-dark", "dark", WIDE),
            ("serve-narrow", "light", NARROW),
        ):
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(line.split(" at ")[1].split(" ")[0])
            page.fill("#smiles", "\n".join(TYPED))
            page.keyboard.press("Control+Enter")
            count = len(TYPED)
            page.locator("#progress", has_text=f"{count} of {count} done").wait_for()
            page.screenshot(path=PICTURES / f"{name}.png")
            page.close()
    finally:
        server.kill()
        server.communicate()


if __name__ == "__main__":
    main(sys.argv[1:] or ["report", "page"])
