"""The table of the quickstarts: the molecules of MUTAG as SMILES, and whether each is mutagenic."""

import csv
from pathlib import Path

from rdkit import Chem

from cell_attention.data.molecules.rebuild import rebuilt
from cell_attention.data.sources import read_source
from cell_attention.errors import MoleculeError

OUT = Path(__file__).parents[1] / "docs" / "notebooks" / "mutagenicity.csv"


def rows() -> list[tuple[str, str]]:
    """Return SMILES and answer of every graph that is a molecule, each molecule once."""
    found = read_source("MUTAG")
    known: dict[str, str] = {}
    for number, mutagenic in enumerate(found.graphs.targets.tolist()):
        try:
            molecule = rebuilt(found.graphs[number : number + 1], found.featuriser)
        except MoleculeError:  # a carbon with five bonds
            continue
        known.setdefault(Chem.MolToSmiles(molecule), "yes" if mutagenic else "no")
    return list(known.items())


if __name__ == "__main__":
    with OUT.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("smiles", "mutagenic"), *rows()])
