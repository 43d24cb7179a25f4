"""`cell-attention train`: train one model on one data set."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cell_attention.cli import console
from cell_attention.cli.options.model import ModelName
from cell_attention.cli.options.training import TrainingOptions
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig

if TYPE_CHECKING:
    from cell_attention.inference.model_folder import Model


@dataclass(frozen=True, kw_only=True)
class Train(TrainingOptions):
    """Train a network and save it at its best validation epoch; the same command resumes an
    interrupted training.

    The default network works on every rank; --design paper takes the paper's, with its preset if
    SOURCE is one of the paper's data sets. Flags and --config change single fields. Training stops
    when validation has not improved for --patience epochs.
    """

    validation: float = 0.1
    """Share of the graphs used to choose the epoch and the threshold."""
    test: float = 0.1
    """Share of the graphs that are scored once, after training; 0 leaves the test out."""
    ensemble: int = 1
    """Number of networks, which differ in their seed; predictions are their mean, and their spread
    shows the uncertainty."""

    model: ModelName = "can"
    """The network to train: cell attention (can) or a rival network."""

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
                ensemble=self.ensemble, **self.arguments(),
            )  # fmt: skip

    @property
    def model_name(self) -> str:
        """Name of the network."""
        return self.model

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
            console.as_json({**folder, "parameters": weights, **known})
            return
        from cell_attention.models.settings import search_leak
        from cell_attention.training.metrics import METRICS, metrics_of

        names, rows = metrics_of(model.task), []
        for name, reached in known["reached"].items():
            if reached is not None:
                cells = [_number(metric, reached["metrics"].get(metric)) for metric in names]
                count = reached.get("graphs")  # which earlier versions did not record
                graphs = "–" if count is None else f"{count:,}"
                rows.append((name, graphs, f"{reached['loss']:.3f}", *cells))
        title = (
            f"{self.source}: {weights:,} weights of epoch {known['best_epoch']}, the best of "
            f"{known['epochs']} by {known['score']} on the validation graphs"
        )
        if len(model.members) > 1:
            title = f"{self.source}: {len(model.members)} networks of {weights:,} weights"
        console.table(title, ("", "graphs", "loss", *(METRICS[name].title for name in names)), rows)
        if len(model.thresholds) == 1:
            what = f"class {model.labels[1]!r}" if model.labels else "the label"
            print(f"If its probability is at least {model.thresholds[0]:.3f}, {what} is predicted.")
        if known.get("searched"):
            print(f"Note: {search_leak(known['searched'])}.")
        console.say(f"Saved to {self.folder}")


def _number(metric: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if metric == "accuracy" else f"{value:.3f}"
