"""`cell-attention benchmark`: speed as ratios, with their targets."""

from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.data_dir import DataDir
from cell_attention.errors import SourceNotFoundError
from cell_attention.nn.config import NetworkConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cell_attention.benchmark.measure import Measurement


@dataclass(frozen=True)
class Benchmark:
    """Measure the speed of lifting and training against peers and targets, on one thread."""

    source: str = "NCI1"
    """The TU set to measure lifting on; the bundled MUTAG if it is not found."""
    presets: tuple[str, ...] = ("NCI1", "PROTEINS")
    """The paper's data sets whose networks are measured; those that are not found are left out."""
    molecules: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A .csv of SMILES to read, lift and predict; by default MoleculeNet/HIV.csv in the data
    folder, if it exists.
    """
    json: bool = False
    """Print one JSON object instead of one line per measurement."""
    data_dir: DataDir = None
    """Where to look for data first; then $CELL_ATTENTION_DATA, then the cache."""

    def run(self) -> None:
        """Measure, and print every line as soon as it is known."""
        from cell_attention.benchmark.lifting import lifting_benchmarks
        from cell_attention.benchmark.startup import startup_benchmark
        from cell_attention.data.sources import known_names, read_source
        from cell_attention.training.threads import settle_process

        settle_process()
        if self.molecules is not None and not self.molecules.is_file():
            raise SourceNotFoundError(f"--molecules {self.molecules}: there is no such file")
        for preset in self.presets:
            NetworkConfig.paper(preset)
        name = self.source if self.source in known_names(self.data_dir) else "MUTAG"
        if name != self.source:
            console.note(f"{self.source} was not found; lifting is measured on the bundled {name}")
        molecules = self.molecules or self._molecule_file("HIV.csv")
        if molecules is None:
            console.note("MoleculeNet/HIV.csv was not found; its measurements are left out")
        measured = []
        lifting = lifting_benchmarks(read_source(name, self.data_dir), molecules)
        peers = self._chemprop(), _serving()
        for line in chain([startup_benchmark()], lifting, self._networks(), *peers):
            measured.append(line)
            if not self.json:
                verdict = {True: "met", False: "MISSED", None: ""}[line.met]
                target = f"  [target {line.target}: {verdict}]" if line.target else ""
                print(
                    f"{line.name}: {line.value:,.4g} {line.unit}{target}  ({line.detail})",
                    flush=True,
                )
        if self.json:
            console.as_json({"measurements": [asdict(line) for line in measured]})

    def _networks(self) -> "Iterator[Measurement]":
        from cell_attention.benchmark.network import network_benchmarks
        from cell_attention.benchmark.ranks import rank_benchmarks
        from cell_attention.benchmark.training import training_benchmarks
        from cell_attention.data.sources import known_names, load_dataset

        for name in self.presets:
            if name not in known_names(self.data_dir):
                console.note(f"{name} was not found; its network is left out")
                continue
            complexes = load_dataset(name, data_dir=self.data_dir)
            place = None if self.data_dir is None else str(self.data_dir)
            yield from rank_benchmarks(name, complexes, place)
            yield from network_benchmarks(name, complexes, place)
            yield from training_benchmarks(name, complexes)

    def _chemprop(self) -> "Iterator[Measurement]":
        """Measure beside chemprop, if it is installed and there is a file of values."""
        from cell_attention.benchmark.chemprop import chemprop_benchmarks
        from cell_attention.errors import InputError
        from cell_attention.models.chemprop import require_chemprop

        values = self._molecule_file("ESOL.csv")
        if values is None:
            console.note("MoleculeNet/ESOL.csv was not found; chemprop is left out")
            return
        try:
            require_chemprop("chemprop")
        except InputError as error:
            console.note(f"chemprop is left out: {error}")
            return
        yield from chemprop_benchmarks(values)

    def _molecule_file(self, name: str) -> Path | None:
        from cell_attention.data.sources import search_places

        paths = (place / "MoleculeNet" / name for place in search_places(self.data_dir))
        return next((path for path in paths if path.is_file()), None)


def _serving() -> "Iterator[Measurement]":
    """Measure the server, if what it needs is installed."""
    from cell_attention.app.server import require_installed
    from cell_attention.benchmark.serving import serving_benchmarks
    from cell_attention.errors import InputError

    try:
        require_installed()
    except InputError as error:
        console.note(f"the server is left out: {error}")
        return
    yield from serving_benchmarks()
