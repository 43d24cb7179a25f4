// The large picture of one graph: what colours it, which layer and head, the top edges, the pooling.
const by = (id) => document.getElementById(id);
const state = { number: -1, view: "importance", layer: 0, head: 0, top: 0, step: 0, edge: null, numbers: false };
const current = () => graphs[state.number];
const layerName = (number) => `layer ${number + 1}`;
const headName = () => (state.head === page.heads[state.layer] ? "mean of heads" : `head ${state.head + 1}`);

/** The value of every edge in the chosen view; null where the layer did not see it. */
function values(graph) {
  const { edges, layers } = opened(graph);
  if (state.view === "importance") return graph.edge;
  const { seen, score } = layers[state.layer];
  const found = edges.map(() => null);
  for (const e of seen) found[e] = 0;
  if (state.view === "pooling") {
    if (score !== null) seen.forEach((e, place) => { found[e] = score[place]; });
  } else for (const { sender, weights } of layers[state.layer][state.view]) found[sender] += weights[state.head];
  return found;
}

/** The value that has the last colour of the scale. */
function scaleEnd(graph) {
  const also = state.view === "importance" ? graph.polygon : [];
  return largest([...values(graph).filter((value) => value !== null), ...also]);
}

/** The options of `drawn`. */
function look(graph) {
  const { edges, sides, left } = opened(graph);
  const found = values(graph);
  const ranked = found.map((value, e) => [value, e]).filter(([value]) => value !== null)
    .sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const kept = new Set(ranked.slice(0, state.top).map(([, e]) => e));
  const most = scaleEnd(graph);
  const alive = new Set(left[state.step]);
  const intact = whole(sides, left[state.step]);
  const shares = relative(graph, graph.polygon);
  const fill = { importance: (p) => shares[p], upper: () => "quiet", pooling: () => "quiet", lower: () => null };
  return {
    edges: found.map((value, e) => (kept.has(e) ? (most > 0 ? value / most : 0) : null)),
    polygons: graph.polygons.map((_, p) => (intact[p] ? fill[state.view](p) : null)),
    gone: new Set(edges.map((_, e) => e).filter((e) => !alive.has(e))),
    lit: heard(graph),
    numbers: state.numbers,
  };
}

/** The edge under the pointer, and the edges that it hears, with their weights. */
function heard(graph) {
  if (state.edge === null) return [];
  const layer = opened(graph).layers[state.layer];
  if (layer === undefined) return [{ edge: state.edge, side: "self", weight: null }];
  const sides = ["lower", "upper"].filter((side) => !["lower", "upper"].includes(state.view) || side === state.view);
  const found = sides.flatMap((side) => layer[side]
    .filter((pair) => pair.receiver === state.edge)
    .map((pair) => ({ edge: pair.sender, side, weight: pair.weights[state.head] })));
  return [{ edge: state.edge, side: "self", weight: null }, ...found];
}

function show(number) {
  const fresh = by("detail").hidden;
  state.number = number;
  const graph = current();
  const count = graph.edges.length / 2;
  state.top = count;
  state.step = state.view === "importance" ? 0 : state.layer;
  state.edge = null;
  by("detail").hidden = false;
  document.querySelector("main").classList.add("open");
  by("name").textContent = graph.name || "(no name)";
  const truth = graph.truth === "" ? "" : `; truth ${graph.truth}`;
  const written = graph.text && graph.text !== graph.name ? `${graph.text}. ` : "";
  by("said").textContent = `Row ${graph.row}: ${written}${graph.said}${truth}. ${graph.warning}`;
  by("top").max = count;
  by("top").value = count;
  by("step").value = state.step;
  rows.forEach((row) => row.removeAttribute("aria-current"));
  rows[number].setAttribute("aria-current", "true");
  by("trust").replaceChildren(...trust(graph));
  history.replaceState(null, "", `#${graph.row}`);
  refresh();
  if (fresh) by("detail").focus({ preventScroll: true });
  const { top } = by("detail").getBoundingClientRect();
  if (top < 0 || top > 0.6 * innerHeight) by("detail").scrollIntoView({ block: "start" });
}

function close() {
  by("detail").hidden = true;
  document.querySelector("main").classList.remove("open");
  const row = rows[state.number];
  row.removeAttribute("aria-current");
  history.replaceState(null, "", "#");
  row.querySelector("button").focus();
}

