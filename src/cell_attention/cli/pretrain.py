"""`cell-attention pretrain`: learn a network on graphs without targets."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cell_attention.cli import console
from cell_attention.cli.options.training import NetworkOptions
from cell_attention.data.file_format import Columns
from cell_attention.data.splits.options import SEED
from cell_attention.errors import InputError

if TYPE_CHECKING:
    from cell_attention.inference.model_folder import Model


@dataclass(frozen=True, kw_only=True)
class Pretrain(NetworkOptions):
    """Train a network to predict the masked features of nodes and edges and the masked sizes of
    polygons; the same command resumes an interrupted pretraining.

    SOURCE needs no targets, and those that it has are not used. `train --from` starts from the
    result, and `fingerprint` takes it.
    """

    mask: float = 0.15
    """Share of the nodes, edges and polygons that are masked."""
    validation: float = 0.1
    """Share of the graphs, chosen at random, whose masked cells choose the epoch."""
    split_seed: int = SEED
    """Random seed of that choice."""

    @property
    def purpose(self) -> str:
        """The end of the default folder's name."""
        return "pretrained"

    def run(self) -> None:
        """Pretrain, and print the accuracy on masked cells."""
        asked = self.molecules.columns()
        if replace(asked, descriptors=None) != Columns(asked.smiles):
            raise InputError("pretrain uses no targets; leave --target-columns and --task out")
        network, training = self.configs()
        from cell_attention.api.pretrain import pretrain
        from cell_attention.training.threads import settle_process

        settle_process()  # from now on: this process does nothing else
        with self.resumable():
            model = pretrain(
                self.source, network=network, training=training, mask=self.mask,
                validation=self.validation, split_seed=self.split_seed,
                on_error=self.molecules.on_error, data_dir=self.data_dir,
                node_attributes=self.node_attributes, columns=asked,
                file_format=self.file_format, folder=self.folder, fresh=self.fresh,
                checkpoint_seconds=self.checkpoint_seconds, progress=self.progress(),
            )  # fmt: skip
        self._report(model)

    def _report(self, model: "Model") -> None:
        known = model.provenance
        weights = sum(parameter.numel() for parameter in model.network.parameters())
        if self.json:
            console.as_json({"model_dir": str(self.folder), "parameters": weights, **known})
            return
        rows = [
            (
                rank, f"{found['cells']:,}", f"{found['values']:,}", f"{found['accuracy']:.1f}",
                f"{found['most_frequent']:.1f}",
            )
            for rank, found in known["masked"].items()
        ]  # fmt: skip
        graphs = known["reached"]["validation"]["graphs"]
        title = (
            f"{self.source}: {weights:,} weights of epoch {known['best_epoch']}, the best of "
            f"{known['epochs']} on the masked cells of {graphs:,} held-out graphs"
        )
        header = ("", "masked", "values", "accuracy in %", "most frequent value in %")
        console.table(title, header, rows)
        print(f"Saved to {self.folder}; `train --from {self.folder}` starts from it")
