"""Molecules as graphs: what RDKit says, columns, files, targets, and the graphs of TU sets."""

import gzip
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
import torch
from rdkit import Chem

from cell_attention import CellComplex, lift
from cell_attention.data.file_format import Columns
from cell_attention.data.molecules.features import (
    ATOMS,
    BONDS,
    Featuriser,
    featurise,
    featuriser_of,
)
from cell_attention.data.molecules.files import MoleculeFile
from cell_attention.data.molecules.molecule import read_block, read_molecule
from cell_attention.data.molecules.molecule_set import duplicates_across_splits, read_molecules
from cell_attention.data.molecules.rebuild import rebuilt
from cell_attention.data.sources import read_source
from cell_attention.data.splits.folds import Fold, grouped_folds, holdout
from cell_attention.data.splits.scaffolds import folds_by_group, hold_out_groups, scaffolds
from cell_attention.data.splits.split_files import holdout_from_column
from cell_attention.data.targets import read_targets
from cell_attention.errors import DataError, InputError, MoleculeError

CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"


def columns_of(text: str) -> list[dict[str, int | None]]:
    """Per atom the value of every property, read back from the columns; None is "any other"."""
    features = featurise([text]).graphs.node_features
    found = []
    for row in features.tolist():
        values: dict[str, int | None] = {}
        for column in ATOMS:
            width = len(column.known) + column.other
            cells, row = row[:width], row[width:]
            assert sum(cells) == 1 or not column.other
            place = cells.index(1.0) if 1.0 in cells else None
            known = place is not None and place < len(column.known)
            values[column.name] = column.known[place] if known and place is not None else None
        assert not row
        found.append(values)
    return found


@pytest.mark.parametrize("text", [CAFFEINE, "C[N+](C)(C)CC(=O)[O-]", "[Na+].[Cl-]", "CC#N"])
def test_columns_say_what_rdkit_says(text: str) -> None:
    for values, atom in zip(columns_of(text), Chem.MolFromSmiles(text).GetAtoms(), strict=True):
        assert values["element"] == atom.GetAtomicNum()
        assert values["degree"] == atom.GetDegree()
        assert values["charge"] == atom.GetFormalCharge()
        assert values["hydrogens"] == atom.GetTotalNumHs()
        assert (values["aromatic"] == 1) == atom.GetIsAromatic()
        assert (values["ring"] == 1) == atom.IsInRing()


def test_what_has_no_column_of_its_own_shares_one() -> None:
    uranium, carbon = columns_of("[U]C")
    assert uranium["element"] is None
    assert carbon["element"] == 6
    width = sum(len(column.known) + column.other for column in BONDS)
    bonds = featurise(["C/C=C/C", r"C/C=C\C", "CC=CC", "C->[Cu]"]).graphs.edge_features
    assert bonds is not None
    assert bonds.shape == (10, width)
    stereo = bonds[:, -4:].argmax(1)[[1, 4, 7]]
    assert stereo.tolist() == [2, 1, 0]  # E, Z, not said
    assert bonds[9, 4] == 1  # dative


def test_atoms_are_nodes_and_bonds_are_found_as_edges() -> None:
    texts = [CAFFEINE, "CCO", "c1ccc2ccccc2c1", "[He]"]
    molecules = [Chem.MolFromSmiles(text) for text in texts]
    made, first, bond_number = featurise(molecules), 0, 0
    for molecule in molecules:
        for bond in molecule.GetBonds():
            edge = int(made.bond_edge[bond_number])
            ends = {first + bond.GetBeginAtomIdx(), first + bond.GetEndAtomIdx()}
            assert set(made.graphs.edge_nodes[:, edge].tolist()) == ends
            assert int(made.bonds[edge]) == int(bond.GetBondType())
            bond_number += 1
        for atom in molecule.GetAtoms():
            assert int(made.elements[first + atom.GetIdx()]) == atom.GetAtomicNum()
        first += molecule.GetNumAtoms()
    assert bond_number == made.graphs.num_edges


