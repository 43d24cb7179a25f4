"""The bodies of requests: FastAPI checks them and writes their OpenAPI description from here."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cell_attention.app.limits import ServeLimits
from cell_attention.errors import InputError

Form = Literal["explanation", "drawing", "picture"]


def _rules(*examples: dict[str, Any]) -> dict[str, Any]:
    """Refuse misspelt entries, NaN and infinity."""
    return {
        "extra": "forbid",
        "allow_inf_nan": False,
        "json_schema_extra": {"examples": list(examples)},
    }


TRIANGLE = {
    "nodes": [[1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0]],
    "edges": [[0, 1], [1, 2], [0, 2]],
    "edge_features": [[0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]],
}


@dataclass(frozen=True)
class Graph:
    """One graph with the feature columns that the model was trained on."""

    nodes: list[list[float]]
    """One row of features per node."""
    edges: list[list[int]]
    """Pairs of nodes, counted from 0; every edge once."""
    edge_features: list[list[float]] | None = None
    """One row of features per edge; only if the model has such features."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _rules(TRIANGLE)


@dataclass(frozen=True)
class PredictRequest:
    """Molecules as SMILES or InChI, or graphs."""

    smiles: list[str] | None = None
    """SMILES or InChI, one text per molecule."""
    names: list[str] | None = None
    """A name per molecule, which comes back with it."""
    graphs: list[Graph] | None = None
    """Graphs, instead of molecules."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _rules(
        {"smiles": ["O=[N+]([O-])c1ccccc1", "C1CC"]}, {"graphs": [TRIANGLE]}
    )

    def require(self, most: int) -> None:
        """Refuse a request without rows, with both kinds, or with names that do not fit."""
        given = [rows for rows in (self.smiles, self.graphs) if rows is not None]
        if len(given) != 1:
            raise InputError("the request must have either smiles or graphs")
        if not given[0]:
            raise InputError("the request has no rows: smiles or graphs is empty")
        if self.names is not None and len(self.names) != len(self.smiles or ()):
            raise InputError(
                f"names must have one entry per molecule, got {len(self.names)} for "
                f"{len(self.smiles or ())}"
            )
        if len(given[0]) > most:
            raise TooLargeError(f"at most {most:,} rows in one request, got {len(given[0]):,}")


@dataclass(frozen=True)
class ExplainRequest(PredictRequest):
    """Molecules or graphs, and what to say about their predictions."""

    target: str | None = None
    """The label or value to explain, if the model predicts several; the first by default."""
    measure: bool = False
    """Whether to measure how faithful the explanations are, which takes long."""
    forms: list[Form] | None = None
    """`explanation` (numbers, the default), `picture` (SVG), `drawing` (what the page draws)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _rules(
        {"smiles": ["O=[N+]([O-])c1ccccc1"], "forms": ["explanation", "picture"]}
    )

    def require_explained(self, limits: ServeLimits) -> None:
        """Refuse what `require` refuses, and more measures than the limits allow."""
        self.require(limits.explained)
        if self.measure and len(self.smiles or self.graphs or ()) > limits.measured:
            raise TooLargeError(f"at most {limits.measured} rows in one request with measure")


@dataclass(frozen=True)
class ReadRequest:
    """The text of a .csv, .tsv or .smi file, to be split into rows."""

    name: str
    """Name of the file; its ending says what it is."""
    text: str
    smiles_column: str | None = None
    """Column of a .csv with SMILES or InChI; by default the one that looks like it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _rules(
        {"name": "new.csv", "text": "smiles,name\nCCO,ethanol\n"}
    )

    def require(self) -> None:
        """Refuse a name with another ending."""
        if not self.name.lower().endswith((".csv", ".tsv", ".smi")):
            raise InputError(f"name must end in .csv, .tsv or .smi, got {self.name[:100]!r}")


class TooLargeError(InputError):
    """A request with more rows than the limits allow."""
