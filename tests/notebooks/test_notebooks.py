"""The notebooks run and store what they show: `make test-notebooks`, as they train for minutes."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
notebooks = importlib.import_module("notebooks")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def outputs(notebook: dict[str, Any]) -> list[list[str]]:
    """Of every cell of code, the kinds of what it stores."""
    return [
        [
            kind
            for output in cell["outputs"]
            for kind in (output.get("name"), *output.get("data", ()))
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_stores_what_it_shows(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert outputs(notebooks.executed(path)) == outputs(stored), "run make notebooks"
    assert path.stat().st_size < 100_000
    for cell in stored["cells"]:
        pictures = "image/svg+xml" in json.dumps(cell.get("outputs", ""))
        assert not pictures or cell["metadata"].get("alt"), "a picture needs a text beside it"
