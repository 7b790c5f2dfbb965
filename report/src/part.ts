// SPDX-License-Identifier: Apache-2.0
/** The flame graph of a part of the time, or of one lane: equal paths merged, as the trees of the whole have it. */
import type { Spans, Tree } from "./data";
import type { Lane } from "./lanes";
import { firstAfter, type Row, type Window } from "./rows";

interface Node {
  parent: number; // -1: none
  name: number;
  kind: number;
  place: number;
  total: number;
  inside: number; // of that, its children's
  count: number;
}

/** What of a row lies in the window: each span's node, its parent found in the row above. */
function addRow(
  nodes: Node[],
  byPath: Map<number, number>,
  texts: number,
  spans: Spans & { place?: Uint32Array },
  row: Row,
  window: Window,
  above: { row: Row; first: number; nodes: number[] } | null,
): { row: Row; first: number; nodes: number[] } {
  const first = firstAfter(spans, row, window.from);
  const mine: number[] = [];
  let up = 0;
  for (let i = first; i < row.length && spans.start[row[i]] < window.to; i++) {
    const id = row[i];
    let parent = -1;
    if (above) {
      while (up < above.nodes.length && spans.end[above.row[above.first + up]] < spans.end[id])
        up++;
      if (up < above.nodes.length && spans.start[above.row[above.first + up]] <= spans.start[id])
        parent = above.nodes[up];
    }
    const path = (parent + 1) * texts + spans.name[id];
    let node = byPath.get(path);
    if (node === undefined) {
      node = nodes.length;
      byPath.set(path, node);
      nodes.push({
        parent,
        name: spans.name[id],
        kind: spans.kind[id],
        place: spans.place?.[id] ?? 0,
        total: 0,
        inside: 0,
        count: 0,
      });
    }
    const length = Math.min(window.to, spans.end[id]) - Math.max(window.from, spans.start[id]);
    nodes[node].total += length;
    nodes[node].count++;
    if (parent >= 0) nodes[parent].inside += length;
    mine.push(node);
  }
  return { row, first, nodes: mine };
}

/** Each node before its children, as trees of the page are. */
function inOrder(nodes: Node[]): { order: number[]; depth: number[] } {
  const children: number[][] = nodes.map(() => []);
  const roots: number[] = [];
  nodes.forEach((node, i) => (node.parent < 0 ? roots : children[node.parent]).push(i));
  const order: number[] = [];
  const depth: number[] = [];
  const waiting = roots.reverse().map((node) => ({ node, level: 0 }));
  while (waiting.length > 0) {
    const { node, level } = waiting.pop()!;
    order.push(node);
    depth.push(level);
    for (const child of children[node].reverse()) waiting.push({ node: child, level: level + 1 });
  }
  return { order, depth };
}

/** Lanes whose rows are of one kind; a thread's overlapping ranges have no callers, and GPUs' work none. */
export const stackLanes = (lanes: Lane[], samples: boolean): Lane[] =>
  lanes.filter(
    (lane) =>
      lane.kind === "spans" &&
      lane.thread >= 0 &&
      !lane.overlaps &&
      (lane.samples !== undefined) === samples,
  );

/** Null: there is nothing of it in the window. */
export function treeOfPart(
  lanes: Lane[],
  window: Window,
  texts: number,
  samples: boolean,
): Tree | null {
  const nodes: Node[] = [];
  const byPath = new Map<number, number>();
  for (const lane of stackLanes(lanes, samples)) {
    let above: ReturnType<typeof addRow> | null = null;
    // The first row of samples is what the thread did, not where.
    for (const row of samples ? lane.rows.slice(1) : lane.rows)
      above = addRow(nodes, byPath, texts, lane.samples?.spans ?? lane.spans, row, window, above);
  }
  if (nodes.length === 0) return null;
  const { order, depth } = inOrder(nodes);
  const column = (get: (node: Node) => number): Float64Array =>
    Float64Array.from(order, (i) => get(nodes[i]));
  return {
    key: samples ? "part-samples" : "part-ranges",
    title: samples ? "Selected part: samples" : "Selected part: ranges",
    count_title: samples ? "spans" : "calls",
    isBytes: false,
    depth: Uint32Array.from(depth),
    name: Uint32Array.from(order, (i) => nodes[i].name),
    total: column((node) => node.total),
    self: column((node) => Math.max(0, node.total - node.inside)),
    count: column((node) => node.count),
    place: Uint32Array.from(order, (i) => nodes[i].place),
    kind: Uint8Array.from(order, (i) => nodes[i].kind),
  };
}