/** Draw everything again; pointing at an edge only changes what is highlighted. */
function refresh() {
  const graph = current();
  const { edges, left } = opened(graph);
  by("top-value").textContent = `${state.top} of ${edges.length} edges`;
  by("step-value").textContent = state.step === 0 ? `input, ${edges.length} edges` : `after ${layerName(state.step - 1)}, ${left[state.step].length} edges`;
  const { svg, points, thick } = drawn(graph, look(graph), `${graph.name}: ${graph.said}`);
  const hits = element("g", { "data-part": "hits", stroke: "transparent", "stroke-linecap": "round" });
  edges.forEach((ends, e) => {
    const hit = line(points, ends, "transparent", 0.45 * thick, { "data-hit": e });
    hit.style.pointerEvents = "stroke";
    hit.addEventListener("mouseenter", () => point(e));
    hit.addEventListener("mouseleave", () => point(null));
    hits.append(hit);
  });
  svg.append(hits);
  by("picture").replaceChildren(svg);
  by("legend").replaceChildren(...legend(graph));
  listEdges(graph);
  listPolygons(graph);
  listDescriptors(graph);
  listNearest(graph);
  say();
}

function point(edge) {
  state.edge = edge;
  const graph = current();
  const { svg } = drawn(graph, look(graph), "");
  for (const part of ["lit", "weights"]) {
    by("picture").querySelector(`[data-part="${part}"]`).replaceWith(svg.querySelector(`[data-part="${part}"]`));
  }
  say();
}

function say() {
  const graph = current();
  if (state.edge === null) {
    const what = page.heads.length ? "which edges it hears" : "what it carries";
    by("heard").textContent = `Point at an edge, or select it in the list below, to see ${what}.`;
    return;
  }
  if (!page.heads.length) {
    by("heard").textContent = `${edgeName(graph, state.edge)} carries ${signed(graph.edge[state.edge])}.`;
    return;
  }
  const found = heard(graph).slice(1).sort((a, b) => b.weight - a.weight)
    .map(({ edge, side, weight }) => `${edgeName(graph, edge)} ${weight.toFixed(2)} (${side})`);
  const who = `${edgeName(graph, state.edge)} carries ${signed(graph.edge[state.edge])}. In ${layerName(state.layer)}, ${headName()}, it hears `;
  by("heard").textContent = who + (found.length ? found.join(", ") : "no other edge") + ".";
}

function listEdges(graph) {
  const found = values(graph);
  const order = found.map((_, e) => e).sort((a, b) => (found[b] ?? -Infinity) - (found[a] ?? -Infinity) || a - b);
  const title = state.view === "importance" ? "share" : state.view === "pooling" ? "score" : "received";
  by("edges").replaceChildren(listing(["edge", title], order.map((e) => [edgeName(graph, e), found[e] === null ? "gone" : signed(found[e]), e]), point));
}

function listPolygons(graph) {
  const order = graph.polygon.map((_, p) => p).sort((a, b) => graph.polygon[b] - graph.polygon[a] || a - b);
  const total = graph.polygon.reduce((sum, value) => sum + Math.abs(value), 0);
  const intact = whole(opened(graph).sides, opened(graph).left[state.step]);
  const lines = order.map((p) => {
    const nodes = graph.polygons[p];
    const part = total > 0 ? ` (${Math.round(100 * Math.abs(graph.polygon[p]) / total)} %)` : "";
    return [`${nodes.length}: ${nodes.map((node) => nodeName(graph, node)).join(" ")}${intact[p] ? "" : " (broken)"}`, signed(graph.polygon[p]) + part];
  });
  if (lines.length) by("polygons").replaceChildren(listing(["nodes", "share"], lines));
  else by("polygons").textContent = `There are no polygons of up to ${page.max_polygon} edges.`;
}

/** The descriptors of the molecule that the prediction rests on most. */
function listDescriptors(graph) {
  by("described").hidden = !graph.descriptors.length;
  const lines = graph.descriptors.map(([name, lost]) => [name, signed(lost)]);
  by("descriptors").replaceChildren(listing(["descriptor", "share"], lines));
  by("descriptors-title").textContent = `Descriptors, together ${signed(graph.described)}`;
}

/** The training molecules that are most similar, if the model knows their names. */
function listNearest(graph) {
  const near = graph.nearest || [];
  by("near").hidden = !near.length;
  const lines = near.map(({ smiles, name, similarity, target }) => [[name, smiles].filter(Boolean).join(": "), shown(similarity), target]);
  by("nearest").replaceChildren(cellTable(["molecule", "similarity", "target"], lines));
}

/** A table of texts, the first of each row a text or an element, the others numbers. */
function cellTable(titles, lines) {
  const [table, rows] = headed(titles);
  table.querySelectorAll("th").forEach((heading, place) => { if (place) heading.className = "number"; });
  for (const [first, ...others] of lines) {
    const row = rows.insertRow();
    row.insertCell().append(first);
    for (const text of others) Object.assign(row.insertCell(), { className: "number", textContent: text });
  }
  return table;
}

