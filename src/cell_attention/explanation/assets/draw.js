// A graph as SVG. Colours are written into the elements, so that a saved picture needs no page.
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const root = document.documentElement;
const isDark = () => root.dataset.theme === "dark"
  || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
const inks = () => (isDark()
  ? { paper: "#1b1f24", ink: "#e8ebee", faint: "#5f6a75", quiet: "#323a43", lower: "#58d3b4", upper: "#d8a4e6" }
  : { paper: "#ffffff", ink: "#1c2126", faint: "#b3bac1", quiet: "#e9ecef", lower: "#00796b", upper: "#8e3fa8" });

function colour(value) {
  const scale = page.scale[isDark() ? "dark" : "light"];
  const place = Math.round((Math.min(1, Math.max(-1, value)) + 1) / 2 * (scale.length - 1));
  return scale[place];
}

/** Coordinates, and the frame round them. */
function frame(graph, gap = 0.9) {
  const points = [];
  for (let i = 0; i < graph.points.length; i += 2) points.push([graph.points[i] / 100, graph.points[i + 1] / 100]);
  const [xs, ys] = [0, 1].map((axis) => (points.length ? points.map((point) => point[axis]) : [0]));
  const low = [xs, ys].map((values) => values.reduce((a, b) => Math.min(a, b)) - gap);
  const size = [xs, ys].map((values, axis) => values.reduce((a, b) => Math.max(a, b)) + gap - low[axis]);
  // Small graphs are not enlarged; the lines of large ones stay visible.
  const least = graph.elements ? 7 : 4;
  const grown = [Math.max(size[0], least), Math.max(size[1], least * 0.6)];
  const box = [low[0] - (grown[0] - size[0]) / 2, low[1] - (grown[1] - size[1]) / 2, ...grown];
  return { points, box, thick: Math.min(4, Math.max(1, Math.max(...grown) / 16)) };
}

/**
 * look: values per edge (-1…1 or null where bare) and per polygon (null where unfilled), gone edges,
 * lit edges with their labels, and whether nodes are named.
 */
function drawn(graph, look, label) {
  const { edges } = opened(graph);
  const { points, box, thick } = frame(graph);
  const ink = inks();
  const svg = element("svg", { viewBox: box.map((v) => v.toFixed(2)).join(" "), xmlns: SVG, role: "img", "aria-label": label });
  svg.append(element("title", {}, label));
  svg.append(element("rect", { x: box[0], y: box[1], width: box[2], height: box[3], fill: ink.paper }));
  const fills = element("g", { "data-part": "polygons" });
  graph.polygons
    .map((nodes, p) => [nodes, p])
    .sort((a, b) => b[0].length - a[0].length)
    .forEach(([nodes, p]) => {
      const value = look.polygons[p];
      if (value === null) return;
      const corners = nodes.map((node) => points[node].join(",")).join(" ");
      fills.append(element("polygon", { points: corners, fill: value === "quiet" ? ink.quiet : colour(value), "fill-opacity": 0.75, "data-polygon": p }));
    });
  const under = element("g", { "data-part": "edges", "stroke-linecap": "round" });
  edges.map((ends, e) => [ends, e])
    .filter(([, e]) => look.edges[e] !== null && !look.gone.has(e))
    .sort((a, b) => Math.abs(look.edges[a[1]]) - Math.abs(look.edges[b[1]]))
    .forEach(([ends, e]) => {
      const width = thick * (0.08 + 0.26 * Math.abs(look.edges[e]));
      under.append(line(points, ends, colour(look.edges[e]), width, { "data-edge": e }));
    });
  const lit = element("g", { "data-part": "lit", "stroke-linecap": "round" });
  const words = element("g", { "data-part": "weights", "font-family": "system-ui, sans-serif", "font-size": 0.3 * thick, "text-anchor": "middle" });
  const spoken = [];
  // Only the neighbours with the largest weights get a number: more would overlap.
  const loud = new Set(look.lit.map(({ weight }) => weight).filter((weight) => weight !== null).sort((a, b) => b - a).slice(0, 24));
  for (const { edge, side, weight } of look.lit) {
    const [x, y] = middle(points, edges[edge]);
    lit.append(line(points, edges[edge], side === "self" ? ink.ink : ink[side], thick * (side === "self" ? 0.2 : 0.06 + 0.3 * weight), { "data-lit": edge, "stroke-opacity": side === "self" ? 0.35 : 0.8 }));
    if (weight === null || !loud.has(weight)) continue;
    // Two numbers on one edge are written one below the other.
    const second = spoken.includes(edge) ? 0.32 : 0;
    spoken.push(edge);
    words.append(element("text", { x, y: y + thick * (0.1 + second), fill: ink[side], stroke: ink.paper, "stroke-width": 0.1 * thick, "paint-order": "stroke" }, weight.toFixed(2)));
  }
  svg.append(fills, under, lit, skeleton(graph, points, look.gone, thick, ink), words);
  if (look.numbers) svg.append(numbers(points, thick, ink));
  return { svg, points, thick };
}

const middle = (points, [u, v]) => [(points[u][0] + points[v][0]) / 2, (points[u][1] + points[v][1]) / 2];

function line(points, [u, v], stroke, width, more = {}) {
  const [[x1, y1], [x2, y2]] = [points[u], points[v]];
  return element("line", { x1, y1, x2, y2, stroke, "stroke-width": width.toFixed(3), ...more });
}

