// SPDX-License-Identifier: Apache-2.0
/**
 * Callers and callees of one function, from all places where it is in a tree: what called it above, what it called
 * below. A call within one of its own calls counts in the outer one.
 */
import type { Spans, Tree } from "./data";
import { layOut, type Layout } from "./tree";

interface Node {
  children: Map<number, Node>;
  name: number;
  kind: number;
  place: number;
  total: number;
  self: number;
  count: number;
}

function child(node: Node, of: Tree, i: number): Node {
  let one = node.children.get(of.name[i]);
  if (!one) {
    one = {
      children: new Map(),
      name: of.name[i],
      kind: of.kind[i],
      place: of.place[i],
      total: 0,
      self: 0,
      count: 0,
    };
    node.children.set(of.name[i], one);
  }
  return one;
}

/** A merged tree in the form of the page's trees. */
function flatten(root: Node, of: Tree, key: string, title: string): Tree {
  const nodes: { node: Node; depth: number }[] = [];
  const waiting = [{ node: root, depth: 0 }];
  while (waiting.length > 0) {
    const one = waiting.pop()!;
    nodes.push(one);
    for (const next of one.node.children.values())
      waiting.push({ node: next, depth: one.depth + 1 });
  }
  return {
    key,
    title,
    count_title: of.count_title,
    isBytes: of.isBytes,
    depth: Uint32Array.from(nodes, ({ depth }) => depth),
    name: Uint32Array.from(nodes, ({ node }) => node.name),
    total: Float64Array.from(nodes, ({ node }) => node.total),
    self: Float64Array.from(nodes, ({ node }) => node.self),
    count: Float64Array.from(nodes, ({ node }) => node.count),
    place: Uint32Array.from(nodes, ({ node }) => node.place),
    kind: Uint8Array.from(nodes, ({ node }) => node.kind),
  };
}

function join<T extends Float64Array | Uint32Array | Uint8Array>(a: T, b: T): T {
  const both = new (a.constructor as new (length: number) => T)(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

export interface Sandwich {
  tree: Tree; // callers, then the function and its callees
  layout: Layout; // callers on top of the function
}

/** Null: the tree has none of this name. */
export function sandwichOf(tree: Tree, name: number, title: string): Sandwich | null {
  const empty = (): Node => ({
    children: new Map(),
    name,
    kind: 0,
    place: 0,
    total: 0,
    self: 0,
    count: 0,
  });
  const below = empty();
  const above = empty();
  const path: number[] = [];
  const inside: (Node | null)[] = []; // by depth: where a node of the tree goes among the callees
  let found = false;
  for (let i = 0; i < tree.depth.length; i++) {
    const depth = tree.depth[i];
    path.length = inside.length = depth;
    const parent = depth > 0 ? inside[depth - 1] : null;
    const isRoot = !parent && tree.name[i] === name;
    const node = parent ? child(parent, tree, i) : isRoot ? below : null;
    if (node) {
      node.total += tree.total[i];
      node.self += tree.self[i];
      node.count += tree.count[i];
      node.kind = tree.kind[i];
      node.place = tree.place[i];
    }
    if (isRoot) {
      found = true;
      let caller = above;
      caller.total += tree.total[i];
      for (let up = depth - 1; up >= 0; up--) {
        caller = child(caller, tree, path[up]);
        caller.total += tree.total[i];
        caller.count += tree.count[i];
      }
    }
    path[depth] = i;
    inside[depth] = node;
  }
  if (!found) return null;
  const callees = flatten(below, tree, "sandwich", title);
  const callers = flatten(above, tree, "sandwich", title);
  const [up, down] = [layOut(callers), layOut(callees)];
  const base = callers.depth.length; // numbers of callees come after those of callers
  const both: Tree = {
    ...callees,
    depth: join(callers.depth, callees.depth),
    name: join(callers.name, callees.name),
    total: join(callers.total, callees.total),
    self: join(callers.self, callees.self),
    count: join(callers.count, callees.count),
    place: join(callers.place, callees.place),
    kind: join(callers.kind, callees.kind),
  };
  const spans: Spans = {
    count: up.spans.count + down.spans.count,
    start: join(up.spans.start, down.spans.start),
    end: join(up.spans.end, down.spans.end),
    name: both.name,
    kind: both.kind,
  };
  return {
    tree: both,
    layout: {
      spans,
      rows: [...up.rows.slice(1).reverse(), ...down.rows.map((row) => row.map((id) => id + base))],
      whole: down.whole,
      node: Uint32Array.from({ length: spans.count }, (_, i) => i),
      parent: new Int32Array(spans.count).fill(-1),
    },
  };
}