/** A table with headings, and its empty body. */
function headed(titles) {
  const table = document.createElement("table");
  const top = table.createTHead().insertRow();
  for (const text of titles) {
    const heading = document.createElement("th");
    heading.scope = "col";
    heading.textContent = text;
    top.append(heading);
  }
  return [table, table.createTBody()];
}

/** A small table; with `reach`, first cells are buttons that highlight their edge. */
function listing(titles, lines, reach) {
  const [table, rows] = headed(titles);
  for (const [first, second, edge] of lines) {
    const row = rows.insertRow();
    const cell = row.insertCell();
    if (reach) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = first;
      for (const event of ["focus", "mouseenter"]) button.addEventListener(event, () => reach(edge));
      for (const event of ["blur", "mouseleave"]) button.addEventListener(event, () => reach(null));
      cell.append(button);
    } else cell.textContent = first;
    const number = row.insertCell();
    number.className = "number";
    number.textContent = second;
  }
  return table;
}

function legend(graph) {
  const one = state.view === "importance";
  const most = scaleEnd(graph);
  const svg = element("svg", { width: 160, height: 12, "aria-hidden": "true" });
  const first = one || state.view === "pooling" ? -1 : 0;
  for (let step = 0; step < 40; step += 1) {
    svg.append(element("rect", { x: step * 4, width: 4.5, height: 12, fill: colour(first + (1 - first) * step / 39) }));
  }
  const texts = {
    importance: [page.values ? " lowers it " : " speaks against ", `${page.values ? " raises" : " speaks for"} ${graph.explained}: what edges and polygons carry of its margin ${signed(graph.margin)}, ±${shown(most)}`],
    lower: [" 0 ", ` ${shown(most)}: attention that an edge receives at its nodes, ${layerName(state.layer)}, ${headName()}`],
    upper: [" 0 ", ` ${shown(most)}: attention that an edge receives round its polygons, ${layerName(state.layer)}, ${headName()}`],
    pooling: [` -${shown(most)} `, ` ${shown(most)}: pooling score in ${layerName(state.layer)}`],
  };
  if (state.view === "pooling" && opened(graph).layers[state.layer].score === null) return [`${layerName(state.layer)} does not pool: there are no scores.`];
  if (!graph.edges.length) return ["This graph has no edges, so there is nothing to colour."];
  return [texts[state.view][0], svg, texts[state.view][1]];
}

/** The numbers and the curves of how faithful an explanation is. */
function trust(graph) {
  if (!graph.trust) return ["Faithfulness was not measured."];
  return [trustTable(graph.trust), curves(graph.trust)];
}

const measures = { area: "area", fidelity_plus: "fall without best fifth", fidelity_minus: "fall with it alone" };

function trustTable(numbers) {
  const more = "p" in numbers.area;
  const [table, lines] = headed(["", "this", "gradient", "chance", ...(more ? ["p"] : [])]);
  for (const [key, title] of Object.entries(measures)) {
    const row = lines.insertRow();
    row.insertCell().textContent = title;
    for (const name of ["ours", "gradient", "chance", ...(more ? ["p"] : [])]) {
      const cell = row.insertCell();
      cell.className = "number";
      cell.textContent = shown(numbers[key][name]);
    }
  }
  return table;
}

function curves({ deletion, insertion }) {
  const ink = inks();
  const every = [...deletion.ours, ...insertion.ours, ...deletion.chance, ...insertion.chance];
  const [low, high] = [Math.min(...every), Math.max(...every)];
  const place = (value, step, count) => [30 + 200 * step / (count - 1), 10 + 90 * (high > low ? (high - value) / (high - low) : 0.5)];
  const said = "Prediction as edges are deleted (solid) or inserted (dashed), the best first";
  const svg = element("svg", { viewBox: "0 0 240 125", width: 240, height: 125, role: "img", "aria-label": said, "font-family": "system-ui, sans-serif", "font-size": 9, fill: ink.ink });
  for (const [list, stroke, dash] of [[deletion.chance, ink.faint, ""], [insertion.chance, ink.faint, "4 3"], [deletion.ours, colour(1), ""], [insertion.ours, colour(1), "4 3"]]) {
    const corners = list.map((value, step) => place(value, step, list.length).join(",")).join(" ");
    svg.append(element("polyline", { points: corners, fill: "none", stroke, "stroke-width": 1.8, "stroke-dasharray": dash }));
  }
  svg.append(element("text", { x: 2, y: 14 }, shown(high)), element("text", { x: 2, y: 102 }, shown(low)));
  svg.append(element("text", { x: 30, y: 120 }, "share of the edges; grey: random edges"));
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = said + ".";
  figure.append(svg, caption);
  return figure;
}
