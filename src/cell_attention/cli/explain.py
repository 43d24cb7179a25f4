"""`cell-attention explain`: the bonds and rings that predictions depend on, in one HTML file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cell_attention.cli import console
from cell_attention.cli.predict import InferenceOptions
from cell_attention.errors import DataError, InputError

if TYPE_CHECKING:
    from cell_attention.explanation.page import ReportEntry
    from cell_attention.inference.model_folder import Model
    from cell_attention.inference.rows import Chunk

ENDINGS = (".html", ".json", ".csv")


@dataclass(frozen=True, kw_only=True)
class Explain(InferenceOptions):
    """Explain predictions: show every molecule with its bonds and rings coloured by their
    contribution, its attention and pooling layer by layer, and how faithful the explanation is.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("report.html")
    """The file to write: .html, which opens in any browser without other files or a network
    connection; or .json or .csv, for programs."""
    top: int = 1000
    """Largest number of graphs to explain: the most confident predictions or highest values."""
    target: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The label or value to explain, if the model predicts several; the first by default."""
    no_faithfulness: bool = False
    """Do not measure how faithful explanations are, which takes hundreds of predictions each."""

    def run(self) -> None:
        """Explain, and print a summary."""
        self._report(*self.result())

    def result(self) -> "tuple[list[ReportEntry], _Seen]":
        """Explain and write the file; return its entries, and counts of the rows read."""
        from cell_attention.api.predict import require_output
        from cell_attention.explanation.report_entries import collected, entries, target_of
        from cell_attention.inference.model_folder import load_model
        from cell_attention.inference.rows import open_rows
        from cell_attention.training.threads import use_one_thread

        require_output(self.out, ENDINGS, self.model, self.source)
        if self.top < 1:
            raise InputError(f"--top must be at least 1, got {self.top}")
        use_one_thread()
        model = load_model(self.model)
        target = target_of(model, self.target)
        opened = open_rows(**{**self.arguments(), "model": model})
        seen = _Seen()
        pieces = collected(model, opened.header, seen.counted(opened.chunks), target, self.top)
        if not pieces:
            raise DataError(f"{self.source}: there is no graph to explain")
        with console.progress_bar("Explaining") as progress:
            found = list(entries(model, pieces, not self.no_faithfulness, progress))
        self._write(model, found)
        return found, seen

    def _write(self, model: "Model", found: "list[ReportEntry]") -> None:
        import json

        from cell_attention._files import write_whole
        from cell_attention.explanation.page import page
        from cell_attention.explanation.records import plain, table

        ending = self.out.suffix.lower()
        named = [(entry.known.row, entry.known.name) for entry in found]
        every = [entry.explanation for entry in found]
        if ending == ".csv":
            text = table(every, named)
        elif ending == ".json":
            rows = [{**_known(entry), **entry.explanation.to_dict()} for entry in found]
            text = json.dumps(plain(rows), ensure_ascii=False, allow_nan=False) + "\n"
        else:
            text = page(self._title(), self._about(model, found), found, model)
        write_whole(self.out, text)

    def _title(self) -> str:
        return f"What the predictions for {Path(self.source).name} rest on"

    def _about(self, model: "Model", found: "list[ReportEntry]") -> str:
        trained = model.provenance.get("source", "")
        return (
            _counted(found)
            + "; a model "
            + (f"trained on {trained}" if trained else f"in {self.model.name}")
            + (
                f", the mean of {several} networks; attention and pooling are those of the first"
                if (several := len(model.members)) > 1
                else ""
            )
        )

    def _report(self, found: "list[ReportEntry]", seen: "_Seen") -> None:
        from cell_attention.explanation.page import summary
        from cell_attention.explanation.records import plain

        means = summary([entry.explanation for entry in found])
        if self.json:
            record: dict[str, Any] = {"model": str(self.model), "source": self.source}
            record |= {"graphs": len(found), "read": seen.graphs, "left_out": seen.left_out}
            console.as_json({**record, "faithfulness": plain(means), "out": str(self.out)})
            return
        if seen.left_out:
            console.note(f"rows left out: {len(seen.left_out):,}")
            for text in seen.left_out if self.on_error == "report" else ():
                console.note(text)
        if (read := seen.graphs) > len(found):
            console.note(
                f"explained the {len(found):,} of {read:,} graphs that rank highest; see --top"
            )
        if means is not None:
            fall = means["fidelity_plus"]
            console.note(
                f"without the best fifth of the edges the prediction falls by {fall['ours']:.3f} "
                f"on average, by chance {fall['chance']:.3f}"
            )
        size = self.out.stat().st_size / 1e6
        print(f"{_counted(found)} explained in {self.out} ({size:.1f} MB)")


@dataclass
class _Seen:
    """Counts of the rows read so far."""

    graphs: int = 0
    left_out: list[str] = field(default_factory=list)
    """The rows without a graph, with the reason."""

    def counted(self, chunks: "Iterable[Chunk]") -> "Iterator[Chunk]":
        """Yield the chunks unchanged, and count them."""
        for chunk in chunks:
            self.graphs += len(chunk.complexes)
            self.left_out += [
                f"row {row.line}: {reason}"
                for row, reason in zip(chunk.rows, chunk.reasons, strict=True)
                if reason
            ]
            yield chunk


def _counted(found: "list[ReportEntry]") -> str:
    return f"{len(found):,} graph" + "s" * (len(found) != 1)


def _known(entry: "ReportEntry") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(entry.known)
