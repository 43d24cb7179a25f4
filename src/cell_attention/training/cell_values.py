"""The values of cells that a pretraining predicts: whole rows of features, or sizes of polygons."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.topology.colours import row_hashes
from cell_attention.topology.complex import CellComplex

MOST_VALUES = 4096
"""Features with more distinct rows than this are numbers rather than kinds of cells."""


@dataclass(frozen=True)
class CellValues:
    """The distinct values of the cells of one rank; a cell of value k is of class k."""

    rank: int
    codes: NDArray[np.uint64]
    """Codes of the values, increasing."""
    usual: int
    """The most frequent class."""

    @staticmethod
    def of(complexes: CellComplex, rank: int) -> "CellValues | None":
        """Collect the values of a rank; None if there is nothing to tell apart, or too much."""
        codes, counts = np.unique(_codes(complexes, rank), return_counts=True)
        if not 2 <= codes.size <= MOST_VALUES:
            return None
        return CellValues(rank, codes, int(counts.argmax()))

    def __len__(self) -> int:
        return int(self.codes.size)

    def classes(self, complexes: CellComplex) -> Tensor:
        """(cells,) the class of every cell of this rank; −1 for a value that is not among them."""
        asked = _codes(complexes, self.rank)
        place = np.searchsorted(self.codes, asked).clip(max=len(self) - 1)
        return torch.from_numpy(np.where(self.codes[place] == asked, place, -1))


def _codes(complexes: CellComplex, rank: int) -> NDArray[np.uint64]:
    if rank == 2:
        sizes: NDArray[np.int64] = complexes.polygon_sizes.cpu().numpy()
        return sizes.astype(np.uint64)
    features = complexes.node_features if rank == 0 else complexes.edge_features
    return np.empty(0, np.uint64) if features is None else row_hashes(features)
