"""Does pretraining without labels help? HIV's molecules, then BBBP by scaffold with few labels.

    python scripts/pretraining.py --data FOLDER [--labels 100 300 0] [--seeds 0 1 2 3 4] [--quick]

The network is pretrained once on the molecules of HIV.csv, whose targets are not read. Then, for
every seed, a tenth of BBBP.csv is held out to choose the epoch and a tenth to score once, by
scaffold; of the training molecules the first N of a random order are used (0: all), and N / 2 of
the validation molecules. Training starts from new weights, from the pretrained ones ("pretrained"),
or from these without changing them ("frozen"), everything else being equal. Some molecules of BBBP
are in HIV too: their structure was seen before, their labels were not.

Everything is resumed by the same command: the pretraining from its checkpoint, and a job whose line
is in the file is never done again. `--quick` tries it all in a minute, with a tiny network.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from cell_attention import Model, pretrain, train
from cell_attention._files import write_whole
from cell_attention.cli.console import ConsoleProgress
from cell_attention.data.dataset import GraphSet
from cell_attention.data.sources import lift_set, read_source
from cell_attention.data.splits.folds import Fold
from cell_attention.data.splits.options import SplitOptions
from cell_attention.inference.model_saving import weights_digest
from cell_attention.models.settings import versions
from cell_attention.training.config import EPOCHS, GRAPHS_SEEN

RESULTS = Path(__file__).parents[1] / "results"
STARTS = ("new", "pretrained", "frozen")
FROZEN = ("start", "layers")
TINY: dict[str, Any] = {"hidden": (4, 4), "heads": (2, 2)}


@dataclass(frozen=True)
class Job:
    """One training."""

    start: str
    labels: int
    seed: int


def done_jobs(path: Path) -> dict[Job, dict[str, Any]]:
    """Return the records in the file by job."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    records = [json.loads(line) for line in lines]
    return {Job(record["start"], record["labels"], record["seed"]): record for record in records}


def few(fold: Fold, labels: int, seed: int) -> Fold:
    """Keep this many training molecules and half as many to validate with; 0 keeps all."""
    if not labels:
        return fold
    order = random.Random(seed)
    train_rows, validation = list(fold.train), list(fold.validation)
    order.shuffle(train_rows)
    order.shuffle(validation)
    return Fold(tuple(train_rows[:labels]), tuple(validation[: labels // 2]), fold.test)


def fine_tune(
    graph_set: GraphSet, job: Job, origin: Model, network: dict[str, Any], epochs: int
) -> dict[str, Any]:
    """Do one job and return its record."""
    fold = SplitOptions("scaffold", seed=job.seed).holdout(graph_set, 0.1, 0.1).folds[0]
    chosen = few(fold, job.labels, job.seed)
    pretrained = job.start != "new"
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as place:
        split = Path(place) / "split.json"
        split.write_text(json.dumps(asdict(chosen)), encoding="utf-8")
        model = train(
            graph_set, network=network, split=SplitOptions(file=split), metric="roc_auc",
            training={"epochs": epochs or max(EPOCHS, GRAPHS_SEEN // len(chosen.train)),
                      "seed": job.seed},
            from_model=origin if pretrained else None,
            freeze=FROZEN if job.start == "frozen" else (),
        )  # fmt: skip
    reached, known = model.provenance["reached"], model.provenance
    return {
        **asdict(job),
        "test": reached["test"]["score"],
        "validation": reached["validation"]["score"],
        "train_graphs": len(chosen.train),
        "epochs": known["epochs"],
        "best_epoch": known["best_epoch"],
        "seconds": round(time.process_time() - begun, 1),
        "folds": known["folds"],
        "origin": known.get("origin", ""),
        "versions": versions("can"),
    }


def report(records: dict[Job, dict[str, Any]], labels: Sequence[int]) -> None:
    """Print the mean ROC-AUC of every start, and its paired difference from new weights."""
    for count in labels:
        for start in STARTS:
            found = {job.seed: r["test"] for job, r in records.items()
                     if (job.start, job.labels) == (start, count)}  # fmt: skip
            if not found:
                continue
            values = list(found.values())
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            line = f"{count or 'all'} labels, {start}: {statistics.mean(values):.3f} ± {spread:.3f}"
            gains = [
                score - records[Job("new", count, seed)]["test"]
                for seed, score in found.items()
                if start != "new" and Job("new", count, seed) in records
            ]
            if len(gains) > 1:
                error = statistics.stdev(gains) / len(gains) ** 0.5
                line += f"; gain {statistics.mean(gains):+.3f}, standard error {error:.3f}"
            print(f"{line} ({len(values)} seeds)")


def main() -> None:
    """Pretrain, do all jobs that are not done yet, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with HIV.csv and BBBP.csv")
    parser.add_argument("--molecules", default="HIV", help="name of the file to pretrain on")
    parser.add_argument("--epochs", type=int, default=20, help="epochs of the pretraining")
    parser.add_argument("--labels", nargs="+", type=int, default=(100, 300, 0))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2, 3, 4))
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=STARTS[:2])
    parser.add_argument("--model", type=Path, help="MODEL_DIR of the pretraining")
    parser.add_argument("--out", type=Path, help="file of the results, one line per job")
    parser.add_argument("--quick", action="store_true", help="tiny network, two epochs")
    given = parser.parse_args()
    kind = "pretraining-quick" if given.quick else "pretraining"
    out = given.out or RESULTS / f"{kind}.jsonl"
    network = TINY if given.quick else {}
    origin = pretrain(
        given.data / f"{given.molecules}.csv", network=network, on_error="skip",
        training={"epochs": 2 if given.quick else given.epochs},
        folder=given.model or out.with_name(f"{kind}-model"), progress=ConsoleProgress(),
    )  # fmt: skip
    print(f"pretrained on {given.molecules}: {json.dumps(origin.provenance['masked'])}")
    graph_set = lift_set(read_source(given.data / "BBBP.csv", on_error="skip"))
    records, digest = done_jobs(out), weights_digest(origin)
    for job, record in records.items():
        if record["origin"] not in ("", digest):
            raise SystemExit(f"{out}: {job} started from another pretraining; name another --out")
    for seed, labels, start in product(given.seeds, given.labels, given.starts):
        job = Job(start, labels, seed)
        if job not in records:
            epochs = 2 if given.quick else 0
            records[job] = fine_tune(graph_set, job, origin, network, epochs)
            out.parent.mkdir(parents=True, exist_ok=True)
            write_whole(out, "".join(json.dumps(each) + "\n" for each in records.values()))
            print(f"{labels or 'all'} labels, seed {seed}, {start}: {records[job]['test']:.4f}",
                  flush=True)  # fmt: skip
    report(records, given.labels)


if __name__ == "__main__":
    main()
