"""Inputs of a trained model: a source, molecules or graphs, as rows that it can read."""

from pathlib import Path
from typing import Any

from cell_attention.data.dataset import OnError, is_molecule_file
from cell_attention.errors import InputError
from cell_attention.inference.model_folder import Model, load_model
from cell_attention.inference.rows import (
    OpenedRows,
    open_graphs,
    open_molecule_file,
    open_molecules,
)
from cell_attention.progress import Progress

AnyModel = Model | str | Path
"""A trained model, or its MODEL_DIR."""


def load(model: AnyModel) -> Model:
    """Load the model of a MODEL_DIR; a model is returned as it is."""
    return model if isinstance(model, Model) else load_model(model)


def open_rows(
    model: Model,
    data: Any,
    *,
    smiles_column: str | None = None,
    on_error: OnError = "report",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    is_source: bool | None = None,
    progress: Progress | None = None,
) -> OpenedRows:
    """Open the rows of a SOURCE of the command line, of a list of molecules, or of anything that
    `lift` accepts.

    is_source: whether a text is a SOURCE rather than a molecule; None decides by looking for it.
    """
    if isinstance(data, str | Path) and is_molecule_file(data):
        if model.config.lift == "paper" and model.name == "can" and progress is not None:
            progress.remark("the model's lift is not symmetric: predictions depend on atom order")
        return open_molecule_file(model, Path(data), smiles_column, on_error, progress)
    if smiles_column is not None:
        raise InputError(f"smiles_column can only be used with a file of molecules, got {data}")
    if isinstance(data, Path) or (isinstance(data, str) and (is_source or _names_set(data))):
        return _tu_set(model, data, data_dir, node_attributes)
    from cell_attention.data.lifting import lift, listed_molecules
    from cell_attention.topology.complex import CellComplex

    molecules = listed_molecules(data)
    if molecules is not None:
        return open_molecules(model, molecules)
    graphs = data if isinstance(data, CellComplex) else lift(data, model.config.max_polygon)
    return open_graphs(graphs)


def _names_set(text: str) -> bool:
    """Whether a text is the name of a data set or a path, and not a molecule."""
    from cell_attention.data.sources import known_names

    return text in known_names() or Path(text).exists()


def _tu_set(
    model: Model, source: str | Path, data_dir: str | Path | None, node_attributes: bool
) -> OpenedRows:
    from cell_attention.data.sources import lift_set, read_source
    from cell_attention.inference.prediction import require_same_features
    from cell_attention.inference.prediction_table import truth_names

    found = read_source(source, data_dir, node_attributes=node_attributes)
    require_same_features(model, found.featuriser, found.name)
    graphs = lift_set(found, model.config.max_polygon).graphs
    truths = []
    if graphs.targets is not None and found.class_names:
        truths = [found.class_names[target] for target in graphs.targets.tolist()]
    return open_graphs(graphs, truths, truth_names(model)[0])
