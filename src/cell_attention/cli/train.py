"""`cell-attention train`: train one model on one data set."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.model import ModelName
from cell_attention.cli.options.training import TrainingOptions
from cell_attention.cli.predict import MOST_COLUMNS
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig

if TYPE_CHECKING:
    from cell_attention.inference.model_folder import Model
    from cell_attention.inference.origin import Origin


@dataclass(frozen=True, kw_only=True)
class Train(TrainingOptions):
    """Train a network and save it; the same command resumes an interrupted training.

    The default network works on every rank; --design paper takes the paper's, with its preset if
    SOURCE is one of the paper's data sets. Flags and --config change single fields. The weights
    of the last epoch are kept, or with --patience N those of the best by validation, and training
    stops N epochs after it.
    """

    validation: float = 0.1
    """Share of the graphs used to choose the threshold, and with --patience the epoch."""
    test: float = 0.1
    """Share of the graphs that are scored once, after training; 0 leaves the test out."""
    ensemble: int = 1
    """Number of networks, which differ in their seed; predictions are their mean, and their spread
    shows the uncertainty."""

    model: ModelName = "can"
    """The network to train: cell attention (can) or a rival network."""
    from_model: Annotated[Path | None, tyro.conf.arg(name="from", metavar="MODEL_DIR")] = None
    """Start from the weights of this model, and take over its network; the output layers are new
    unless it predicts the same targets."""
    freeze: Annotated[tuple[str, ...], tyro.conf.arg(metavar="PART…")] = ()
    """With --from: parts of the network that keep their weights, such as start, layers, layers.0
    or counts."""

    def run(self) -> None:
        """Train, and print the scores."""
        self._report(self.result())

    def result(self) -> "Model":
        """Train without printing."""
        self.configs()
        from cell_attention.api.train import train

        with self.resumable():
            return train(
                model=self.model, validation=self.validation, test=self.test,
                ensemble=self.ensemble, from_model=self.from_model, freeze=self.freeze,
                **self.arguments(),
            )  # fmt: skip

    @property
    def model_name(self) -> str:
        """Name of the network."""
        return self.model

    @property
    def origin(self) -> NetworkConfig | None:
        """The network of the model that the training starts from."""
        found = self._before()
        return found.model.config if found and found.model.name == self.model else None

    @property
    def usual_descriptors(self) -> tuple[str, ...]:
        """The words of the model that the training starts from, if there is one."""
        found = self._before()
        return super().usual_descriptors if found is None else found.descriptors

    def _before(self) -> "Origin | None":
        """Return the model that the training starts from."""
        if self.from_model is None:
            return None
        from cell_attention.inference.origin import Origin

        return Origin.of(self.from_model)

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """Return the configurations; also check the flags of this command."""
        if not 1 <= self.ensemble <= 100:
            raise InputError(f"ensemble must lie in 1…100, got {self.ensemble}")
        return super().configs()

    def _report(self, model: "Model") -> None:
        known = model.provenance
        weights = sum(parameter.numel() for parameter in model.network.parameters())
        if self.json:
            folder = {"model_dir": str(self.folder), "members": len(model.members)}
            folder["temperatures"] = model.temperatures
            console.as_json({**folder, "parameters": weights, **known})
            return
        from cell_attention.inference.prediction import require_task
        from cell_attention.models.settings import search_leak
        from cell_attention.training.metrics import METRICS, metrics_of

        names, rows = metrics_of(require_task(model)), []
        for name, reached in known["reached"].items():
            if reached is not None:
                cells = [_number(metric, reached["metrics"].get(metric)) for metric in names]
                count = reached.get("graphs")  # which earlier versions did not record
                graphs = "–" if count is None else f"{count:,}"
                rows.append((name, graphs, f"{reached['loss']:.3f}", *cells))
                rows += _column_rows(name, reached.get("columns", {}), names)
        title = (
            f"{self.source}: {weights:,} weights of epoch {known['best_epoch']}, "
            + console.kept(known, f"by {known['score']} on the validation graphs")
        )
        if len(model.members) > 1:
            title = f"{self.source}: {len(model.members)} networks of {weights:,} weights"
        console.table(title, ("", "graphs", "loss", *(METRICS[name].title for name in names)), rows)
        if known.get("deviations"):
            print("RMSE and MAE of all columns together are in standard deviations of each column.")
        if len(model.thresholds) == 1:
            what = f"class {model.labels[1]!r}" if model.labels else "the label"
            print(f"If its probability is at least {model.thresholds[0]:.3f}, {what} is predicted.")
        for line in _reliability(known["reached"]):
            print(line)
        if known.get("searched"):
            print(f"Note: {search_leak(known['searched'])}.")
        console.say(f"Saved to {self.folder}")


def _reliability(reached: dict[str, Any]) -> Iterator[str]:
    """Say how many values of the held-out graphs lie in their intervals, or how far probabilities
    are from frequencies.
    """
    for name in ("validation", "test"):
        part = reached.get(name) or {}
        if "intervals" in part and name == "test":
            found = part["intervals"]
            yield (
                f"Intervals that contain 90 % of the validation values contain "
                f"{100 * found['share']:.1f} % of {found['values']:,} test values."
            )
        if "calibration_error" in part:
            before = part.get("calibration_error_before")  # earlier versions have none
            beside = "" if before is None else f" ({before:.3f} without a temperature)"
            error = part["calibration_error"]
            yield f"Expected calibration error on the {name} graphs: {error:.3f}{beside}."


def _column_rows(name: str, columns: dict[str, Any], metrics: list[str]) -> list[tuple[str, ...]]:
    """Return one row per label or column of values, unless there are very many."""
    if len(columns) > MOST_COLUMNS:
        return [(f"{name}: {len(columns)} columns, see config.json", *[""] * (2 + len(metrics)))]
    return [
        (
            f"  {column}", f"{found['graphs']:,}", "–",
            *(_number(metric, found["metrics"].get(metric)) for metric in metrics),
        )
        for column, found in columns.items()
    ]  # fmt: skip


def _number(metric: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if metric == "accuracy" else f"{value:.3f}"