def test_molecules_beside_each_other_are_those_molecules_alone(
    assert_equal: Callable[[CellComplex, CellComplex], None],
) -> None:
    texts = ["C", CAFFEINE, "[Na+].[Cl-]", "F/C=C/F", "C->[Cu]", "[CH3]", "C1CC2CCC1C2", "O"]
    joined = featurise(texts)
    bonds = 0
    for number, text in enumerate(texts):
        molecule, alone = Chem.MolFromSmiles(text), featurise([text])
        assert_equal(joined.graphs[number : number + 1], alone.graphs)
        types = [int(bond.GetBondType()) for bond in molecule.GetBonds()]
        assert alone.bonds[alone.bond_edge].tolist() == types
        bonds += len(types)
    assert joined.graphs.num_edges == bonds


def test_features_do_not_depend_on_the_order_of_the_atoms() -> None:
    molecule = Chem.MolFromSmiles("C/C=C/c1ccncc1C(=O)[O-]")
    order = torch.randperm(molecule.GetNumAtoms(), generator=torch.Generator().manual_seed(3))
    other = Chem.RenumberAtoms(molecule, order.tolist())
    one, two = featurise([molecule]).graphs, featurise([other]).graphs
    assert torch.equal(one.node_features[order], two.node_features)


def test_inchi_and_smiles_of_a_molecule_give_the_same_graph(
    assert_equal: Callable[[CellComplex, CellComplex], None],
) -> None:
    inchi = "InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3"
    one, two = lift(inchi), lift(Chem.MolToSmiles(Chem.MolFromInchi(inchi)))
    assert_equal(one, two)


def test_a_molecule_that_nobody_sanitised_is_not_changed() -> None:
    raw = Chem.MolFromSmiles("c1ccccc1O", sanitize=False)
    assert lift(raw).num_polygons == 1
    with pytest.raises(RuntimeError):
        raw.GetRingInfo().NumRings()


@pytest.mark.parametrize(
    ("text", "nodes", "edges"),
    [
        ("[Na+].CC(=O)[O-]", 5, 3),  # a salt: one graph of several parts
        ("[He]", 1, 0),
        ("[H]C([H])([H])[H]", 1, 0),  # hydrogens that are written are folded into their atom
        ("[H][H]", 2, 1),
        ("[2H]C", 2, 1),  # isotopes are not
        ("C->[Cu]", 2, 1),
        ("[CH3]", 1, 0),
        ("*C", 2, 1),
    ],
)
def test_odd_molecules_have_a_stated_graph(text: str, nodes: int, edges: int) -> None:
    graphs = featurise([text]).graphs
    assert (graphs.num_nodes, graphs.num_edges) == (nodes, edges)


def knot(size: int) -> str:
    """Every atom of one half bound to every atom of the other."""
    pattern = Chem.RWMol()
    for _ in range(2 * size):
        pattern.AddAtom(Chem.Atom(0))
    for one in range(size):
        for other in range(size, 2 * size):
            pattern.AddBond(one, other, Chem.BondType.SINGLE)
    return str(Chem.MolToSmiles(pattern, canonical=False))


KNOT = knot(20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no molecule"),
        ("C1CC", r"RDKit cannot read 'C1CC' \(unclosed ring\)"),
        ("CC(C)(C)(C)C", "valence for atom # 1 C, 5"),
        ("c1cccc1", "kekulize"),
        ("C C", "a SMILES must not contain spaces"),
        ("C\x00C", "control characters"),
        ("CC>>CO", "syntax error"),
        ("InChI=1S/nonsense", "RDKit cannot read 'InChI="),
        ("C" * 300_000, "more than 200,000 characters"),
        ("C" * 10_001, "more than 10,000 atoms"),
        (KNOT, "400 bonds are too many for 40 atoms"),
    ],
)
def test_a_text_that_is_no_molecule_has_a_reason(
    text: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MoleculeError, match=message):
        read_molecule(text)
    assert capfd.readouterr().err == ""  # RDKit's own log is silent


SDF = """ethanol
  test

  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.0000    0.0000    0.0000 C   0  0
    2.0000    0.0000    0.0000 O   0  0
  1  2  1  0
  2  3  1  0
M  END
> <logp>
-0.3

> <note>
two
> <lines> and more

$$$$
broken
  test

  1  1  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 Qq  0  0
M  END
> <logp>
1.5

$$$$
"""


