"""Explanations of predictions, graph by graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import torch
from rdkit import Chem
from torch import Tensor, nn

from cell_attention.data.file_format import Kind
from cell_attention.data.molecules.features import featuriser_of
from cell_attention.errors import InputError
from cell_attention.explanation.described import described
from cell_attention.explanation.faithfulness import Compared, compared, gradient_importance
from cell_attention.explanation.importance import Importance, importance
from cell_attention.explanation.layers import Layer, layers_of
from cell_attention.explanation.occlusion import occlusion
from cell_attention.explanation.subjects import (
    Explained,
    Subjects,
    is_traced,
    members_of,
    outputs_of,
    subjects_of,
    temperatures_of,
)
from cell_attention.inference.model_folder import Model, load_model
from cell_attention.inference.prediction import Predictions, mean_prediction, require_task
from cell_attention.nn.network import CellAttentionNetwork, Trace
from cell_attention.nn.rank_network import RankNetwork
from cell_attention.topology.complex import CellComplex
from cell_attention.training.threads import one_thread

if TYPE_CHECKING:
    from cell_attention.explanation.picture import Picture

AT_ONCE = 256
"""Number of graphs that are traced together."""


@dataclass(frozen=True)
class Explanation:
    """What the prediction for one graph rests on."""

    complexes: CellComplex
    """The graph, lifted."""
    molecule: Chem.Mol | None
    """The molecule that is drawn; None if the graph is not known to be one."""
    predictions: Tensor
    """(outputs,) probabilities or values; the mean over an ensemble."""
    output: int
    """The class, label or value that is explained."""
    name: str
    """Name of that class, label or value."""
    margin: float
    """Its log-odds, its logit or its value; the mean over an ensemble, as are the shares."""
    edges: Tensor
    """(E,) importance: what the margin loses without the edge in a network on every rank, the share
    that the edge carries in the paper's; negative ones speak against the prediction."""
    polygons: Tensor
    """(P,) what the margin loses without the polygon, or the share that passed through it."""
    nodes: Tensor
    """(N,) what the margin loses without the node, or half of what its edges carry and what it is
    read out with itself."""
    descriptors: dict[str, float]
    """What the margin loses without each descriptor of the molecule, by its name."""
    described: float
    """What the margin loses without all descriptors together."""
    layers: tuple[Layer, ...]
    """What every layer did; in the first network of an ensemble."""
    faithfulness: Compared | None
    """How faithful the shares of the edges are; None if it was not measured."""

    @property
    def prediction(self) -> float:
        """Probability or value of the explained output."""
        return float(self.predictions[self.output])

    def top_edges(self, count: int) -> Tensor:
        """Return the edges that carry most, the largest first."""
        return self.edges.argsort(descending=True, stable=True)[:count]

    def picture(self, *, numbers: bool = False) -> "Picture":
        """Draw the graph with edges and polygons coloured by their shares, and numbers of nodes."""
        from cell_attention.explanation.views import explained

        return explained(self, numbers=numbers)

    def strip(self) -> "Picture":
        """Draw the pooling step by step: what is left after every layer."""
        from cell_attention.explanation.views import strip

        return strip(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in a form that JSON can hold."""
        from cell_attention.explanation.records import record

        return record(self)

    def to_csv(self) -> str:
        """Return CSV text with one line per edge, polygon and node."""
        from cell_attention.explanation.records import table

        return table([self])

    def _repr_svg_(self) -> str:
        return self.picture().svg

    def _repr_html_(self) -> str:
        from cell_attention.explanation.views import html

        return html(self)


def explain(
    network: Explained | str | Path,
    graphs: Any,
    outputs: Sequence[int] | Tensor | None = None,
    *,
    task: Kind | None = None,
    measure: bool = True,
) -> list[Explanation]:
    """Explain the predictions for graphs in memory; the arguments are those of the public
    `cell_attention.explain`.
    """
    if isinstance(network, str | Path):
        network = load_model(network)
    with one_thread():
        return list(
            explanations(network, subjects_of(network, graphs), outputs, task=task, measure=measure)
        )


def explanations(
    network: Explained,
    subjects: Subjects,
    outputs: Sequence[int] | Tensor | None = None,
    *,
    task: Kind | None = None,
    measure: bool = True,
) -> Iterator[Explanation]:
    """Yield the explanations one by one, so that progress can be shown."""
    members, complexes = members_of(network), subjects.complexes
    if any(member.training for member in members):
        raise InputError("the network is in training mode; call network.eval() first")
    count = outputs_of(network)
    chosen = None if outputs is None else _whole_numbers(outputs)
    if chosen is not None and tuple(chosen.shape) != (len(complexes),):
        raise InputError(f"outputs must be ({len(complexes)},), got {tuple(chosen.shape)}")
    if chosen is not None and not bool((chosen >= 0).all()):
        raise InputError("outputs must not be negative")
    if chosen is not None and count is not None and not bool((chosen < count).all()):
        raise InputError(f"outputs must lie in 0…{count - 1}")
    kind = _task(network, count, task)
    for first in range(0, len(complexes), AT_ONCE):
        rows = slice(first, first + AT_ONCE)
        part = Subjects(complexes[rows], subjects.molecules[rows])
        yield from _part(
            network, part, None if chosen is None else chosen[rows], task=kind, measure=measure
        )


def _whole_numbers(outputs: Sequence[int] | Tensor) -> Tensor:
    try:
        found = torch.as_tensor(outputs)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"outputs must be whole numbers, got {outputs!r}") from None
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise InputError(f"outputs must be whole numbers, got {found.dtype}")
    return found.long()


def _task(network: Explained, outputs: int | None, asked: Kind | None) -> Kind:
    if asked not in (None, *get_args(Kind)):
        raise InputError(f"task must be one of {', '.join(get_args(Kind))}, got {asked!r}")
    if isinstance(network, Model):
        if asked not in (None, known := require_task(network)):
            raise InputError(f"task must be that of the model, {known}, got {asked}")
        return known
    kind: Kind = asked or ("classes" if outputs is None or outputs > 1 else "values")
    if kind == "classes" and outputs == 1:
        raise InputError("classes need at least two outputs, got one")
    return kind


def _part(
    network: Explained, part: Subjects, chosen: Tensor | None, *, task: Kind, measure: bool
) -> Iterator[Explanation]:
    members, complexes = members_of(network), part.complexes
    with torch.no_grad():
        traces = [cast(Any, member).trace(complexes) for member in members if is_traced(member)]
        logits = [trace.logits.double() for trace in traces]
        if not traces:  # networks without a trace
            logits = [member(complexes).double() for member in members]
    every = mean_prediction(task, logits, temperatures_of(network))
    if not bool(every.isfinite().all()):
        graph = int((~every.isfinite()).any(1).nonzero()[0])
        raise InputError(f"the prediction for graph {graph} is not a finite number")
    if chosen is not None:
        outputs = chosen.to(every.device)
    elif task != "classes":
        outputs = torch.zeros(every.size(0), dtype=torch.int64, device=every.device)
    elif isinstance(network, Model):
        outputs = Predictions(every, None).decided(network)
    else:
        outputs = every.argmax(1)
    whole = [
        described(member, trace, outputs, classes=task == "classes")
        for member, trace in zip(members, traces, strict=bool(traces))
    ]
    if traces:
        found = [
            _carried(member, trace, outputs, classes=task == "classes")
            for member, trace in zip(members, traces, strict=True)
        ]
    else:
        found = [
            gradient_importance(network, complexes, one, outputs=outputs, task=task)
            for one in logits
        ]
    carried = Importance(*(torch.stack(values).mean(0) for values in zip(*found, strict=True)))
    measured = (
        compared(network, complexes, carried.edges, outputs=outputs, task=task) if measure else None
    )
    names = _names(network, task, every.size(1))
    titles = _descriptors(network, complexes)
    for graph, (edges, polygons, nodes) in enumerate(_rows(complexes)):
        first = int(edges[0]) if edges.numel() else 0
        yield Explanation(
            complexes=complexes[graph : graph + 1],
            molecule=part.molecules[graph],
            predictions=every[graph],
            output=int(outputs[graph]),
            name=names[int(outputs[graph])],
            margin=float(carried.margins[graph]),
            edges=carried.edges[edges],
            polygons=carried.polygons[polygons],
            nodes=carried.nodes[nodes],
            descriptors=dict(
                zip(titles, _mean([one.each[graph] for one in whole]), strict=bool(whole))
            ),
            described=sum(_mean([one.together[graph, None] for one in whole])),
            layers=tuple(layers_of(traces[0], graph, first)) if traces else (),
            faithfulness=None if measured is None else measured.of(graph),
        )


def _carried(member: nn.Module, trace: Trace, outputs: Tensor, *, classes: bool) -> Importance:
    """Compute what every cell carries of the margins: by taking it away where all ranks carry
    features, else from attention, pooling and readout.
    """
    if isinstance(member, RankNetwork):
        return occlusion(member, trace, outputs, classes=classes)
    return importance(cast(CellAttentionNetwork, member), trace, outputs, classes=classes)


def _mean(parts: list[Tensor]) -> list[float]:
    """Return the mean over the members of an ensemble; empty without members."""
    found: list[float] = torch.stack(parts).mean(0).tolist() if parts else []
    return found


def _descriptors(network: Explained, complexes: CellComplex) -> tuple[str, ...]:
    """Return the names of the features of whole complexes; numbers if they have none."""
    features = complexes.complex_features
    count = 0 if features is None else features.size(1)
    if isinstance(network, Model) and "descriptors" in network.featuriser:
        featuriser = featuriser_of(network.featuriser)
        whole = featuriser.descriptors + featuriser.columns
        if len(whole) == count:
            return whole
    return tuple(f"feature {number}" for number in range(count))


def _names(network: Explained, task: Kind, count: int) -> tuple[str, ...]:
    if not isinstance(network, Model):
        stem = "class" if task == "classes" else "output"
        return tuple(f"{stem} {number}" for number in range(count))
    if task == "classes":
        column = network.target_columns[0]
        return tuple(f"{column} = {k}" if column else f"class {k}" for k in network.class_names)
    if task == "labels":
        return tuple(f"{name or 'label'} = 1" for name in network.target_columns)
    return tuple(name or "value" for name in network.target_columns)


def _rows(complexes: CellComplex) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield the rows of edges, polygons and nodes of every graph."""
    for graph in range(len(complexes)):
        edges, polygons, nodes = (
            (member == graph).nonzero().flatten()
            for member in (
                complexes.edge_complex, complexes.polygon_complex, complexes.node_complex,
            )
        )  # fmt: skip
        yield edges, polygons, nodes
