// SPDX-License-Identifier: Apache-2.0
/**
 * Which lanes the timeline shows, and where: pinned ones on top, hidden ones not at all, the others by
 * process in the chosen order.
 */
import { COUNTER_HEIGHT, GAP, HEAD_HEIGHT, type Lane } from "./lanes";
import { ROW_HEIGHT } from "./rows";

export type Order = "recorded" | "time" | "name";

export interface Tracks {
  order: Order;
  filter: string; // words of the names of lanes, or of their processes
}

export interface Arranged {
  shown: Lane[]; // from top to bottom
  pinned: number; // height of the pinned ones, which stay when the others are scrolled
  height: number; // of all
}

const times = new WeakMap<Lane, number>();

/** ns in which something of the lane runs; of samples, in which its thread runs. */
export function busyOf(lane: Lane): number {
  let time = times.get(lane);
  if (time === undefined) {
    time = 0;
    const isWork = lane.thread < 0;
    if (lane.samples) time = lane.samples.sums.running_ns;
    else if (lane.kind === "spans")
      for (const row of isWork ? lane.rows : lane.rows.slice(0, 1))
        for (const id of row) time += lane.spans.end[id] - lane.spans.start[id];
    times.set(lane, time);
  }
  return time;
}

function heightOf(lane: Lane): number {
  if (lane.kind === "process") return HEAD_HEIGHT;
  if (lane.kind === "counter") return COUNTER_HEIGHT;
  return (lane.folded ? 1 : Math.max(1, lane.rows.length)) * ROW_HEIGHT + GAP;
}

/** A process's name first, its steps, then its lanes; counters stay last. */
function inOrder(group: Lane[], order: Order): Lane[] {
  if (order === "recorded") return group;
  const rank = (lane: Lane): number => ["process", "steps", "spans", "counter"].indexOf(lane.kind);
  return [...group].sort(
    (a, b) =>
      rank(a) - rank(b) ||
      (order === "time"
        ? busyOf(b) - busyOf(a)
        : a.title.localeCompare(b.title, undefined, { numeric: true })),
  );
}

function byProcess(lanes: Lane[], order: Order): Lane[][] {
  const groups: Lane[][] = [];
  for (const lane of lanes) {
    if (lane.kind === "process" || groups.length === 0) groups.push([]);
    groups[groups.length - 1].push(lane);
  }
  const time = (group: Lane[]): number => group.reduce((sum, lane) => sum + busyOf(lane), 0);
  if (order === "time") groups.sort((a, b) => time(b) - time(a));
  if (order === "name")
    groups.sort((a, b) => a[0].title.localeCompare(b[0].title, undefined, { numeric: true }));
  return groups.map((group) => inOrder(group, order));
}

/** Those whose name has all words; with a process's name, all of the process. */
function matching(group: Lane[], words: string[]): Lane[] {
  const [head] = group;
  const has = (lane: Lane): boolean =>
    words.every((word) =>
      `${head.title} ${lane.title} ${lane.detail}`.toLowerCase().includes(word),
    );
  if (words.length === 0 || has(head)) return group;
  const found = group.filter(has);
  return found.length > 0 && head.kind === "process" ? [head, ...found] : found;
}

/** Gives each lane its place; what is not shown has no height. */
export function arrange(lanes: Lane[], tracks: Tracks): Arranged {
  const words = tracks.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = lanes.filter((lane) => lane.pinned);
  const pins = shown.length;
  for (const lane of lanes) lane.height = 0;
  for (const group of byProcess(lanes, tracks.order)) {
    const [head] = group;
    const isProcess = head.kind === "process";
    if (isProcess && head.hidden) continue;
    const found = matching(group, words).filter((lane) => !lane.hidden && !lane.pinned);
    shown.push(...(isProcess && head.folded ? found.filter((lane) => lane === head) : found));
  }
  let y = 0;
  let pinned = 0;
  shown.forEach((lane, i) => {
    lane.y = y;
    lane.height = heightOf(lane);
    y += lane.height;
    if (i < pins) pinned = y;
  });
  return { shown, pinned, height: y };
}

const ROOM = 3000; // pixels: what is higher is folded

/**
 * A hundred threads or dozens of ranks: first threads are folded to their outermost row, then processes but
 * the first to their name, which has the outermost row of their busiest thread.
 */
export function foldMany(lanes: Lane[]): void {
  const heads = lanes.filter((lane) => lane.kind === "process");
  for (const head of heads) {
    const mine = lanes.filter((lane) => lane.process === head.process && lane.kind === "spans");
    mine.sort((a, b) => busyOf(b) - busyOf(a));
    if (mine.length > 0) head.main = mine[0];
  }
  const height = (): number => arrange(lanes, { order: "recorded", filter: "" }).height;
  if (height() > ROOM)
    for (const lane of lanes) if (lane.kind === "spans" && lane.rows.length > 1) lane.folded = true;
  if (height() > ROOM) for (const head of heads.slice(1)) head.folded = true;
}
