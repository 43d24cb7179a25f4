"""How large a request may be and how long it may take."""

from dataclasses import dataclass, fields

from cell_attention.errors import InputError


@dataclass(frozen=True)
class ServeLimits:
    """Bounds of one request, so that no request can stop the server or fill its memory."""

    body: int = 1_000_000
    """Bytes of a request."""
    rows: int = 1_000
    """Molecules or graphs of one prediction."""
    explained: int = 100
    """Molecules or graphs of one explanation."""
    measured: int = 5
    """Explanations whose faithfulness is measured in one request."""
    atoms: int = 500
    """Atoms of a molecule, nodes of a graph."""
    polygons: int = 5_000
    """Polygons of one molecule or graph."""
    pairs: int = 50_000
    """Pairs of edges that hear each other in one molecule or graph."""
    answer: int = 50_000_000
    """Bytes of an answer; explanations of dense graphs are long."""
    seconds: float = 30.0
    """Time to work on a request."""
    turn: float = 60.0
    """Seconds that a request waits for its turn."""
    patience: float = 10.0
    """Seconds in which a client must have sent its request."""
    waiting: int = 128
    """Requests that may wait for their turn."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not value > 0:
                raise InputError(f"limits.{one.name} must be positive, got {value}")
