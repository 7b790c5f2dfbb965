// SPDX-License-Identifier: Apache-2.0
/** A tree laid out as rows, for a flame graph. Times become places: from 0 to the tree's whole. */
import type { Spans, Tree } from "./data";
import type { Row } from "./rows";

export interface Layout {
  spans: Spans;
  rows: Row[];
  whole: number;
  node: Uint32Array; // by span: its node, or its number in the trace
  parent: Int32Array; // by span; -1: none
}

/** Children, longest first; what does not fit into its parent is cut at its end. */
export function layOut(tree: Tree, total: Float64Array = tree.total): Layout {
  const n = tree.depth.length;
  const parent = new Int32Array(n).fill(-1);
  const children: number[][] = [];
  const roots: number[] = [];
  const path: number[] = [];
  for (let i = 0; i < n; i++) {
    const depth = tree.depth[i];
    path[depth] = i;
    if (depth === 0) roots.push(i);
    else {
      parent[i] = path[depth - 1];
      (children[parent[i]] ??= []).push(i);
    }
  }
  const start = new Float64Array(n);
  const end = new Float64Array(n);
  const rows: number[][] = [];
  const whole = roots.reduce((sum, i) => sum + total[i], 0);
  // Places are given level by level, so that each row comes out in order.
  let level: { from: number; to: number; nodes: number[] }[] = [
    { from: 0, to: whole, nodes: roots },
  ];
  while (level.length > 0) {
    const row: number[] = [];
    const next: typeof level = [];
    for (const { from, to, nodes } of level) {
      let at = from;
      for (const i of nodes.sort((a, b) => total[b] - total[a] || a - b)) {
        start[i] = Math.min(at, to);
        end[i] = Math.min(at + total[i], to);
        at = end[i];
        if (end[i] <= start[i]) continue;
        row.push(i);
        if (children[i]) next.push({ from: start[i], to: end[i], nodes: children[i] });
      }
    }
    if (row.length > 0) rows.push(row);
    level = next;
  }
  return {
    spans: { count: n, start, end, name: tree.name, kind: tree.kind },
    rows: rows.map((row) => Uint32Array.from(row)),
    whole,
    node: Uint32Array.from({ length: n }, (_, i) => i),
    parent,
  };
}
