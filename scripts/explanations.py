"""How faithful explanations are: the numbers of docs/explain.md, into results/explanations/.

MUTAG: a network per fold, its epoch chosen by an inner validation part, explains the graphs that
were held out. Planted rings: a network that tells the classes, and how often the polygon that it
is said to rest on is the one that decides.
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cell_attention import CellAttentionNetwork, NetworkConfig, TrainingConfig, load_dataset
from cell_attention._files import write_whole
from cell_attention.data.splits.folds import Fold, nested, stratified_folds
from cell_attention.explanation import Explanation, explain
from cell_attention.explanation.faithfulness import Compared, Faithfulness, faithfulness
from cell_attention.explanation.planted import planted_rings
from cell_attention.models.network_fitter import start_training
from cell_attention.topology.complex import CellComplex
from cell_attention.training.tasks import task_of
from cell_attention.training.threads import settle_process

FOLDER = Path(__file__).parents[1] / "results" / "explanations"
PAPER = NetworkConfig.paper("MUTAG")
EDGES = replace(TrainingConfig.paper("MUTAG"), epochs=300)
NETWORKS = {
    "ranks": (NetworkConfig(), TrainingConfig(patience=200)),
    "paper": (PAPER, EDGES),
    "symmetric": (replace(PAPER, lift="symmetric"), EDGES),
}
"""The default network; the paper's; and the paper's with a lift that knows no order of atoms."""
SMALL = NetworkConfig.edges(lift_heads=8, hidden=(16, 16), heads=(2, 2), head_hidden=32)
LONG = TrainingConfig.plain(batch_size=32, learning_rate=5e-3, epochs=60, schedule="cosine")
PLANTED = {
    "every rank": (
        NetworkConfig(hidden=(8, 8), heads=(2, 2)),
        TrainingConfig(epochs=15, patience=200),
    ),
    "no pooling": (replace(SMALL, pooling="none"), LONG),
    "pooling": (replace(SMALL, ratio=0.75), LONG),
}


def trained(
    complexes: CellComplex, fold: Fold, network: NetworkConfig, training: TrainingConfig
) -> CellAttentionNetwork:
    """At the epoch that is best on the fold's validation part."""
    task = task_of(complexes, torch.tensor(fold.train))
    made = start_training(
        complexes,
        fold.train,
        fold.validation,
        task=task,
        network=network,
        training=training,
        seed=(0,),
        keep_best=True,
    )
    made.complete(None, "", seconds=0.0, report=lambda numbers: None)
    made.take_best()
    found = made.result.eval()
    if not isinstance(found, CellAttentionNetwork):
        raise TypeError(f"a CellAttentionNetwork is expected, got {type(found).__name__}")
    return found


def attention_received(one: Explanation) -> Tensor:
    """Plain attention: what every edge is given by those that hear it, over layers and heads."""
    found = torch.zeros_like(one.edges)
    for layer in one.layers:
        for pairs, weights in ((layer.lower_pairs, layer.lower), (layer.upper_pairs, layer.upper)):
            found = found.index_add(0, pairs[1], weights.detach().mean(1).to(found))
    return found


def mutag(name: str) -> dict[str, Any]:
    """Over the held-out graphs of ten folds."""
    complexes = load_dataset("MUTAG")
    if complexes.targets is None:
        raise TypeError("MUTAG has targets")
    parts, plain, right = [], [], 0
    splits = nested(stratified_folds(complexes.targets), complexes.targets)
    for number, fold in enumerate(splits.folds):
        network = trained(complexes, fold, *NETWORKS[name])
        held = complexes[list(fold.test)]
        found = explain(network, held)
        outputs = torch.tensor([one.output for one in found])
        right += int((outputs == held.targets).sum())
        parts += [one.faithfulness for one in found if one.faithfulness is not None]
        ranking = torch.cat([attention_received(one) for one in found])
        plain.append(faithfulness(network, held, ranking, outputs=outputs))
        print(f"{name}: fold {number} of {len(splits.folds)}", file=sys.stderr, flush=True)
    joined = Compared.joined(parts)
    measured = joined.means()
    other = Compared(Faithfulness.joined(plain), joined.gradient, joined.chance).means()
    for measure, values in other.items():
        measured[measure] |= {"attention": values["ours"], "p_attention": values["p"]}
    count = len(parts)
    return {"graphs": count, "accuracy": 100.0 * right / count, "measures": measured}


def planted(name: str) -> dict[str, Any]:
    """On graphs that were not trained on; only positives that are told right are looked at."""
    made, train, held = planted_rings(4000), 3000, 500
    fold = Fold(tuple(range(train)), tuple(range(train, train + held)))
    network = trained(made.complexes, fold, *PLANTED[name])
    rest = torch.arange(train + held, len(made.complexes))
    found = explain(network, made.complexes[rest], measure=False)
    truth = [made.polygons[row] for row in rest.tolist()]
    right = sum(one.output == (ring is not None) for one, ring in zip(found, truth, strict=True))
    ranked = [
        (int(one.polygons.argmax()), ring)
        for one, ring in zip(found, truth, strict=True)
        if ring is not None and one.output == 1
    ]
    hits = sum(best == ring for best, ring in ranked)
    return {
        "graphs": len(rest),
        "accuracy": 100.0 * right / len(rest),
        "positives": len(ranked),
        "top_polygon_is_planted": 100.0 * hits / len(ranked),
    }


def main() -> None:
    """Run what is not there yet, or what is named: MUTAG-paper, planted-pooling, …"""
    settle_process()
    FOLDER.mkdir(parents=True, exist_ok=True)
    works = {f"MUTAG-{name}": (mutag, name, NETWORKS[name][0]) for name in NETWORKS}
    works |= {f"planted-{n.replace(' ', '-')}": (planted, n, PLANTED[n][0]) for n in PLANTED}
    for title in sys.argv[1:] or works:
        work, name, network = works[title]
        path = FOLDER / f"{title}.json"
        if not path.exists():
            record = {"network": asdict(network), **work(name)}
            write_whole(path, json.dumps(record, indent=2) + "\n")
            print(f"{title}: written", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
