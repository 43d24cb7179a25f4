// The table of all graphs: sorted by any heading, filtered by text and by whether the prediction is correct.
const columns = [
  { key: "row", title: "#", number: true, value: (graph) => graph.row },
  { key: "name", title: "Name", value: (graph) => graph.name },
  { key: "prediction", title: "Prediction", value: (graph) => graph.prediction, natural: true },
  { key: "confidence", title: "Confidence", number: true, value: (graph) => graph.confidence, when: !page.values },
  { key: "truth", title: "Truth", value: (graph) => graph.truth, natural: true, when: graphs.some((g) => g.truth !== "") },
  { key: "warning", title: "Warning", value: (graph) => graph.warning, when: graphs.some((g) => g.warning) },
  { key: "area", title: "Faithful", number: true, value: (graph) => graph.trust && graph.trust.area.ours, when: graphs.some((g) => g.trust) },
].filter((column) => column.when !== false);

const sorting = { key: "row", down: false };
const body = document.querySelector("#graphs tbody");
// Thumbnails are drawn when they become visible.
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watcher.unobserve(entry.target);
    thumbnail(entry.target);
  }
}, { rootMargin: "200px" });
const rows = graphs.map((graph) => tableRow(graph));
// Rows of the source that are no graphs stay at the end.
const unread = (page.unread || []).map((one) => ({ ...one, line: unreadRow(one) }));

function unreadRow(one) {
  const line = document.createElement("tr");
  line.className = "unread";
  line.insertCell();
  Object.assign(line.insertCell(), { className: "number", textContent: one.row });
  Object.assign(line.insertCell(), { className: "name", textContent: one.text });
  Object.assign(line.insertCell(), { colSpan: columns.length - 2, textContent: one.reason });
  return line;
}

function tableRow(graph) {
  const row = document.createElement("tr");
  const thumb = document.createElement("td");
  thumb.className = "thumb";
  row.append(thumb);
  for (const column of columns) {
    const cell = document.createElement("td");
    const value = column.value(graph);
    if (column.number) cell.className = "number";
    if (column.key === "name") {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = graph.name || "(no name)";
      cell.className = "name";
      cell.append(button);
    } else if (column.key === "truth") {
      cell.textContent = graph.truth + (graph.right === false ? " ✗" : graph.right ? " ✓" : "");
      if (graph.right === false) cell.className = "wrong";
    } else if (column.key === "warning") {
      cell.className = "warning";
      cell.textContent = graph.warning;
      cell.title = graph.warning;
    } else cell.textContent = column.key === "row" ? value : typeof value === "number" ? shown(value) : value;
    // Below one half the threshold of the model decides; the sentence says where it lies.
    if (column.key === "confidence" && value < 0.5) Object.assign(cell, { title: graph.said, textContent: `${shown(value)} *` });
    row.append(cell);
  }
  row.addEventListener("click", () => show(graphs.indexOf(graph)));
  watcher.observe(row);
  return row;
}

function thumbnail(row) {
  row.firstChild.replaceChildren(smallPicture(graphs[rows.indexOf(row)]));
}

function smallPicture(graph) {
  const [edges, polygons] = [graph.edge, graph.polygon].map((values) => relative(graph, values));
  const { svg } = drawn(graph, { edges, polygons, gone: new Set(), lit: [] }, "");
  svg.setAttribute("aria-hidden", "true");
  return svg;
}

function compare(a, b, column) {
  const [x, y] = [column.value(a), column.value(b)];
  const blank = (value) => value === null || value === undefined || value === "";
  if (blank(x) || blank(y)) return blank(x) - blank(y);
  const numbers = column.number || (column.natural && Number.isFinite(Number(x)) && Number.isFinite(Number(y)));
  const order = numbers ? x - y : String(x).localeCompare(String(y), "en");
  return sorting.down ? -order : order;
}

/** The numbers of the graphs that are shown, in their order. */
function listed() {
  const words = document.getElementById("filter").value.trim().toLowerCase();
  const which = document.getElementById("which").value;
  const column = columns.find((one) => one.key === sorting.key);
  return graphs.map((_, number) => number)
    .filter((number) => {
      const graph = graphs[number];
      if (which !== "all" && graph.right !== (which === "right")) return false;
      return [graph.name, graph.text, graph.prediction, graph.truth, graph.warning].some((text) => text.toLowerCase().includes(words));
    })
    .sort((a, b) => compare(graphs[a], graphs[b], column) || a - b);
}

function refreshTable() {
  const numbers = listed();
  const words = document.getElementById("filter").value.trim().toLowerCase();
  const all = document.getElementById("which").value === "all";
  const others = unread.filter((one) => all && [one.text, one.reason].some((text) => text.toLowerCase().includes(words)));
  body.replaceChildren(...numbers.map((number) => rows[number]), ...others.map((one) => one.line));
  const left = page.left_out ? `, ${page.left_out} row${page.left_out > 1 ? "s" : ""} cannot be read` : "";
  document.getElementById("count").textContent = (numbers.length === graphs.length
    ? `${graphs.length} graphs` : `${numbers.length} of ${graphs.length} graphs`) + left;
  document.querySelectorAll("#graphs th[data-key]").forEach((heading) => {
    const chosen = heading.dataset.key === sorting.key;
    heading.setAttribute("aria-sort", chosen ? (sorting.down ? "descending" : "ascending") : "none");
  });
}

function makeHeadings() {
  const line = document.querySelector("#graphs thead tr");
  const first = document.createElement("td");
  line.append(first);
  for (const column of columns) {
    const heading = document.createElement("th");
    heading.scope = "col";
    heading.dataset.key = column.key;
    if (column.number) heading.className = "number";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.title;
    button.addEventListener("click", () => {
      sorting.down = sorting.key === column.key ? !sorting.down : Boolean(column.number && column.key !== "row");
      sorting.key = column.key;
      refreshTable();
    });
    heading.append(button);
    line.append(heading);
  }
  document.getElementById("filter").addEventListener("input", refreshTable);
  document.getElementById("which").addEventListener("change", refreshTable);
  document.getElementById("which-label").hidden = !graphs.some((graph) => graph.right !== null);
}
