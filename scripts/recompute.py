"""Recompute one fold of every cheap run in results/ and compare its scores bit for bit.

A fold of a network is recomputed for its first epochs only. Every epoch depends on those before it,
and losses are compared too, so a changed bit anywhere in a step would show. Another processor
rounds some matrix products differently: `--save FILE` writes what was computed here, to be compared
with what another version computes on the same machine.
"""

import json
import sys
import time
from pathlib import Path

from cell_attention import load_dataset
from cell_attention.evaluation.archive import run_folder
from cell_attention.evaluation.jobs import Job
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.models.fitting import FoldTask
from cell_attention.models.network_fitter import NetworkFitter
from cell_attention.models.registry import find_model, fitter
from cell_attention.models.settings import data_digest
from cell_attention.training.threads import settle_process

RESULTS = Path(__file__).parents[1] / "results"
EPOCHS = 3
"""How many epochs of a network are recomputed."""
SLOW = ("graphlet", "random-walk")
"""Kernels that take minutes per fold on the larger sets."""


def main(names: list[str]) -> int:
    """Print a line per run; the exit code says whether all that were recomputed are equal."""
    settle_process()
    different = 0
    save = Path(names.pop(names.index("--save") + 1)) if "--save" in names else None
    names = [name for name in names if name != "--save"]
    computed: dict[str, dict[str, list[float]]] = {}
    for file in sorted([*RESULTS.glob("*.json"), *RESULTS.glob("molecules/*.json")]):
        if names and file.stem not in names:
            continue
        with run_folder(file) as folder:
            for place in sorted(path.parent for path in folder.rglob("run.json")):
                label = file.stem + ("" if place == folder else f"/{place.relative_to(folder)}")
                verdict, computed[label] = compared(RunFolder(place))
                print(f"{label}: {verdict}", flush=True)
                different += verdict.startswith("DIFFERENT")
                if save is not None:
                    save.write_text(json.dumps(computed))
    return int(different > 0)


def compared(run: RunFolder) -> tuple[str, dict[str, list[float]]]:
    """Whether the first finished job of a run comes out with the same bits, and its curves."""
    settings, began = run.settings(), time.monotonic()
    stems = sorted(path.stem for path in run.folder.glob("*-0*.json"))
    if not stems:
        return "no finished job", {}
    record = json.loads(run.job(stems[0]).read_text(encoding="utf-8"))
    model = find_model(settings.model)
    if settings.model in SLOW and settings.graphs > 500:
        return "left out: minutes per fold", {}
    source = str(source_of(settings.source))
    complexes = load_dataset(source, settings.network.max_polygon, on_error="skip")
    if data_digest(complexes) != settings.data:
        return "DIFFERENT data", {}
    job = job_of(stems[0])
    task = FoldTask(
        job.settings(settings), complexes, run.folds()[job.fold],
        job.seed(settings.training.seed), job.stage, lambda: smiles_of(source),
    )  # fmt: skip
    if model.epochs:
        training = NetworkFitter(settings.model).training(task)
        for _ in range(EPOCHS):
            training.epoch()
        found = training.curves.record()
        equal = found["loss"] == record["loss"][:EPOCHS]
    else:
        found, equal = fitter(settings.model).fit_fold(task), True
    equal = equal and found["score"] == record["score"][: len(found["score"])]
    done, of, spent = len(found["score"]), len(record["score"]), time.monotonic() - began
    verdict = "equal" if equal else "DIFFERENT"
    curves = {name: found[name] for name in ("loss", "score") if name in found}
    return f"{verdict} ({stems[0]}, {done} of {of} scores, {spent:.0f} s)", curves


def job_of(stem: str) -> Job:
    """The job that a file's name stands for."""
    words = stem.split("-")
    if words[0] == "fold":
        return Job(int(words[1]))
    stage = "choice" if words[2] == "choice" else "rerun"
    return Job(int(words[1]), stage, int(words[3]))


def source_of(name: str) -> str | Path:
    """A TU name, or the file of molecules below the data folder."""
    from cell_attention.data.sources import search_places

    places = [place / "MoleculeNet" / name for place in search_places()]
    return next((path for path in places if path.is_file()), name)


def smiles_of(source: str) -> list[str]:
    """The molecules of a file, canonical."""
    from cell_attention.data.sources import read_source

    molecules = read_source(source, on_error="skip").molecules
    return [] if molecules is None else list(molecules.smiles)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