def test_a_reason_in_which_rdkit_cuts_a_letter_in_two_is_still_one() -> None:
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("C")).replace(" C ", "éC ")
    with pytest.raises(MoleculeError, match=r"Element '.c' not found"):
        read_block(block)


def test_records_of_an_sdf_keep_their_fields_and_their_places(tmp_path: Path) -> None:
    path = tmp_path / "mols.sdf.gz"
    path.write_bytes(gzip.compress(SDF.replace("\n", "\r\n").encode()))
    file = MoleculeFile(path, Columns(targets=("logp",)))
    assert file.header == ("title", "logp", "note")
    rows = list(file.rows)
    assert [row.cells for row in rows] == [
        ("ethanol", "-0.3", "two\n> <lines> and more"),
        ("broken", "1.5", ""),
    ]
    assert Chem.MolToSmiles(file.reader.molecule(rows[0])) == "CCO"
    with pytest.raises(MoleculeError, match="RDKit cannot read the record"):
        file.reader.molecule(rows[1])
    with pytest.raises(DataError, match="record 2: RDKit cannot read the record"):
        read_molecules(path, columns=Columns(targets=("logp",)))
    found = read_molecules(path, "skip", columns=Columns(targets=("logp",)))
    assert found.graphs.targets is not None
    assert found.graphs.targets.flatten().tolist() == pytest.approx([-0.3])
    assert found.target_names == ("logp",)


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mols.csv"
    path.write_text("id,mol,y,set\na,CC,1.5,train\nb,CCC,2,test\nc,CCCC,,val\n")
    found = read_molecules(path, columns=Columns("mol", ("y",), "set"))
    assert found.graphs.targets is not None
    assert found.graphs.targets.flatten().tolist() == [1.5, 2.0]
    assert found.molecules is not None
    assert found.molecules.parts == ("train", "test")
    assert found.molecules.lines == (2, 3)
    assert found.notes == ("1 molecule without a target is left out",)
    for wrong in (Columns("smiles"), Columns("mol", ("z",)), Columns("mol", ("y",), "w")):
        with pytest.raises(InputError, match="not a column; it has id, mol, y, set"):
            read_molecules(path, columns=wrong)
    assert read_molecules(path, columns=Columns("mol")).target_names == ("y",)


def test_every_bad_row_is_reported_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "mols.csv"
    path.write_text("smiles,y\nCC,1\nC1CC,0\nCCC,x\nCCCC,2\n\nCO\n")
    found = read_molecules(path, "report")
    assert len(found.graphs) == 2
    assert found.notes == (
        "3 rows left out, the first on line 3",
        "line 3: RDKit cannot read 'C1CC' (unclosed ring)",
        "line 4: 'x' in column 'y' is not a number (CCC)",
        "line 7: 2 cells are expected, got 1",
    )


@pytest.mark.parametrize(
    ("cells", "task", "names", "values"),
    [
        (["0", "1", "1.0"], "auto", ("0", "1"), [0, 1, 1]),
        (["no", "yes", "no"], "auto", ("no", "yes"), [0, 1, 0]),
        (["0", "1", "2"], "auto", (), [[0.0], [1.0], [2.0]]),
        (["0", "2", "10"], "classification", ("0", "2", "10"), [0, 1, 2]),
        (["0", "1", "1"], "regression", (), [[0.0], [1.0], [1.0]]),
        (["-1.5e3", "NaN", ".5"], "auto", (), [[-1500.0], [0.5]]),
    ],
)
def test_cells_tell_their_task(
    cells: list[str], task: str, names: tuple[str, ...], values: list[object]
) -> None:
    found = read_targets("t.csv", ("y",), [[cell] for cell in cells], task=task)  # type: ignore[arg-type]
    assert found.class_names == names
    assert found.values is not None
    assert found.values.tolist() == values


def test_several_columns_are_labels_with_gaps_or_values() -> None:
    found = read_targets("t.csv", ("a", "b"), [["0", "1"], ["", "0"], ["", ""], ["1", "nan"]])
    assert found.kept == (0, 1, 3)
    assert found.blank == (2,)
    assert found.values is not None
    assert found.values.nan_to_num(-1).tolist() == [[0, 1], [-1, 0], [1, -1]]
    wrong = read_targets("t.csv", ("a", "b"), [["0", "1"], ["2", "0"]], task="classification")
    assert wrong.faults == {1: "several target columns of classes must hold 0, 1 or nothing"}


