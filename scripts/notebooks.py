"""Run the notebooks of docs/notebooks and store what they print and draw.

Numbers of runs, times and notes on standard error are left out: a notebook changes only if what it
says changes.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
DRAWN = ("image/svg+xml", "image/png")


def executed(path: Path) -> Any:
    """Run a notebook beside the tables that it reads; a cell that fails raises an error."""
    notebook = nbformat.read(path, as_version=4)
    found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # cell-attention
    with tempfile.TemporaryDirectory() as folder:
        for table in FOLDER.glob("*.csv"):
            shutil.copy(table, folder)
        client = NotebookClient(
            notebook, timeout=600, kernel_name="python3", coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )  # fmt: skip
        kernel = client.create_kernel_manager()
        kernel.transport = "ipc"  # files that only this user can open, and not ports
        kernel.connection_file = f"{folder}/kernel.json"
        client.execute(env={**os.environ, "PATH": found})
    return cleaned(notebook)


def cleaned(notebook: Any) -> Any:
    """Keep what a reader sees."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "name": "python3"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {key: cell.metadata[key] for key in ("alt",) if key in cell.metadata}
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = None
            if drawn := [kind for kind in DRAWN if kind in output.get("data", {})]:
                output.data = {drawn[0]: output.data[drawn[0]]}
            elif "text/html" in output.get("data", {}):
                del output.data["text/html"]
    return notebook


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)
