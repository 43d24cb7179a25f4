// What functional groups and scaffolds carry over all graphs, and the molecules of one scaffold.
let aligned = null;  // the scaffold whose molecules are shown

function showTotals() {
  if (!(page.groups || []).length) return;  // the local page, or graphs that are no molecules
  by("totals").hidden = false;
  by("groups").replaceChildren(cellTable(
    ["group", "molecules", "mean", "sum", "for", "against", "bonds"],
    page.groups.map((row) => [row.group, row.molecules, signed(row.mean), signed(row.importance), signed(row.speaks_for), signed(row.speaks_against), signed(row.bonds)]),
  ));
  by("scaffolds").replaceChildren(cellTable(
    ["scaffold", "molecules", "mean", "sum", "outside it"],
    page.scaffolds.map((row) => [scaffoldButton(row), row.members.length, signed(row.mean), signed(row.importance), signed(row.outside)]),
  ));
}

const scaffoldName = (row) => row.scaffold || "no ring";

function scaffoldButton(row) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = scaffoldName(row);
  button.addEventListener("click", () => showMembers(aligned === row ? null : row));
  return button;
}

/** Draw the molecules of a scaffold, all in the same position; null draws none. */
function showMembers(row) {
  aligned = row;
  if (row === null) return by("aligned").replaceChildren();
  const title = document.createElement("h3");
  title.textContent = `${scaffoldName(row)}: ${row.members.length} molecule${row.members.length > 1 ? "s" : ""}`;
  return by("aligned").replaceChildren(title, ...row.members.map((number) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(smallPicture(graphs[number]), graphs[number].name || "(no name)");
    button.addEventListener("click", () => show(number));
    return button;
  }));
}
