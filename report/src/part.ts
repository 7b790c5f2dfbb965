// SPDX-License-Identifier: Apache-2.0
/** The flame graph of a part of the time, or of one lane: equal paths merged, as the trees of the whole have it. */
import type { Tree } from "./data";
import type { Lane } from "./lanes";
import { PATH_SHIFT, type Paths } from "./paths";
import { firstAfter, type Window } from "./rows";

/** What the paths have in a window. */
interface Sums {
  total: Float64Array;
  inside: Float64Array; // of that, what their children have
  count: Float64Array;
}

function addLane(sums: Sums, lane: Lane, paths: Paths, window: Window): void {
  const { start, end } = lane.spans;
  const { rows, found } = paths.of(lane);
  for (const [r, row] of rows.entries())
    for (let i = firstAfter(lane.spans, row, window.from); i < row.length; i++) {
      const id = row[i];
      if (start[id] >= window.to) break;
      const path = found[r][i] >>> PATH_SHIFT;
      sums.total[path] += Math.min(window.to, end[id]) - Math.max(window.from, start[id]);
      sums.count[path]++;
    }
}

/** Those that have something, each before its children, as trees of the page are. */
function inOrder(paths: Paths, count: Float64Array): { order: number[]; depth: number[] } {
  const children: (number[] | undefined)[] = [];
  const roots: number[] = [];
  for (let path = 0; path < count.length; path++)
    if (count[path] > 0)
      (paths.parent[path] < 0 ? roots : (children[paths.parent[path]] ??= [])).push(path);
  const order: number[] = [];
  const depth: number[] = [];
  const waiting = roots.reverse().map((path) => ({ path, level: 0 }));
  while (waiting.length > 0) {
    const { path, level } = waiting.pop()!;
    order.push(path);
    depth.push(level);
    for (const child of children[path]?.reverse() ?? [])
      waiting.push({ path: child, level: level + 1 });
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
  paths: Paths,
  samples: boolean,
): Tree | null {
  const wanted = stackLanes(lanes, samples);
  for (const lane of wanted) paths.of(lane); // then all of their paths have numbers
  const room = paths.parent.length;
  const sums: Sums = {
    total: new Float64Array(room),
    inside: new Float64Array(room),
    count: new Float64Array(room),
  };
  for (const lane of wanted) addLane(sums, lane, paths, window);
  for (let path = 0; path < room; path++)
    if (paths.parent[path] >= 0) sums.inside[paths.parent[path]] += sums.total[path];
  const { order, depth } = inOrder(paths, sums.count);
  if (order.length === 0) return null;
  return {
    key: samples ? "part-samples" : "part-ranges",
    title: samples ? "Selected part: samples" : "Selected part: ranges",
    count_title: samples ? "spans" : "calls",
    isBytes: false,
    depth: Uint32Array.from(depth),
    name: Uint32Array.from(order, (path) => paths.name[path]),
    total: Float64Array.from(order, (path) => sums.total[path]),
    self: Float64Array.from(order, (path) => Math.max(0, sums.total[path] - sums.inside[path])),
    count: Float64Array.from(order, (path) => sums.count[path]),
    place: Uint32Array.from(order, (path) => paths.place[path]),
    kind: Uint8Array.from(order, (path) => paths.kind[path]),
  };
}