def test_repeated_and_contradictory_molecules_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "mols.csv"
    path.write_text("smiles,y\nCCO,1\nOCC,0\nCC,1\nCC,1\nC,0\n")
    found = read_molecules(path)
    assert found.remarks[-1] == (
        "2 molecules are in several rows, 4 rows in all; 1 of them with different targets"
    )
    assert found.molecules is not None
    (said,) = duplicates_across_splits(found.molecules, [Fold((1, 2, 3), (0, 4))])
    assert said == "1 validation molecule is a duplicate of training molecules"


def test_scaffolds_stay_on_one_side() -> None:
    rings = ["c1ccccc1", "C1CCCCC1", "C1CCCC1", "c1ccncc1", "c1ccoc1"]
    smiles = [ring + "C" * tail for ring in rings for tail in range(8)]
    smiles += ["C" * n for n in range(1, 9)]
    groups = scaffolds(smiles)
    assert len(set(groups)) == 6
    fold = holdout(torch.zeros(48).long(), 0.2, 0.2, seed=7, groups=groups)
    sides = [{groups[i] for i in part} for part in (fold.train, fold.validation, fold.test)]
    for one, other in combinations(sides, 2):
        assert not one & other
    assert sorted(fold.train + fold.validation + fold.test) == list(range(48))
    assert [len(fold.validation), len(fold.test)] == [8, 8]
    folds = grouped_folds(groups, 3)
    assert sorted(i for one in folds.folds for i in one.validation) == list(range(48))
    for one in folds.folds:
        assert len(one.validation) == 16
        assert not {groups[i] for i in one.train} & {groups[i] for i in one.validation}
    with pytest.raises(InputError, match=r"folds must lie in 2…6"):
        folds_by_group(groups, 7, 0)
    with pytest.raises(InputError, match="no scaffold is small enough"):
        hold_out_groups(range(8), ["a"] * 8, share=0.1, seed=0)


def test_a_column_tells_the_division() -> None:
    fold = holdout_from_column("t.csv", ["train", "Valid", " test", "training"])
    assert (fold.train, fold.validation, fold.test) == ((0, 3), (1,), (2,))
    with pytest.raises(DataError, match="must be train, validation or test, got 'dev'"):
        holdout_from_column("t.csv", ["train", "dev"])
    with pytest.raises(DataError, match="no row of the split column is validation"):
        holdout_from_column("t.csv", ["train", "test"])


def test_mutag_graphs_are_the_molecules_that_their_codes_say() -> None:
    mutag = read_source("MUTAG")
    featuriser = featuriser_of(mutag.featuriser)
    faults, molecules, kept = [], [], []
    for number in range(len(mutag.graphs)):
        try:
            molecules.append(rebuilt(mutag.graphs[number : number + 1], mutag.featuriser))
            kept.append(number)
        except MoleculeError as error:
            faults.append((number, str(error)))
    # Two graphs of the published set have a carbon with five bonds.
    assert [number for number, _ in faults] == [82, 187]
    assert all("valence for atom # 10 C, 5" in fault for _, fault in faults)
    graphs = mutag.graphs[kept]
    again = featurise(molecules, featuriser).graphs
    assert torch.equal(again.node_features, graphs.node_features)
    assert torch.equal(again.edge_nodes, graphs.edge_nodes)
    assert graphs.edge_features is not None
    assert again.edge_features is not None
    assert torch.equal(again.edge_features, graphs.edge_features)


def test_only_graphs_of_elements_and_bonds_are_rebuilt() -> None:
    with pytest.raises(InputError, match="elements and bond types only"):
        rebuilt(featurise(["CCO"]).graphs, Featuriser().record)


@pytest.mark.parametrize("name", ["PTC_MM", "PTC_MR", "PTC_FM", "PTC_FR"])
def test_most_ptc_graphs_are_molecules(name: str, data_dir: Path) -> None:
    found = read_source(name, data_dir)
    rebuilt_ones = 0
    for number in range(len(found.graphs)):
        try:
            rebuilt(found.graphs[number : number + 1], found.featuriser)
            rebuilt_ones += 1
        except MoleculeError:
            continue
    assert rebuilt_ones >= len(found.graphs) - 8


