// The data of the page: decoded once per graph, at first use.
"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const graphs = page.graphs;

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
const shown = (value) => (value === null || value === undefined ? "" : Number(value).toPrecision(3));
const signed = (value) => (value > 0 ? "+" : "") + shown(value);

/** Values divided by the largest absolute share of an edge or polygon, to -1…1. */
function relative(graph, values) {
  const most = largest([...graph.edge, ...graph.polygon]);
  return values.map((value) => (most > 0 ? value / most : 0));
}

/** What follows from the cells of a graph: the polygons of every edge, and the edges left after every layer. */
function opened(graph) {
  if (graph.opened) return graph.opened;
  const count = graph.edges.length / 2;
  const edges = Array.from({ length: count }, (_, e) => [graph.edges[2 * e], graph.edges[2 * e + 1]]);
  const place = new Map(edges.map(([u, v], e) => [u + "-" + v, e]));
  const sides = graph.polygons.map((nodes) => nodes.map((u, i) => {
    const v = nodes[(i + 1) % nodes.length];
    return place.get(Math.min(u, v) + "-" + Math.max(u, v));
  }));
  const everyone = edges.map((_, e) => e);
  const left = [everyone];
  for (const layer of graph.layers) left.push(layer.kept === null ? left[left.length - 1] : layer.kept);
  const layers = graph.layers.map((layer, number) => {
    const seen = left[number];
    return {
      lower: weighted(lowerPairs(edges, seen), bytes(layer.lower), page.heads[number]),
      upper: weighted(upperPairs(sides, seen, count), bytes(layer.upper), page.heads[number]),
      seen, score: layer.score,
    };
  });
  graph.opened = { edges, sides, left, layers };
  return graph.opened;
}

/** The polygons all of whose edges are among these. */
function whole(sides, alive) {
  const there = new Set(alive);
  return sides.map((edges) => edges.every((e) => there.has(e)));
}

/** [receiver, sender], sorted, of edges that share a node. */
function lowerPairs(edges, alive) {
  const at = new Map();
  for (const e of alive) for (const node of edges[e]) at.set(node, [...(at.get(node) || []), e]);
  return alive.flatMap((e) => {
    const near = new Set([...at.get(edges[e][0]), ...at.get(edges[e][1])]);
    near.delete(e);
    return [...near].sort((a, b) => a - b).map((k) => [e, k]);
  });
}

/** [receiver, sender], sorted, of edges that share a polygon which is still whole. */
function upperPairs(sides, alive, count) {
  const near = Array.from({ length: count }, () => new Set());
  const intact = whole(sides, alive);
  sides.forEach((edges, p) => {
    if (intact[p]) for (const e of edges) for (const k of edges) if (k !== e) near[e].add(k);
  });
  return alive.flatMap((e) => [...near[e]].sort((a, b) => a - b).map((k) => [e, k]));
}

/** Pairs with their weights, one per head and their mean at the end. */
function weighted(pairs, stored, heads) {
  if (stored.length !== pairs.length * heads) throw new Error("weights do not fit the pairs");
  return pairs.map(([receiver, sender], row) => {
    const weights = Array.from(stored.subarray(row * heads, (row + 1) * heads), (value) => value / 255);
    weights.push(weights.reduce((sum, value) => sum + value, 0) / heads);
    return { receiver, sender, weights };
  });
}

const nodeName = (graph, node) => (graph.elements ? graph.elements[node] + node : String(node));
const edgeName = (graph, e) => opened(graph).edges[e].map((node) => nodeName(graph, node)).join("–");
