"""How large the complex of one graph may grow before lifting refuses it."""

import operator
from dataclasses import dataclass, fields

from cell_attention.errors import LimitError

MOST_COMPLEXES = 100_000_000
"""Largest count of complexes or nodes that an input may state: a wrong count must not allocate
all memory.
"""


@dataclass(frozen=True)
class Limits:
    """Bounds per graph, checked before the memory they bound is allocated.

    A complete graph, a star or a hostile input has no small complex; without bounds it would
    fill the memory or keep the process busy for days. Every bound can be raised.
    """

    # Deviation: the paper's lifting map takes any graph; this one refuses what exceeds a bound, so
    # that a hostile file cannot stop the machine.
    polygons: int = 1_000_000
    """Chordless cycles in one graph. A thousand times the largest protein of PROTEINS."""
    pairs: int = 20_000_000
    """Lower pairs, and upper pairs once per polygon, in one graph: 320 MB of indices each."""
    steps: int = 1_000_000_000
    """Nodes that the cycle search may look at in one graph: a few seconds."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            try:
                count = operator.index(value)
            except TypeError:
                count = -1
            if not 0 <= count < 2**62:
                raise LimitError(
                    f"Limits.{field.name} must be an integer from 0 to 2^62, got {value!r}"
                )


LIMITS = Limits()
"""The default limits."""
