"""`cell-attention doctor`: the installed versions, the devices, and the data sets found."""

import os
import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from cell_attention.cli import console
from cell_attention.cli.options.data_dir import DataDir

PACKAGES = (
    "cell-attention", "torch", "torch-geometric", "numpy", "scipy", "numba", "scikit-learn",
    "rdkit", "safetensors", "tyro", "rich", "matplotlib", "networkx", "toponetx", "grakel", "ray",
    "optuna",
)  # fmt: skip


@dataclass(frozen=True)
class Doctor:
    """Print versions, devices and the data sets that were found, for a bug report."""

    json: bool = False
    """Print one JSON object instead of tables."""
    data_dir: DataDir = None
    """Folder to search first for data; then $CELL_ATTENTION_DATA, then the cache."""

    def run(self) -> None:
        """Collect everything and print it."""
        import torch

        from cell_attention.data.sources import known_names, search_places
        from cell_attention.topology.pairs import incidence_lists

        kernel: Any = incidence_lists
        devices = {
            "cpu": f"{os.cpu_count()} cores, {torch.get_num_threads()} torch threads",
            "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
            "mps": "yes" if torch.backends.mps.is_available() else "none",
            "compiled kernels": kernel.stats.cache_path or "not kept",
        }
        versions = {"python": platform.python_version()} | {
            name: _version(name) for name in PACKAGES
        }
        found = {name: str(place) for name, place in sorted(known_names(self.data_dir).items())}
        places = [str(place) for place in search_places(self.data_dir)]
        if self.json:
            console.as_json(
                {"versions": versions, "devices": devices, "data": found, "data_dirs": places}
            )
            return
        console.table("Versions", ("package", "version"), list(versions.items()))
        console.table("Devices", ("device", "state"), list(devices.items()))
        console.table("Data sets found", ("name", "place"), list(found.items()))
        console.say(f"Looked in: {', '.join(places)}")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
