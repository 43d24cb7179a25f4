"""Models on files of molecules, all by their defaults: docs/molecules.md, into results/holdouts/.

    python scripts/holdouts.py --data FOLDER [--sets ESOL] [--models can forest] [--python PATH]

Every job holds out a tenth of the molecules to choose the epoch and a tenth to score once, by
scaffold or at random, with three seeds, in a process of its own with one thread. A finished job is
never done again. `--python` names another interpreter, for models that are installed elsewhere.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

from cell_attention._files import write_whole
from cell_attention.api.configuration import resolve_config
from cell_attention.api.experiment import weights_for
from cell_attention.api.reading import Reading, read_set
from cell_attention.data.splits.options import SplitOptions
from cell_attention.models.fitting import FoldTask
from cell_attention.models.network_fitter import warm_up
from cell_attention.models.registry import fitter
from cell_attention.models.settings import Settings, data_digest, versions
from cell_attention.progress import Progress
from cell_attention.training.metric_choice import choose_metric
from cell_attention.training.metrics import METRICS
from cell_attention.training.threads import settle_process

FOLDER = Path(__file__).parents[1] / "results" / "holdouts"
SETS = ("ESOL", "Lipophilicity", "BBBP", "SIDER", "HIV")
MODELS = ("can", "chemprop", "dmpnn", "boosting", "forest-rdkit", "forest")
SPLITS, SEEDS = ("scaffold", "random"), (0, 1, 2)


def job(path: Path, model: str, split: str, seed: int) -> dict[str, Any]:
    """Fit one model to one split; return its test metric and what it cost."""
    settle_process()
    options = SplitOptions(split, seed=seed)  # type: ignore[arg-type]
    network, training = resolve_config(model, path)
    reading = Reading("skip").for_network(path, model, network)
    found = read_set(path, network.max_polygon, reading=reading, split=options, progress=Progress())
    splits = options.holdout(found, 0.1, 0.1)
    metric, _ = choose_metric(None, found, splits.folds, ranked=True)
    weights = weights_for("auto", found, model, metric=metric, progress=Progress())
    settings = Settings(
        found.name, len(found.graphs), data_digest(found.graphs), splits.origin, splits.digest,
        network, training, weights, model=model, protocol="fair", metric=metric, task=found.kind,
    )  # fmt: skip
    made = fitter(model)
    made.require(settings, found.graphs)
    warm_up(settings, found.graphs)
    smiles = list(found.molecules.smiles) if found.molecules is not None else []
    task = FoldTask(
        settings, found.graphs, splits.folds[0], (seed,), "rerun", smiles=lambda: smiles
    )
    begun = time.process_time()
    record = made.fit_fold(task)
    what = settings.task_on(found.graphs)
    score = record.get("test", record["score"][-1])
    return {
        "metric": what.metric,
        "test": -score if METRICS[what.metric].lower else score,
        "epochs": len(record["score"]) if "test" in record else None,
        "seconds": round(time.process_time() - begun, 1),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "folds": splits.digest,
        "versions": versions(model),
    }


def main() -> None:
    """Do all jobs that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--splits", nargs="+", default=SPLITS)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--job", action="store_true", help="do one job here and print its record")
    given = parser.parse_args()
    for name, seed, split, model in product(given.sets, given.seeds, given.splits, given.models):
        path = given.data / f"{name}.csv"
        if given.job:
            print(json.dumps(job(path, model, split, seed)))
            return
        file = FOLDER / f"{name}-{split}-{model}.json"
        done = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        if str(seed) in done:
            continue
        words = ["--job", "--data", str(given.data), "--sets", name, "--models", model]
        words += ["--splits", split, "--seeds", str(seed)]
        ended = subprocess.run(  # noqa: S603 - this very file
            [given.python, __file__, *words], capture_output=True, text=True, check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        if ended.returncode:
            print(f"{name} {split} {model} {seed}: {ended.stderr.strip()[-300:]}", file=sys.stderr)
            continue
        record = json.loads(ended.stdout.splitlines()[-1])
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps({**done, str(seed): record}, indent=1) + "\n")
        print(f"{name} {split} {model} {seed}: {record['metric']} {record['test']:.4f}", flush=True)


if __name__ == "__main__":
    main()
