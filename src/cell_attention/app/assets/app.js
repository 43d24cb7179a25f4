// The box of the local page: what is typed or dropped is predicted by the server, twenty at a time,
// and joins the table of this visit, whose pictures the report's own script draws.
const served = page.served;
const visit = [];  // every row of this visit with its prediction or its error, for the download
let asking = null;  // what stops the requests that are under way

async function ask(path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const found = await answer.json().catch(() => ({ error: `The server answered with status ${answer.status}.` }));
  if (!answer.ok && !found.predictions) throw new Error(found.error);
  return found;
}

/** The molecules in the box: one per line, a name after the first space. */
function typed() {
  return by("smiles").value.split(/\r\n|\r|\n/)
    .map((text, number) => ({ line: number + 1, text: text.trim() }))
    .filter(({ text }) => text !== "")
    .map(({ line, text }) => {
      const [smiles] = text.split(/\s/, 1);
      return { line, smiles, name: text.slice(smiles.length).trim() };
    });
}

/** Predict and explain rows, in parts; the first picture opens as soon as it is there. */
async function predict(asked) {
  if (asking) asking.abort();
  const mine = new AbortController();
  asking = mine;
  by("problem").textContent = "";
  by("notes").replaceChildren();
  if (!asked.length) return complain("There is no molecule: type or paste a SMILES, one per line.");
  if (asked.length > served.rows) {
    return complain(`${asked.length} molecules are too many for this page (at most ${served.rows}); use cell-attention predict or explain.`);
  }
  const [faults, warned] = [[], []];
  try {
    for (let first = 0; first < asked.length; first += served.at_once) {
      const part = asked.slice(first, first + served.at_once);
      by("progress").textContent = `${first} of ${asked.length} …`;
      const body = { smiles: part.map(({ smiles }) => smiles), names: part.map(({ name }) => name), forms: ["drawing"] };
      const { predictions } = await ask("/api/explain", body, mine.signal);
      predictions.forEach((row, place) => add(row, part[place], first + place === 0));
      refreshTable();
      faults.push(...predictions.map(({ error }) => error).filter(Boolean));
      warned.push(...predictions.map(({ warning }) => warning).filter(Boolean));
    }
    by("progress").textContent = `${asked.length} of ${asked.length} done`;
    const doubtful = warned.length ? `, ${warned.length} with a warning` : "";
    if (faults.length) by("problem").textContent = asked.length === 1 ? faults[0] : `${faults.length} of ${asked.length} lines cannot be predicted${doubtful}:`;
  } catch (error) {
    if (error.name === "AbortError") return;
    complain(error.message);
  } finally {
    if (asking === mine) asking = null;
  }
}

/** Add a row to this visit; the first one of a request opens its picture. */
function add(row, { line, smiles, name }, open) {
  const { drawing, ...cells } = row;
  visit.push(cells);
  by("results").disabled = false;
  if (row.error) note(`Line ${line}, ${name || smiles}: ${row.error}`);
  else if (row.warning) note(`Line ${line}, ${name || smiles}: ${row.warning}`);
  if (!drawing) return;
  drawing.row = visit.length;
  drawing.said += doubts(cells);
  graphs.push(drawing);
  rows.push(tableRow(drawing));
  if (open || state.number < 0 || by("detail").hidden) openLast();
}

/** How far to trust a prediction, as the end of its sentence: interval, spread, nearest molecule. */
function doubts(cells) {
  return served.columns.map((name, place) => {
    const [before, after] = [served.columns[place - 1], served.columns[place + 1]];
    const stem = name.replace(/(low|spread)$/, "");
    if (cells[name] === null || cells[name] === undefined) return "";
    if (name === `${stem}low` && before === `${stem}prediction` && after === `${stem}high`) {
      return `; nine of ten true values of ${stem.slice(0, -1) || "it"} are meant to lie in ${shown(cells[name])} … ${shown(cells[after])}`;
    }
    if (name === `${stem}spread`) return `; ${name} ${shown(cells[name])}`;
    if (name !== "nearest_similarity") return "";
    const { nearest_training: nearest, nearest_target: target } = cells;
    const which = nearest ? `, ${nearest}${target ? ` (${target})` : ""}` : "";
    return `; similarity to the nearest training molecule ${shown(cells[name])}${which}`;
  }).join("");
}

function openLast() {
  refreshTable();
  show(graphs.length - 1);
  by("smiles").focus({ preventScroll: true });
}

function complain(text) {
  by("progress").textContent = "";
  by("problem").textContent = text;
  by("smiles").focus();
}

function note(text) {
  const item = document.createElement("li");
  item.textContent = text;
  by("notes").append(item);
}

/** Read a file by the rules of the command line, which the server knows. */
async function take(file) {
  if (!/\.(csv|tsv|smi)$/i.test(file.name)) return complain(`${file.name}: a .csv, .tsv or .smi file is expected.`);
  if (file.size > 0.9 * served.body) return complain(`${file.name} is too large for this page (${file.size} bytes); use cell-attention predict.`);
  by("problem").textContent = "";
  try {
    const found = await ask("/api/read", { name: file.name, text: await file.text() });
    by("smiles").value = found.rows.map(({ smiles, name }) => (name ? `${smiles} ${name}` : smiles)).join("\n");
    await predict(found.rows);
  } catch (error) {
    complain(error.message);
  }
}

/** All rows of this visit, with the columns of `cell-attention predict`. */
function visitText() {
  const titles = ["smiles", "name", ...served.columns, "warning", "error"];
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [titles, ...visit.map((row) => titles.map((title) => row[title]))]
    .map((one) => one.map(cell).join(",")).join("\n") + "\n";
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([visitText()], { type: "text/csv" }));
  link.download = "predictions.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function prepare() {
  by("ask").addEventListener("submit", (event) => { event.preventDefault(); predict(typed()); });
  by("smiles").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) predict(typed());
    if (event.key === "Escape") event.stopPropagation();
  });
  document.querySelectorAll("[data-smiles]").forEach((button) => button.addEventListener("click", () => {
    by("smiles").value = `${button.dataset.smiles} ${button.textContent}`;
    predict(typed());
  }));
  by("file").addEventListener("change", () => { if (by("file").files.length) take(by("file").files[0]); by("file").value = ""; });
  by("results").addEventListener("click", download);
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      by("box").classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    });
  }
  if (!served.reads_molecules) {
    by("ask").querySelectorAll("textarea, button, input").forEach((part) => { part.disabled = true; });
    by("problem").textContent = "This model was trained on graphs that are not molecules; send graphs to the API (/docs).";
  } else by("smiles").focus();
}

prepare();
