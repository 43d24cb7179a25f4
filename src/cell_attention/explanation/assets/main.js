// What the page does when a button or key is pressed.
function options(select, texts) {
  select.replaceChildren(...texts.map((text, value) => new Option(text, value)));
}

function chooseLayer(layer) {
  state.layer = layer;
  const heads = page.heads[layer];
  options(by("head"), [...Array.from({ length: heads }, (_, head) => String(head + 1)), "mean"]);
  state.head = heads;
  by("head").value = heads;
  by("layer").value = layer;
  state.step = state.view === "importance" ? state.step : layer;
  by("step").value = state.step;
}

function save(text, type, ending) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = `explanation-${current().row}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function pictureText() {
  const svg = by("picture").firstChild.cloneNode(true);
  svg.querySelector('[data-part="hits"]').remove();
  const [left, top, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  // The saved picture has the meaning of its colours below it.
  const foot = width / 16;
  svg.setAttribute("viewBox", [left, top, width, height + foot].join(" "));
  svg.setAttribute("width", Math.round(48 * width));
  svg.setAttribute("height", Math.round(48 * (height + foot)));
  svg.querySelector("rect").setAttribute("height", height + foot);
  const size = foot / 12;
  const bar = by("legend").querySelector("svg");
  const words = [...by("legend").childNodes].filter((node) => node !== bar).map((node) => node.textContent.trim());
  const group = element("g", { transform: `translate(${left + size} ${top + height}) scale(${size})`, "font-family": "system-ui, sans-serif", "font-size": 4, fill: inks().ink });
  if (bar) {
    [...bar.childNodes].forEach((part, step) => group.append(element("rect", { x: step, y: 1, width: 1.1, height: 3, fill: part.getAttribute("fill") })));
    const [ends, ...meaning] = words[1].split(": ");
    group.append(element("text", { x: 42, y: 4.2 }, `${words[0]} – ${ends}`), element("text", { x: 0, y: 9 }, meaning.join(": ")));
  } else group.append(element("text", { x: 0, y: 4.2 }, words.join(" ")));
  svg.append(group);
  return new XMLSerializer().serializeToString(svg);
}

/** The same table as `Explanation.to_csv`. */
function tableText() {
  const graph = current();
  const { edges, left, layers } = opened(graph);
  const lines = [["row", "graph", "cell", "number", "nodes", "importance", "survives", "scores"]];
  edges.forEach((ends, e) => {
    const survives = left.slice(1).filter((alive) => alive.includes(e)).length;
    const scores = layers.filter(({ score, seen }) => score !== null && seen.includes(e)).map(({ score, seen }) => score[seen.indexOf(e)]);
    lines.push([graph.row, graph.name, "edge", e, ends.join("-"), graph.edge[e], survives, scores.join(" ")]);
  });
  graph.polygons.forEach((nodes, p) => lines.push([graph.row, graph.name, "polygon", p, nodes.join("-"), graph.polygon[p], "", ""]));
  graph.node.forEach((value, node) => lines.push([graph.row, graph.name, "node", node, node, value, "", ""]));
  const cell = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return lines.map((one) => one.map(cell).join(",")).join("\n") + "\n";
}

/** The graph before or after this one, in the order of the table. */
function move(steps) {
  const numbers = listed();
  const place = numbers.indexOf(state.number);
  const other = place < 0 ? 0 : Math.min(numbers.length - 1, Math.max(0, place + steps));
  if (numbers.length) show(numbers[other]);
}

function start() {
  makeHeadings();
  refreshTable();
  options(by("layer"), page.heads.map((_, layer) => String(layer + 1)));
  by("step").max = page.heads.length;
  if (page.heads.length) chooseLayer(0);
  else {  // a network without attention has importances alone
    for (const name of ["view", "layer", "head", "step"]) by(name).closest("label").hidden = true;
    state.step = 0;
    by("how").textContent = "Importances are gradient × input, since this network has no attention.";
  }
  by("view").addEventListener("change", () => { state.view = by("view").value; refresh(); });
  by("layer").addEventListener("change", () => { chooseLayer(Number(by("layer").value)); refresh(); });
  by("head").addEventListener("change", () => { state.head = Number(by("head").value); refresh(); });
  by("top").addEventListener("input", () => { state.top = Number(by("top").value); refresh(); });
  by("step").addEventListener("input", () => { state.step = Number(by("step").value); refresh(); });
  by("numbers").addEventListener("change", (event) => { state.numbers = event.target.checked; refresh(); });
  by("svg").addEventListener("click", () => save(pictureText(), "image/svg+xml", "svg"));
  by("csv").addEventListener("click", () => save(tableText(), "text/csv", "csv"));
  by("previous").addEventListener("click", () => move(-1));
  by("next").addEventListener("click", () => move(1));
  by("close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !by("detail").hidden && event.target.id !== "filter") close(); });
  by("theme").setAttribute("aria-pressed", String(isDark()));
  by("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    by("theme").setAttribute("aria-pressed", String(isDark()));
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  showTotals();
  if (page.summary) by("summary").append(trustTable(page.summary));
  else by("summary").textContent = "Faithfulness was not measured.";
  addEventListener("hashchange", followLink);
  followLink();
  if (graphs.length === 1) show(0);
}

/** Open the graph that the address names by its row. */
function followLink() {
  const asked = graphs.findIndex((graph) => `#${graph.row}` === location.hash);
  if (asked >= 0) show(asked);
}

/** Draw all pictures in the colours of the theme. */
function repaint() {
  rows.filter((row) => row.firstChild.firstChild).forEach(thumbnail);
  if (aligned !== null) showMembers(aligned);
  if (!by("detail").hidden) {
    by("trust").replaceChildren(...trust(current()));
    refresh();
  }
}

start();