def test_features_of_another_version_or_kind_are_refused() -> None:
    assert featuriser_of(Featuriser().record) == Featuriser()
    with pytest.raises(InputError, match="version 1 of the molecule features"):
        featuriser_of({"kind": "molecule", "version": 1})
    with pytest.raises(InputError, match="not known to be atoms and bonds"):
        featuriser_of({"kind": "tu", "node_labels": [[0, 1]]})
    with pytest.raises(InputError, match="unknown"):
        featuriser_of({"kind": "tu", "elements": ["Xx"], "bonds": ["single"]})


def test_no_row_is_swallowed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('smiles,y\nCC,1\n"CCO,2\nCCC,3\nCCCC,4\n')
    with pytest.raises(DataError, match="line 3: unexpected end of data"):
        read_molecules(path, "skip")
    path = tmp_path / "t.smi"
    path.write_bytes(b"CCO a\rCCC b\rCCCC c\r")
    assert [row.cells[1] for row in MoleculeFile(path).rows] == ["a", "b", "c"]
    path = tmp_path / "t.sdf"
    path.write_bytes(SDF.replace("\n", "\r").encode())
    assert len(list(MoleculeFile(path).rows)) == 2
    twice = SDF.replace("> <note>", "> <logp>").replace("> <logp>\n1.5", "> DT14\n1.5")
    path.write_text(twice)
    file = MoleculeFile(path)
    assert file.header == ("title", "logp", "DT14")
    assert [row.cells for row in file.rows] == [
        ("ethanol", "-0.3\ntwo\n> <lines> and more", ""), ("broken", "", "1.5"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        ("smiles,y,y", Columns(), "target_columns 'y' is not unique"),
        ("smiles,y", Columns(targets=("y", "y")), "target_columns 'y' is named twice"),
        ("smiles,y", Columns(targets=("smiles",)), "target_columns 'smiles' is named twice"),
    ],
)
def test_columns_are_named_once(
    header: str, columns: Columns, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\nCC{',1' * header.count(',')}\n")
    with pytest.raises(InputError, match=message):
        read_molecules(path, columns=columns)


def test_what_is_no_target_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(",smiles,y\n0,CC,1\n1,CCC,0\n")  # with the index that pandas writes
    found = read_molecules(path, columns=Columns("smiles"))
    assert found.target_names == ("y",)
    path.write_text("smiles,a,b\nCC,1,\nCCC,0,\n")  # a blank column teaches nothing
    found = read_molecules(path)
    assert found.target_names == ("a",)
    assert any("'b'" in text or " b" in text for text in (*found.notes, *found.remarks))
    path.write_text("smiles;y\n" + "".join(f"{'C' * n};0,{n}\n" for n in range(1, 9)))
    with pytest.raises(DataError, match="decimal commas, such as '0,1'; try decimal=,"):
        read_molecules(path)
    path.write_text("smiles;y\n" + "".join(f"{'C' * n};a{n}\n" for n in range(1, 9)))
    with pytest.raises(DataError, match="8 different classes in 8 rows"):
        read_molecules(path)
    path.write_bytes("smiles,y\nCC,1\nCCC,é\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 3: not UTF-8 text"):
        read_molecules(path)
    path = tmp_path / "t.smi"
    path.write_text("CC\n")
    with pytest.raises(InputError, match=r"smiles_column is for \.csv files"):
        read_molecules(path, columns=Columns("smiles"))


def test_gaps_are_no_contradictions(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,a,b\nCC,1,\nCC,,0\nCCC,1,0\nCCC,0,1\n")
    assert "1 of them with different targets" in read_molecules(path).remarks[-1]


def test_classes_that_are_large_numbers_keep_their_names() -> None:
    cells = [["1000001"], ["1000002"], ["1000001"], ["0.5"], ["1000002"], ["0.5"]]
    found = read_targets("t.csv", ("y",), cells, task="classification")
    assert found.class_names == ("0.5", "1000001", "1000002")


def test_rings_of_eight_are_polygons_of_molecules() -> None:
    assert lift("C1CCCCCCC1").num_polygons == 1
    assert lift("C1CCCCCCC1", max_polygon=6).num_polygons == 0
    assert lift(nx.cycle_graph(8)).num_polygons == 0