/** Bonds by their order with the labels of their atoms, or lines and dots. */
function skeleton(graph, points, gone, thick, ink) {
  const { edges, sides } = opened(graph);
  const made = element("g", { "data-part": "skeleton", stroke: ink.ink, "stroke-width": 0.045 * thick, "stroke-linecap": "round", fill: ink.ink, "font-family": "system-ui, sans-serif", "font-size": 0.42 * Math.min(thick, 1.6), "text-anchor": "middle" });
  edges.forEach((ends, e) => {
    const order = graph.elements ? graph.orders[e] : 1;
    const [a, b] = trimmed(graph, points, ends);
    if (gone.has(e)) {
      made.append(element("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: ink.faint, "stroke-dasharray": "0.08 0.12", "data-gone": e }));
      return;
    }
    const stereo = (graph.wedges || []).find(([edge]) => edge === e);
    if (stereo) {
      made.append(wedge(stereo[1] === ends[0] ? [a, b] : [b, a], stereo[2], thick, ink));
      return;
    }
    for (const [shift, shorter, dash] of strokes(order, insideOf(graph, sides, points, e, ends))) {
      const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
      const length = Math.hypot(dx, dy) || 1;
      const [nx, ny] = [-dy / length * shift, dx / length * shift];
      const attributes = { x1: a[0] + nx + dx * shorter, y1: a[1] + ny + dy * shorter, x2: b[0] + nx - dx * shorter, y2: b[1] + ny - dy * shorter };
      if (dash) attributes["stroke-dasharray"] = "0.1 0.1";
      made.append(element("line", attributes));
    }
  });
  points.forEach(([x, y], node) => {
    if (graph.labels[node]) {
      // The element is written on the atom; hydrogens and charge go to the side that is free.
      const [before, symbol, after] = graph.labels[node];
      const half = 0.18 * symbol.length * Math.min(thick, 1.6);
      for (const [text, anchor, at] of [[before, "end", x - half], [after, "start", x + half], [symbol, "middle", x]]) {
        if (text) made.append(element("text", { x: at, y: y + 0.15, "text-anchor": anchor, stroke: ink.paper, "stroke-width": 0.12, "paint-order": "stroke" }, text));
      }
    } else if (!graph.elements) made.append(element("circle", { cx: x, cy: y, r: 0.09 * thick, stroke: "none" }));
  });
  return made;
}

/** The numbers of the nodes, as the lists and files of an explanation have them. */
function numbers(points, thick, ink) {
  const size = 0.26 * Math.min(thick, 1.6);
  const made = element("g", { "data-part": "numbers", "font-family": "system-ui, sans-serif", "font-size": size, fill: ink.lower, stroke: ink.paper, "stroke-width": size / 4, "paint-order": "stroke" });
  points.forEach(([x, y], node) => made.append(element("text", { x: x + 0.16, y: y - 0.16 }, String(node))));
  return made;
}

/** A bond that comes towards the reader, or goes away, from its narrow end. */
function wedge([a, b], towards, thick, ink) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = Math.hypot(dx, dy) || 1;
  const wide = 0.11 * Math.min(thick, 1.6);
  const [nx, ny] = [-dy / length * wide, dx / length * wide];
  const name = { "data-wedge": towards ? "towards" : "away" };
  if (towards) {
    const corners = [a, [b[0] + nx, b[1] + ny], [b[0] - nx, b[1] - ny]].map((corner) => corner.join(",")).join(" ");
    return element("polygon", { points: corners, fill: ink.ink, stroke: "none", ...name });
  }
  const steps = Array.from({ length: 6 }, (_, step) => (step + 1) / 6);
  const path = steps.map((t) => `M${a[0] + dx * t + nx * t} ${a[1] + dy * t + ny * t}L${a[0] + dx * t - nx * t} ${a[1] + dy * t - ny * t}`).join("");
  return element("path", { d: path, fill: "none", ...name });
}

/** The ends of an edge, drawn back from labels. */
function trimmed(graph, points, [u, v]) {
  const back = (from, to, label) => {
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
    const share = label ? Math.min(0.3 / length, 0.4) : 0;
    return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
  };
  return [back(points[u], points[v], graph.labels[u]), back(points[v], points[u], graph.labels[v])];
}

/** 1 or -1 where the inside of a ring is, 0 for edges outside of rings. */
function insideOf(graph, sides, points, e, [u, v]) {
  const p = sides.findIndex((edges) => edges.includes(e));
  if (p < 0) return 0;
  const ring = graph.polygons[p].map((node) => points[node]);
  const centre = [0, 1].map((axis) => ring.reduce((sum, point) => sum + point[axis], 0) / ring.length);
  const [x, y] = middle(points, [u, v]);
  const [dx, dy] = [points[v][0] - points[u][0], points[v][1] - points[u][1]];
  return Math.sign((centre[0] - x) * -dy + (centre[1] - y) * dx) || 1;
}

/** [shift to the side, share left out at both ends, dashed] of every stroke of a bond. */
function strokes(order, inside) {
  if (order === 2) return inside ? [[0, 0, false], [0.17 * inside, 0.13, false]] : [[-0.07, 0, false], [0.07, 0, false]];
  if (order === 3) return [[-0.13, 0, false], [0, 0, false], [0.13, 0, false]];
  if (order === 1.5) return [[0, 0, false], [0.17 * (inside || 1), 0.13, true]];
  if (order === 0) return [[0, 0, true]];
  return [[0, 0, false]];
}
