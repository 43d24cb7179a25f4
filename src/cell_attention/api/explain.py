"""`explain`: what the predictions of a model rest on, for graphs in memory or a whole source."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from cell_attention.api.outputs import AnyModel, require_output
from cell_attention.arguments import checked
from cell_attention.data.file_format import FileFormat, Kind, OnError
from cell_attention.errors import InputError, printable
from cell_attention.explanation import explanation
from cell_attention.explanation.explained_rows import ENDINGS, ExplainedRows, explain_rows
from cell_attention.explanation.explanation import Explanation
from cell_attention.explanation.subjects import Explained
from cell_attention.inference.model_folder import Model, load_model
from cell_attention.inference.prediction import require_task
from cell_attention.inference.rows import names_source, open_rows
from cell_attention.progress import Progress
from cell_attention.training.threads import one_thread


@checked
def explain(
    network: Explained | str | Path,
    graphs: Any,
    outputs: Sequence[int] | Tensor | None = None,
    *,
    task: Kind | None = None,
    measure: bool = True,
    smiles_column: str | None = None,
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    on_error: OnError = "report",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    is_source: bool | None = None,
    top: int | None = None,
    target: str | None = None,
    explained_class: str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> list[Explanation]:
    """Explain the predictions of a trained network, one explanation per graph.

    network: a CellAttentionNetwork, or a Model or its MODEL_DIR, which knows its features, task and
        labels; any other network is explained by gradient × input only.
    graphs: a CellComplex or anything that `lift` takes; SMILES and RDKit molecules are drawn as
        such. With a Model also a SOURCE: a path, the name of a file of molecules, or of a TU set
        that needs no download. `is_source` says whether a text is a SOURCE or SMILES; by default it
        is one if it ends like a file of molecules, or if there is a set or a file of this name.
    outputs: which class, label or value of every graph in memory is explained; by default the
        predicted class, or the first label or value.
    task: whether the outputs of a network are classes of which one is right, or independent labels
        or values; by default several outputs are classes. A model knows it.
    measure: whether the faithfulness of every explanation is measured, which takes a few
        hundred predictions per graph.
    top: largest number of graphs, the most confident predictions or highest values; None is all.
    target: name of the label or value to explain, if the model predicts several.
    explained_class: name of the class that all graphs of a file, or of a SOURCE, are explained for:
        shares are for or against it. By default the second of two classes, or of more the one that
        is predicted most often.
    out: a .html, .json or .csv file to write as `cell-attention explain` does. Then, and for a
        SOURCE, rows that cannot be read are left out and noted ("report"), left out ("skip"), or an
        error ("fail"), as `on_error` says.
    """
    shown = progress or Progress()
    if not isinstance(network, Model | str | Path) or not (
        any(one is not None for one in (out, top, target, explained_class))
        or names_source(graphs, is_source, data_dir)
    ):  # fmt: skip
        if out is not None or isinstance(graphs, Path):
            kind = type(network).__name__
            raise InputError(f"network must be a Model or a MODEL_DIR for a file, got {kind}")
        return explanation.explain(network, graphs, outputs, task=task, measure=measure)
    if outputs is not None or task is not None:
        raise InputError("outputs and task are for graphs in memory without out; use target")
    report = explain_source(
        network, graphs, smiles_column=smiles_column, file_format=file_format, on_error=on_error,
        data_dir=data_dir, node_attributes=node_attributes, is_source=is_source, top=top,
        target=target, explained_class=explained_class, measure=measure, out=out, progress=shown,
    )  # fmt: skip
    for text in report.left_out if on_error == "report" else ():
        shown.note(f"left out: {text}")
    return report.explanations


def explain_source(
    model: AnyModel,
    data: Any,
    *,
    smiles_column: str | None = None,
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    on_error: OnError = "report",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    is_source: bool | None = None,
    top: int | None = None,
    target: str | None = None,
    explained_class: str | None = None,
    measure: bool = True,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> ExplainedRows:
    """Explain the rows of a source, and write them to a file if there is one."""
    is_named = names_source(data, is_source, data_dir)
    source = str(data) if is_named else "the given graphs"
    if out is not None:
        require_output(Path(out), ENDINGS, model=model, source=source if is_named else "")
    known = model if isinstance(model, Model) else load_model(model)
    require_task(known)
    with one_thread():
        opened = open_rows(
            known, data, smiles_column=smiles_column, file_format=file_format, on_error=on_error,
            data_dir=data_dir, node_attributes=node_attributes, is_source=is_source,
            progress=progress,
        )  # fmt: skip
        report = explain_rows(
            known, opened, source, top=top, target=target, explained_class=explained_class,
            measure=measure, progress=progress or Progress(),
        )  # fmt: skip
    if out is not None:
        name = "memory" if isinstance(model, Model) else Path(model).name
        report.write(Path(out), printable(Path(source).name), printable(name))
    return report
