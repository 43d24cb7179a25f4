"""Fixtures: the real data, where they are to be had, and comparisons that name what differs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cell_attention import CellComplex

torch.set_num_threads(1)  # one process per core is faster than threads that compete for them


def pytest_addoption(parser: pytest.Parser) -> None:
    """How often a run is killed in `test_crash.py`, how much is mutated in `test_fuzz.py`."""
    parser.addoption("--kills", type=int, default=3, help="kills per engine in test_crash.py")
    parser.addoption("--fuzz", type=int, default=500, help="mutated inputs in test_fuzz.py")
    files = "damaged files of each kind in test_fuzz.py"
    parser.addoption("--fuzz-files", type=int, default=20, help=files)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long tests, so that at the end no worker waits for another one."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets."""
    place = os.environ.get("CELL_ATTENTION_DATA")
    if not place:
        pytest.skip("CELL_ATTENTION_DATA is not set: no folder of data sets to test on")
    if not Path(place).is_dir():  # a misspelt folder must not pass for a missing one
        pytest.fail(f"CELL_ATTENTION_DATA {place}: no such folder")
    return Path(place)


@pytest.fixture(scope="session")
def assert_equal() -> Callable[[CellComplex, CellComplex], None]:
    """Two complexes are equal tensor for tensor, pairs included."""

    def check(ours: CellComplex, other: CellComplex) -> None:
        assert ours.num_complexes == other.num_complexes
        left, right = ours.tensors(), other.tensors()
        assert left.keys() == right.keys()
        for name in left:
            assert left[name].dtype == right[name].dtype, name
            assert torch.equal(left[name], right[name]), name
        assert torch.equal(ours.lower_pairs, other.lower_pairs)
        assert torch.equal(ours.upper_pairs, other.upper_pairs)

    return check
